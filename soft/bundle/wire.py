"""The lines of paths.jsonl and traces.jsonl: one JSON value a line, fixed fields, terms by their name in terms.smt2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from soft.errors import SoftError
from soft.solve.smtlib import shorten
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload, Trace

# Bounds on what a stranger's line may claim. The largest OpenFlow message has 65,535 bytes.
MOST_EVENTS = 10_000
MOST_BYTES = 65_535
LONGEST_TEXT = 500
MOST_TEXTS = 200


class PathLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One path. The witness has the values of the scenario's variables in their order."""

    conditions: list[int]
    trace: int
    witness: msgspec.Raw
    marks: tuple[str, ...] = ()


class _Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="event"):
    step: int


class MessageLine(_Event, frozen=True, tag="message"):
    payload: list[str]
    length: str | None = None


class PacketLine(_Event, frozen=True, tag="packet"):
    port: int
    payload: list[str]
    length: str | None = None


class CrashLine(_Event, frozen=True, tag="crash"):
    reason: str


class CloseLine(_Event, frozen=True, tag="close"):
    pass


class HangLine(_Event, frozen=True, tag="hang"):
    pass


class FloodLine(_Event, frozen=True, tag="flood"):
    pass


EventLine = MessageLine | PacketLine | CrashLine | CloseLine | HangLine | FloodLine
_ENDINGS: dict[type, type] = {Close: CloseLine, Hang: HangLine, Flood: FloodLine}
_ENDINGS_BACK: dict[type, type] = {CloseLine: Close, HangLine: Hang, FloodLine: Flood}

_encode = msgspec.json.Encoder().encode
_decode_path = msgspec.json.Decoder(PathLine).decode
_decode_events = msgspec.json.Decoder(list[EventLine]).decode
_decode_values = msgspec.json.Decoder(list[int]).decode


def encode_path(conditions: Sequence[int], trace: int, witness: Sequence[int], marks: tuple[str, ...]) -> bytes:
    return _encode(PathLine(list(conditions), trace, msgspec.Raw(_encode(list(witness))), marks)) + b"\n"


def decode_path(line: bytes) -> tuple[PathLine, list[int]]:
    """The line and its witness's values. Raises msgspec's errors: `explained` makes sentences of them."""
    path = _decode_path(line)
    return path, _decode_values(path.witness)


def decode_witness(raw: bytes) -> list[int]:
    return _decode_values(raw)


def encode_trace(trace: Trace, reference: Callable[[Term], str]) -> bytes:
    """A trace as one line; `reference` gives a term's name, and defines it if that is new."""
    return _encode([_event_line(event, reference) for event in trace]) + b"\n"


def decode_trace(line: bytes, names: Mapping[str, Term], steps: int) -> Trace:
    """The trace of a line, over the terms that terms.smt2 has defined."""
    events = _decode_events(line)
    if len(events) > MOST_EVENTS:
        raise SoftError(f"A trace of {len(events)} events is too long; at most {MOST_EVENTS} are allowed.")
    return tuple(_event(event, names, steps) for event in events)


def explained(error: Exception) -> str:
    """What msgspec says about a line, as part of a sentence."""
    text = str(error).rstrip(".")
    return "it nests too deep" if isinstance(error, RecursionError) else shorten(text)[1:-1]


def check_texts(texts: Sequence[str], what: str) -> None:
    """Marks, reasons and labels are short printable lines, so that they can be shown as they are."""
    if len(texts) > MOST_TEXTS:
        raise SoftError(f"There are {len(texts)} {what}s; at most {MOST_TEXTS} are allowed.")
    for text in texts:
        if not text.isprintable() or len(text) > LONGEST_TEXT:
            raise SoftError(f"The {what} {shorten(text)} is not a printable line of at most {LONGEST_TEXT} characters.")


def _event_line(event: Event, reference: Callable[[Term], str]) -> EventLine:
    if isinstance(event, Message):
        return MessageLine(event.step, *_payload_line(event.payload, reference))
    if isinstance(event, Packet):
        return PacketLine(event.step, event.port, *_payload_line(event.payload, reference))
    if isinstance(event, Crash):
        return CrashLine(event.step, event.reason)
    line: EventLine = _ENDINGS[type(event)](event.step)
    return line


def _payload_line(payload: Payload, reference: Callable[[Term], str]) -> tuple[list[str], str | None]:
    pieces = [f"#x{piece.hex()}" if isinstance(piece, bytes) else reference(piece) for piece in payload.pieces]
    return pieces, None if payload.length is None else reference(payload.length)


def _event(line: EventLine, names: Mapping[str, Term], steps: int) -> Event:
    if not 0 <= line.step < steps:
        raise SoftError(f"The scenario has no step {line.step}; its {steps} steps are numbered from 0.")
    if isinstance(line, MessageLine):
        return Message(line.step, _payload(line.payload, line.length, names))
    if isinstance(line, PacketLine):
        if not 0 <= line.port < 1 << 32:
            raise SoftError(f"{line.port} is no port number.")
        return Packet(line.step, line.port, _payload(line.payload, line.length, names))
    if isinstance(line, CrashLine):
        check_texts((line.reason,), "reason")
        return Crash(line.step, line.reason)
    event: Event = _ENDINGS_BACK[type(line)](line.step)
    return event


def _payload(texts: list[str], length: str | None, names: Mapping[str, Term]) -> Payload:
    pieces: list[bytes | Term] = []
    size = 0
    for text in texts:
        piece = _piece(text, names)
        pieces.append(piece)
        size += len(piece) if isinstance(piece, bytes) else piece.width // 8
        if size > MOST_BYTES:
            raise SoftError(f"A payload has more than {MOST_BYTES} bytes.")
    bound = None
    if length is not None:
        bound = names.get(length)
        if bound is None or bound.width != 16:
            raise SoftError(f"The length {shorten(length)} is not a defined term of 16 bits.")
    return Payload(tuple(pieces), bound)


def _piece(text: str, names: Mapping[str, Term]) -> bytes | Term:
    if text.startswith("#x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise SoftError(f"{shorten(text)} is not a string of hexadecimal bytes.") from None
    term = names.get(text)
    if term is None:
        raise SoftError(f"The piece {shorten(text)} is neither bytes nor a defined term.")
    if not term.width or term.width % 8:
        raise SoftError(f"The piece {shorten(text)} has {term.width} bits, not a number of bytes.")
    return term
