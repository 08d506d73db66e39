"""Messages, packets and events for people: one line each, or a dictionary for JSON.

Everything here is for reading: raw bytes stay the authority. Payloads may have terms in them, which show as the names
of the inputs that they come from, and may be a stranger's: nothing here fails, however broken the bytes are. Fields are
read by the same layouts from which scenarios are built; `decoded` asks os-ken, which knows nothing of us.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from soft.openflow.decode_packet import describe_packet as describe_packet
from soft.openflow.decode_value import Value, number_at, show_data, show_size, show_value
from soft.openflow.decode_value import show_term as show_term
from soft.openflow.layout import (
    HEADER_SIZE,
    Actions,
    Cases,
    Data,
    Element,
    Field,
    Group,
    Layout,
    Length,
    Pad,
    Repeat,
    Template,
    layout_of,
    size_of,
)
from soft.openflow.openflow10 import ERROR_CODES, NO_BUFFER
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload

# What one line holds; `describe` has the rest.
_SHORT = 4
_MOST_ENTRIES = 3


@dataclass(frozen=True, slots=True)
class Item:
    """One field of a message: what it is called, and its value for people."""

    name: str
    text: str
    value: Value | None = None
    """The number, where the field is one."""


# ------------------------------------------------------------------------------------------------ events


def describe_event(event: Event, openflow: str = "1.0") -> str:
    """One event in one line."""
    match event:
        case Message(payload=payload):
            return describe_message(payload, openflow)
        case Packet(port=port, payload=payload):
            return f"port {port}: {describe_packet(payload)}"
        case Crash(reason=reason):
            return f"crash: {reason}"
        case Close():
            return "closes the control connection"
        case Hang():
            return "hangs: it does not become quiet"
        case Flood():
            return "floods: it sends without end"


def event_dict(event: Event, openflow: str = "1.0") -> dict[str, Any]:
    """One event as JSON: its kind, its line, and its bytes, or its pieces where there are terms among them."""
    result: dict[str, Any] = {"step": event.step, "kind": type(event).__name__.lower()}
    if isinstance(event, Packet):
        result["port"] = event.port
    if isinstance(event, Crash):
        result["reason"] = event.reason
    result["text"] = describe_event(event, openflow)
    if isinstance(event, Message | Packet):
        result |= _payload_dict(event.payload)
    if isinstance(event, Message) and (data := event.payload.concrete()) is not None:
        result["decoded"] = decoded(data)
    return result


def _payload_dict(payload: Payload) -> dict[str, Any]:
    if (data := payload.concrete()) is not None:
        return {"bytes": data.hex()}
    pieces = [piece.hex() if isinstance(piece, bytes) else f"<{show_term(piece)}>" for piece in payload.pieces]
    length = {} if payload.length is None else {"length": show_term(payload.length)}
    return {"pieces": pieces, "size": payload.size, **length}


def decoded(data: bytes) -> dict[str, Any] | None:
    """A message as os-ken reads it; None where it cannot."""
    from os_ken.ofproto import ofproto_parser, ofproto_protocol

    if len(data) < HEADER_SIZE:
        return None
    # os-ken logs a traceback for every message that it cannot read; here that is no news.
    logging.getLogger(ofproto_parser.__name__).disabled = True
    version, kind, length = data[0], data[1], int.from_bytes(data[2:4], "big")
    try:
        datapath = ofproto_protocol.ProtocolDesc(version=version)
        message = ofproto_parser.msg(datapath, version, kind, length, int.from_bytes(data[4:8], "big"), data)
        result = message.to_jsondict() if message is not None else None
    except Exception:  # a parser of many authors, on bytes of any kind
        return None
    return result if isinstance(result, dict) else None


# ------------------------------------------------------------------------------------------------ messages


def describe(payload: Payload | bytes, openflow: str = "1.0") -> list[str]:
    """A message in several lines: the one-line form, then a line for every field or entry."""
    payload = Payload.of(payload) if isinstance(payload, bytes) else payload
    template = _template(payload, layout_of(openflow))
    lines = [describe_message(payload, openflow)]
    if template is not None:
        for item in items_of(payload, openflow):
            lines.append(f"  {item.name}: {item.text}")
    return lines


def describe_message(payload: Payload, openflow: str = "1.0") -> str:
    """A message of either direction in one line."""
    layout = layout_of(openflow)
    size = show_size(payload)
    if payload.size < HEADER_SIZE:
        return f"fragment of a message, {size}"
    kind, xid = number_at(payload, 8, 8), number_at(payload, 32, 32)
    version = number_at(payload, 0, 8)
    foreign = f", version {show_value(version)}" if version != layout.version else ""
    tail = f"xid {show_value(xid)}{foreign}"
    length = number_at(payload, 16, 16)
    if payload.length is None and isinstance(length, int) and length != payload.size:
        tail += f", length field {length} but {size}"
    template = _template(payload, layout)
    if template is None:
        return f"message of type {show_value(kind)}, {size}, {tail}"
    text = _summary(template, payload, list(items_of(payload, openflow)), layout)
    return f"{template.name}{': ' + text if text else ''}, {tail}"


def _template(payload: Payload, layout: Layout) -> Template | None:
    kind = number_at(payload, 8, 8)
    if not isinstance(kind, int):
        return None
    if kind in layout.replies:
        return layout.replies[kind]
    return next((template for template in layout.messages.values() if template.code == kind), None)


def items_of(payload: Payload, openflow: str = "1.0") -> Iterator[Item]:
    """The fields behind a message's header, in order; one item for a match, a list of actions or an entry."""
    layout = layout_of(openflow)
    if payload.size >= HEADER_SIZE and (template := _template(payload, layout)) is not None:
        yield from _items(template.elements, payload, HEADER_SIZE, payload.size, layout, {})


def _items(
    elements: tuple[Element, ...], payload: Payload, start: int, stop: int, layout: Layout, seen: dict[str, Value]
) -> Iterator[Item]:
    bit = 8 * start
    for element in elements:
        if isinstance(element, Field | Length):
            if bit + element.bits > 8 * stop:
                return
            value = number_at(payload, bit, element.bits)
            seen[element.name] = value
            yield Item(element.name, show_value(value, element if isinstance(element, Field) else None), value)
            bit += element.bits
        elif isinstance(element, Pad):
            bit += element.bits
        elif isinstance(element, Group):
            size = size_of((element,))
            if bit // 8 + size > stop:
                return
            yield Item(element.name, _match(element, payload, bit))
            bit += 8 * size
        elif isinstance(element, Actions):
            length = seen.get("actions_len", stop - bit // 8)
            end = min(stop, bit // 8 + length) if isinstance(length, int) else stop
            yield Item(element.name, _actions(payload, bit // 8, end, layout))
            bit = 8 * end
        elif isinstance(element, Data):
            yield Item(element.name, show_data(payload.slice(bit // 8, stop)))
            return
        elif isinstance(element, Cases):
            selected = seen.get(element.selector)
            inner = element.cases.get(selected) if isinstance(selected, int) else None
            yield from _items(inner if inner is not None else (element.body,), payload, bit // 8, stop, layout, seen)
            return
        else:
            yield from _repeat(element, payload, bit // 8, stop, layout)
            return


def _repeat(repeat: Repeat, payload: Payload, start: int, stop: int, layout: Layout) -> Iterator[Item]:
    number = 0
    while start + repeat.size <= stop:
        end = start + repeat.size
        if repeat.own_length:
            length = number_at(payload, 8 * start, 16)
            if not isinstance(length, int) or length < repeat.size or start + length > stop:
                break
            end = start + length
        inner = _items(repeat.elements, payload, start, end, layout, {})
        shown = [f"{item.name} {item.text}" for item in inner if item.value != 0 and item.name != "length"]
        yield Item(f"{repeat.name}.{number}", ", ".join(shown))
        start, number = end, number + 1
    if start < stop:
        yield Item("rest", show_data(payload.slice(start, stop)))


def _match(group: Group, payload: Payload, bit: int) -> str:
    """Only the fields that count; a field whose wildcard bit is an input may count."""
    wildcards: dict[str, Value] = {}
    shown: list[str] = []
    for element in group.elements:
        if isinstance(element, Group):
            inner = bit
            for part in element.elements:
                assert isinstance(part, Field | Pad)
                value = number_at(payload, inner, part.bits)
                if isinstance(part, Field):
                    wildcards[part.name] = value
                inner += part.bits
            bit = inner
        elif isinstance(element, Field | Pad):
            value = number_at(payload, bit, element.bits)
            if isinstance(element, Field):
                shown += _match_field(element, value, wildcards.get(element.name, 0))
            bit += element.bits
    return ",".join(shown) or "any"


def _match_field(field: Field, value: Value, wildcard: Value) -> list[str]:
    text = f"{field.name}={show_value(value, field)}"
    if isinstance(wildcard, Term):
        return [f"{text} unless {show_term(wildcard)}"]
    if field.kind == "ipv4":
        return [] if wildcard >= 32 else [text + (f"/{32 - wildcard}" if wildcard else "")]
    return [] if wildcard else [text]


def _actions(payload: Payload, start: int, stop: int, layout: Layout) -> str:
    shown: list[str] = []
    while start + 4 <= stop:
        kind, length = number_at(payload, 8 * start, 16), number_at(payload, 8 * start + 16, 16)
        if not isinstance(length, int) or length < 4 or start + length > stop:
            shown.append(f"{show_value(kind, names=layout.action_types)} of length {show_value(length)}")
            break
        shown.append(_action(kind, payload, start + 4, start + length, layout))
        start += length
    return "[" + ", ".join(shown) + "]"


def _action(kind: Value, payload: Payload, start: int, stop: int, layout: Layout) -> str:
    name = show_value(kind, names=layout.action_types)
    template = layout.actions.get(name) if isinstance(kind, int) else None
    if template is None:
        return f"{name}({show_data(payload.slice(start, stop))})"
    values = [item.text for item in _items(template.elements, payload, start, stop, layout, {})]
    if name == "output":
        values = values[: 2 if values[:1] == ["controller"] or not values[:1] or not values[0].isdigit() else 1]
    return f"{name}:{','.join(values)}" if values else name


def _summary(template: Template, payload: Payload, items: list[Item], layout: Layout) -> str:
    """What matters about a message, without its header."""
    fields = {item.name: item for item in items}
    if template.name == "error":
        return _error(fields)
    if template.name == "packet_in":
        return _packet_in(payload, fields)
    if template.name in ("stats_reply", "features_reply"):
        return _reply_with_entries(items)
    if template.name in ("hello", "echo_request", "echo_reply"):
        return show_size(payload.slice(HEADER_SIZE, payload.size)) if payload.size > HEADER_SIZE else ""
    if template.name == "packet_out" and "data" in fields:
        at = payload.size - _data_size(payload)
        carried = payload.slice(at, payload.size)
        parts = _fields([item for item in items if item.name != "data"])
        return f"{parts}{', carrying ' + describe_packet(carried) if carried.size else ''}"
    return _fields(items)


def _data_size(payload: Payload) -> int:
    length = number_at(payload, 8 * (HEADER_SIZE + 6), 16)
    return max(0, payload.size - HEADER_SIZE - 8 - length) if isinstance(length, int) else 0


def _fields(items: list[Item]) -> str:
    """All fields of a short message; of a long one those that are not zero."""
    short = len(items) <= _SHORT
    return ", ".join(f"{item.name} {item.text}" for item in items if short or item.value != 0)


def _error(fields: dict[str, Item]) -> str:
    kind, code = fields.get("type"), fields.get("code")
    if kind is None or code is None:
        return "cut off"
    names = ERROR_CODES.get(kind.value) if isinstance(kind.value, int) else None
    text = show_value(code.value, names=names) if code.value is not None else code.text
    quoted = fields.get("data")
    return f"{kind.text}/{text}" + (f", quoting {quoted.text}" if quoted is not None and quoted.text != "none" else "")


def _packet_in(payload: Payload, fields: dict[str, Item]) -> str:
    if "reason" not in fields:
        return "cut off"
    buffer = fields["buffer_id"].value
    if isinstance(buffer, Term):
        state = f"buffer {show_term(buffer)}"
    else:
        state = "unbuffered" if buffer == NO_BUFFER else "buffered"
    data = payload.slice(HEADER_SIZE + 10, payload.size)
    parts = [f"{fields['total_len'].text} bytes from port {fields['in_port'].text}", fields["reason"].text, state]
    if data.size or data.length is not None:
        parts.append(f"quoting {describe_packet(data)}")
    return ", ".join(parts)


def _reply_with_entries(items: list[Item]) -> str:
    plain = [item for item in items if "." not in item.name]
    entries = [item for item in items if "." in item.name]
    shown = [plain[0].text] if plain and plain[0].name == "type" else []
    shown += [f"{item.name} {item.text}" for item in plain if item.value != 0 and item.name != "type"]
    if entries or (plain and plain[0].text in ("flow", "table", "port", "queue")):
        shown.append(f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}")
    shown += [f"({item.text})" for item in entries[:_MOST_ENTRIES]]
    return ", ".join(shown) + (", ..." if len(entries) > _MOST_ENTRIES else "")
