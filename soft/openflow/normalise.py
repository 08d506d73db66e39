"""Remove from a trace what two correct switches may do differently. Each rule has a name; a bundle lists them.

A rule is a function of the bytes, and it is applied to terms such that it does not matter which comes first: normalise
and put in the inputs, or put in the inputs and normalise. Where a message's type or a statistic's type is a term, the
result is an if-then-else over the types; where flow entries with terms in them have to be sorted, they are sorted by
if-then-else too. What is left untouched: a message whose header's length is not its size (garbage), flow entries
behind one whose own length is a term, the order of more than 8 flow entries of one size that have terms in them, and
parts of a statistics reply whose type or flags are terms (they are not joined).
A message whose length is a term is taken to have its fixed fields whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from soft.openflow.layout import (
    HEADER_SIZE,
    LARGEST_MESSAGE,
    Cases,
    Element,
    Field,
    Group,
    Layout,
    Length,
    Pad,
    Repeat,
    layout_of,
    size_of,
)
from soft.solve import terms
from soft.solve.terms import Term
from soft.trace import Event, Flood, Message, Packet, Payload, Trace, canonical_order

RULES: Mapping[str, str] = {
    "buffer_id": "Which buffer a packet_in names does not count; whether it names one does.",
    "datapath_id": "The datapath id of a features_reply does not count.",
    "hw_addr": "The hardware addresses of ports do not count.",
    "description": "Description strings and table names do not count.",
    "counters": "Packet, byte, lookup and error counters and durations do not count; numbers of flows do.",
    "flow_order": "The order of the entries of a flow statistics reply does not count.",
    "port_order": "The order of the ports in descriptions and in port and queue statistics does not count.",
    "error_data": "How much of the offending message an error quotes does not count; its type and code do.",
    "reply_parts": "Into how many messages a statistics reply is divided does not count, up to 65535 bytes in all.",
    "flood": "What came in the step in which an agent flooded does not count: it was cut off at no certain place.",
    "own_xid": "The transaction id of a message that answers nothing (hello, packet_in, ...) does not count.",
}

# Fields that a rule sets to zero, by message and path; `stats_reply:1` is the flow statistics reply. Names of tables
# are descriptions; names of ports are configuration, which a comparison keeps equal, so a difference there counts.
_ZEROED: Mapping[str, tuple[str, ...]] = {
    "features_reply": ("datapath_id", "ports.hw_addr"),
    "port_status": ("hw_addr",),
    "flow_removed": ("duration_sec", "duration_nsec", "packet_count", "byte_count"),
    "stats_reply:0": ("mfr_desc", "hw_desc", "sw_desc", "serial_num", "dp_desc"),
    "stats_reply:1": ("flows.duration_sec", "flows.duration_nsec", "flows.packet_count", "flows.byte_count"),
    "stats_reply:2": ("packet_count", "byte_count"),
    "stats_reply:3": ("tables.name", "tables.lookup_count", "tables.matched_count"),
    "stats_reply:4": (
        *("ports.rx_packets", "ports.tx_packets", "ports.rx_bytes", "ports.tx_bytes"),
        *("ports.rx_dropped", "ports.tx_dropped", "ports.rx_errors", "ports.tx_errors"),
        *("ports.rx_frame_err", "ports.rx_over_err", "ports.rx_crc_err", "ports.collisions"),
    ),
    "stats_reply:5": ("queues.tx_bytes", "queues.tx_packets", "queues.tx_errors"),
    "stats_reply:13": ("ports.hw_addr",),
}
_BUFFERED: Mapping[str, str] = {"packet_in": "buffer_id"}
_SORTED = {"stats_reply:1", "features_reply", "stats_reply:4", "stats_reply:5", "stats_reply:13"}
_OWN_XID = {"hello", "echo_request", "packet_in", "flow_removed", "port_status"}

_LENGTH, _XID = (2, 4), (4, 8)
_NO_BUFFER = terms.const(0xFFFFFFFF, 32)
_ERROR_SIZE = HEADER_SIZE + 4
_STATS_TYPE, _STATS_FLAGS = (8, 10), (10, 12)
_STATS_HEADER = 12
_REPLY_MORE = 1
# Sorting by if-then-else takes a comparison of whole entries for every pair of them.
_MOST_SORTED_TERMS = 8


def normalise(events: Iterable[Event], openflow: str = "1.0") -> Trace:
    """The trace of a run without what may legitimately differ, in canonical order."""
    shapes = _shapes(openflow)
    joined = _join_parts(_without_floods(canonical_order(events)), shapes.stats_reply)
    return tuple(
        Message(event.step, _message(event.payload, shapes)) if isinstance(event, Message) else event
        for event in joined
    )


def _without_floods(events: Trace) -> Trace:
    flooded = {event.step for event in events if isinstance(event, Flood)}
    if not flooded:
        return events
    return tuple(e for e in events if e.step not in flooded or not isinstance(e, Message | Packet))


# ------------------------------------------------------------------------------------------------ which bytes


@dataclass(frozen=True, slots=True)
class _Place:
    """Bytes that a rule changes; a buffer id is kept apart in two classes, all else becomes zero."""

    start: int
    size: int
    is_buffer: bool = False


@dataclass(frozen=True, slots=True)
class _Entries:
    """Where the entries of a reply begin, how large they are, and what a rule changes in each."""

    start: int
    size: int
    own_length: bool
    places: tuple[_Place, ...]
    is_sorted: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the rules do to one kind of message."""

    places: tuple[_Place, ...] = ()
    entries: _Entries | None = None


@dataclass(frozen=True, slots=True)
class _Shapes:
    """The messages of one version that a rule applies to, by type, and those of statistics by their own type."""

    messages: Mapping[int, _Shape]
    statistics: Mapping[int, _Shape]
    error: int
    stats_reply: int


@functools.cache
def _shapes(openflow: str) -> _Shapes:
    layout = layout_of(openflow)
    messages: dict[int, _Shape] = {}
    statistics: dict[int, _Shape] = {}
    for code, template in layout.replies.items():
        if template.name == "stats_reply":
            statistics = dict(_statistics(template.elements))
        elif (shape := _shape(template.name, template.elements, HEADER_SIZE)) != _Shape():
            messages[code] = shape
    return _Shapes(messages, statistics, _code(layout, "error"), _code(layout, "stats_reply"))


def _code(layout: Layout, name: str) -> int:
    return layout.types.values[name]


def _statistics(elements: tuple[Element, ...]) -> Iterator[tuple[int, _Shape]]:
    (cases,) = (element for element in elements if isinstance(element, Cases))
    for code, inner in cases.cases.items():
        yield code, _shape(f"stats_reply:{code}", inner, _STATS_HEADER)


def _shape(name: str, elements: tuple[Element, ...], start: int) -> _Shape:
    places = [_Place(_XID[0], 4)] if name in _OWN_XID else []
    entries = None
    for element in elements:
        if isinstance(element, Repeat):
            inner = tuple(_places(name, f"{element.name}.", element.elements, 0))
            entries = _Entries(start, element.size, element.own_length, inner, name in _SORTED)
            break
        places += _places(name, "", (element,), start)
        start += size_of((element,))
    return _Shape(tuple(places), entries)


def _places(name: str, prefix: str, elements: tuple[Element, ...], start: int) -> Iterator[_Place]:
    for element in elements:
        size = size_of((element,))
        if isinstance(element, Field):
            if prefix + element.name in _ZEROED.get(name, ()):
                yield _Place(start, size)
            elif _BUFFERED.get(name) == prefix + element.name:
                yield _Place(start, size, is_buffer=True)
        elif not isinstance(element, Pad | Group | Length):
            return  # what follows has no fixed place, and no rule is about it
        start += size


# ------------------------------------------------------------------------------------------------ one message


def _message(payload: Payload, shapes: _Shapes) -> Payload:
    if payload.size < HEADER_SIZE or not _is_whole(payload):
        return payload
    results = {code: _apply(payload, shape) for code, shape in shapes.messages.items() if _may_be(payload, 1, 2, code)}
    if _may_be(payload, 1, 2, shapes.error):
        results[shapes.error] = _without_data(payload)
    if _may_be(payload, 1, 2, shapes.stats_reply) and payload.size >= _STATS_HEADER:
        kinds = {
            code: _apply(payload, shape)
            for code, shape in shapes.statistics.items()
            if _may_be(payload, *_STATS_TYPE, code)
        }
        results[shapes.stats_reply] = _select(payload.field(*_STATS_TYPE), kinds, payload)
    return _select(payload.field(1, 2), results, payload)


def _is_whole(payload: Payload) -> bool:
    """Whether the header's length is the payload's. A term is: whoever cut the stream has decided so."""
    field = payload.field(*_LENGTH)
    return isinstance(field, Term) or (payload.length is None and int.from_bytes(field, "big") == payload.size)


def _may_be(payload: Payload, start: int, stop: int, value: int) -> bool:
    field = payload.field(start, stop)
    return isinstance(field, Term) or int.from_bytes(field, "big") == value


def _select(selector: bytes | Term, results: Mapping[int, Payload], otherwise: Payload) -> Payload:
    """The result for the selector's value; one payload of if-then-else where the selector is a term."""
    if isinstance(selector, bytes):
        return results.get(int.from_bytes(selector, "big"), otherwise)
    chosen = otherwise
    for value, result in results.items():
        chosen = _either(terms.eq(selector, terms.const(value, selector.width)), result, chosen)
    return chosen


def _either(condition: Term, one: Payload, other: Payload) -> Payload:
    if one == other:
        return one
    first, second = one.each_byte(), other.each_byte()
    length = terms.ite(condition, _length(one), _length(other))
    size = max(len(first), len(second))
    first += [0] * (size - len(first))
    second += [0] * (size - len(second))
    pieces = [
        a.to_bytes(1, "big")
        if isinstance(a, int) and a == b
        else terms.ite(condition, _byte(a), _byte(b))
        for a, b in zip(first, second, strict=True)
    ]
    return Payload(tuple(pieces), length)


def _byte(value: int | Term) -> Term:
    return terms.const(value, 8) if isinstance(value, int) else value


def _length(payload: Payload) -> Term:
    return payload.length if payload.length is not None else terms.const(payload.size, 16)


def _without_data(payload: Payload) -> Payload:
    """An error cut behind its type and code."""
    if payload.size <= _ERROR_SIZE and payload.length is None:
        return payload
    return Payload(payload.pieces).slice(0, _ERROR_SIZE).replace(_LENGTH[0], _ERROR_SIZE.to_bytes(2, "big"))


def _apply(payload: Payload, shape: _Shape) -> Payload:
    places = list(shape.places)
    entries = shape.entries
    found: list[tuple[int, int]] = []
    if entries is not None:
        found = list(_entries(payload, entries))
        places += [_Place(start + p.start, p.size, p.is_buffer) for start, _ in found for p in entries.places]
    payload = _rewrite(payload, places)
    if entries is not None and entries.is_sorted and payload.length is None:
        payload = _sort(payload, found)
    return payload


def _entries(payload: Payload, entries: _Entries) -> Iterator[tuple[int, int]]:
    """First and last byte of every whole entry, as far as the entries' own lengths are known and make sense."""
    start = entries.start
    while start + entries.size <= payload.size:
        stop = start + entries.size
        if entries.own_length:
            field = payload.field(start, start + 2)
            if isinstance(field, Term):
                return
            stop = start + int.from_bytes(field, "big")
            if stop < start + entries.size or stop > payload.size:
                return
        yield start, stop
        start = stop


def _rewrite(payload: Payload, places: Iterable[_Place]) -> Payload:
    whole = Payload(payload.pieces)
    pieces: list[bytes | Term] = []
    at = 0
    for place in places:
        stop = place.start + place.size
        if stop > whole.size:
            break
        pieces += whole.slice(at, place.start).pieces
        pieces.append(_buffer(whole.field(place.start, stop)) if place.is_buffer else bytes(place.size))
        at = stop
    pieces += whole.slice(at, whole.size).pieces
    return Payload(tuple(pieces), payload.length)


def _buffer(field: bytes | Term) -> bytes | Term:
    if isinstance(field, bytes):
        return field if field == b"\xff" * 4 else bytes(4)
    return terms.ite(terms.eq(field, _NO_BUFFER), _NO_BUFFER, terms.const(0, 32))


# ------------------------------------------------------------------------------------------------ flow entries


def _sort(payload: Payload, found: list[tuple[int, int]]) -> Payload:
    """The entries by size, then by content."""
    if len(found) < 2:
        return payload
    by_size: dict[int, list[Payload]] = {}
    for start, stop in found:
        by_size.setdefault(stop - start, []).append(payload.slice(start, stop))
    behind = payload.slice(found[-1][1], payload.size)
    parts = [payload.slice(0, found[0][0])]
    for size in sorted(by_size):
        parts += _sorted(by_size[size])
    return Payload.join([*parts, behind])


def _sorted(entries: list[Payload]) -> list[Payload]:
    """Entries of one size in ascending order, the ones with terms put in their place by if-then-else."""
    known = sorted((entry for entry in entries if entry.concrete() is not None), key=Payload.concrete)  # type: ignore[arg-type]
    others = [entry for entry in entries if entry.concrete() is None]
    if not others:
        return known
    if len(entries) > _MOST_SORTED_TERMS:
        return entries
    result = [_value(entry) for entry in known]
    for entry in others:
        moving = _value(entry)
        for index, value in enumerate(result):
            is_less = terms.ult(moving, value)
            result[index], moving = terms.ite(is_less, moving, value), terms.ite(is_less, value, moving)
        result.append(moving)
    return [Payload((value,)) for value in result]


def _value(entry: Payload) -> Term:
    field = entry.field(0, entry.size)
    return field if isinstance(field, Term) else terms.const(int.from_bytes(field, "big"), 8 * len(field))


# ------------------------------------------------------------------------------------------------ parts of a reply


def _join_parts(events: Trace, stats_reply: int) -> Iterator[Event]:
    """Neighbouring parts of one statistics reply as one message, with the flags of the last."""
    pending: Message | None = None
    for event in events:
        if pending is not None:
            if isinstance(event, Message) and (whole := _joined(pending, event, stats_reply)) is not None:
                pending = Message(event.step, whole)
                continue
            yield pending
            pending = None
        if isinstance(event, Message):
            pending = event
        else:
            yield event
    if pending is not None:
        yield pending


def _joined(first: Message, second: Message, stats_reply: int) -> Payload | None:
    one, two = first.payload, second.payload
    for payload in (one, two):
        if payload.size < _STATS_HEADER or payload.length is not None or not _is_whole(payload):
            return None
    flags = one.field(*_STATS_FLAGS)
    size = one.size + two.size - _STATS_HEADER
    if (
        first.step != second.step
        or one.field(1, 2) != bytes([stats_reply])
        or not isinstance(flags, bytes)
        or not flags[1] & _REPLY_MORE
        or size > LARGEST_MESSAGE
        or any(one.field(*place) != two.field(*place) for place in ((0, 2), _XID, _STATS_TYPE))
    ):
        return None
    head = one.slice(0, _STATS_FLAGS[0]).replace(_LENGTH[0], size.to_bytes(2, "big"))
    flags_and_rest = two.slice(_STATS_FLAGS[0], _STATS_HEADER), one.slice(_STATS_HEADER, one.size)
    return Payload.join((head, *flags_and_rest, two.slice(_STATS_HEADER, two.size)))
