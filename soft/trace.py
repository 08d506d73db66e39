"""What an agent did: a sequence of events whose bytes may be terms over the inputs.

A trace is what one path of an agent shows to the outside: messages to the controller, packets on ports, and how it
ended if it ended. Payloads are kept in one form (constant bytes merged, neighbouring slices of a term joined), so that
equal payloads are equal objects wherever that can be seen without a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

Piece = bytes | Term


@dataclass(frozen=True, slots=True)
class Payload:
    """A sequence of bytes, some of them terms (big-endian, widths a multiple of 8).

    `length`, if given, is a 16-bit term: only that many of the bytes were sent; the pieces hold the most there can be.
    """

    pieces: tuple[Piece, ...]
    length: Term | None = None

    def __post_init__(self) -> None:
        pieces = _canonical(self.pieces)
        length = self.length
        if length is not None and length.op == "const":
            pieces = _cut(pieces, 0, length.args[0])
            object.__setattr__(self, "length", None)
        object.__setattr__(self, "pieces", pieces)

    @staticmethod
    def of(data: bytes) -> Payload:
        return Payload((data,))

    @staticmethod
    def join(payloads: Iterable[Payload]) -> Payload:
        """One after the other. Only the last may have a length of its own: behind it nothing has a fixed place."""
        pieces: list[Piece] = []
        length: Term | None = None
        for payload in payloads:
            if length is not None:
                raise ValueError("bytes behind a payload of symbolic length have no fixed place")
            if payload.length is not None:
                length = terms.add(payload.length, terms.const(sum(map(_size, pieces)), 16))
            pieces += payload.pieces
        return Payload(tuple(pieces), length)

    @property
    def size(self) -> int:
        """The number of bytes, or the most there can be."""
        return sum(map(_size, self.pieces))

    @property
    def variables(self) -> frozenset[str]:
        names = [piece.variables for piece in self.pieces if isinstance(piece, Term)]
        return frozenset().union(*names, self.length.variables if self.length is not None else ())

    def concrete(self) -> bytes | None:
        """The bytes, or None if any of them, or their number, depends on the inputs."""
        if not self.pieces:
            return b""
        first = self.pieces[0]
        return first if len(self.pieces) == 1 and isinstance(first, bytes) and self.length is None else None

    def slice(self, start: int, stop: int) -> Payload:
        """The bytes from `start` up to `stop`, like a Python slice with 0 <= start <= stop."""
        stop = min(stop, self.size)
        start = min(start, stop)
        length = self.length
        if length is not None:
            first, last = terms.const(start, 16), terms.const(stop, 16)
            behind = terms.ite(terms.ult(length, last), terms.sub(length, first), terms.const(stop - start, 16))
            length = terms.ite(terms.ult(length, first), terms.const(0, 16), behind)
        return Payload(_cut(self.pieces, start, stop), length)

    def field(self, start: int, stop: int) -> bytes | Term:
        """The bytes from `start` up to `stop` as one value, whatever the payload's length: bytes, or one term."""
        if not 0 <= start < stop <= self.size:
            raise ValueError(f"bytes {start} to {stop} of a payload of {self.size}")
        pieces = _cut(self.pieces, start, stop)
        if len(pieces) == 1:
            return pieces[0]
        return terms.concat(*[_term(piece) for piece in pieces])

    def replace(self, start: int, new: bytes | Term) -> Payload:
        """The same payload with other bytes from `start` on, in place."""
        stop = start + _size(new)
        if stop > self.size:
            raise ValueError(f"bytes {start} to {stop} of a payload of {self.size}")
        before, behind = _cut(self.pieces, 0, start), _cut(self.pieces, stop, self.size)
        return Payload((*before, new, *behind), self.length)

    def each_byte(self) -> list[int | Term]:
        """Every byte by itself: an int, or a term of 8 bits."""
        result: list[int | Term] = []
        for piece in self.pieces:
            if isinstance(piece, bytes):
                result += piece
            else:
                result += [terms.extract(low + 7, low, piece) for low in range(piece.width - 8, -1, -8)]
        return result

    def evaluate(self, values: Mapping[str, int], memo: dict[Term, int] | None = None) -> bytes:
        """The bytes sent under one input. A variable that `values` lacks raises KeyError."""
        memo = {} if memo is None else memo
        data = b"".join(
            piece if isinstance(piece, bytes) else evaluate(piece, values, memo).to_bytes(piece.width // 8, "big")
            for piece in self.pieces
        )
        return data if self.length is None else data[: evaluate(self.length, values, memo)]


def _size(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.width // 8


def _term(piece: Piece) -> Term:
    return terms.const(int.from_bytes(piece, "big"), 8 * len(piece)) if isinstance(piece, bytes) else piece


def _cut(pieces: tuple[Piece, ...], start: int, stop: int) -> tuple[Piece, ...]:
    result: list[Piece] = []
    offset = 0
    for piece in pieces:
        size = _size(piece)
        low, high = max(start - offset, 0), min(stop - offset, size)
        if low < high:
            if isinstance(piece, bytes):
                result.append(piece[low:high])
            else:
                result.append(terms.extract(8 * (size - low) - 1, 8 * (size - high), piece))
        offset += size
    return tuple(result)


def _canonical(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Join what belongs together, then part it again at every byte boundary between the parts of a concatenation."""
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return pieces if pieces[0] else ()
    result: list[Piece] = []
    run: list[Term] = []
    for piece in pieces:
        if isinstance(piece, Term):
            if piece.width % 8 or not piece.width:
                raise ValueError(f"a piece of {piece.width} bits is no number of bytes")
            run.append(piece)
        elif piece:
            _close_run(run, result)
            _append(result, piece)
    _close_run(run, result)
    return tuple(result)


def _append(result: list[Piece], piece: Piece) -> None:
    if result and isinstance(piece, bytes) and isinstance(result[-1], bytes):
        result[-1] += piece
    else:
        result.append(piece)


def _close_run(run: list[Term], result: list[Piece]) -> None:
    """Append a run of neighbouring terms in parts that start and end at byte boundaries, constant bytes as bytes."""
    if not run:
        return
    joined = terms.concat(*run)
    run.clear()
    parts = list(reversed(joined.args)) if joined.op == "concat" else [joined]
    open_parts: list[Term] = []
    while parts:
        part = parts.pop()
        filled = sum(p.width for p in open_parts) % 8
        if part.op == "const":
            # A constant goes up to the next boundary with what is open, and from there on as whole bytes.
            head = 8 - filled if filled else part.width - part.width % 8
            if 0 < head < part.width:
                parts.append(terms.extract(part.width - head - 1, 0, part))
                part = terms.extract(part.width - 1, part.width - head, part)
        open_parts.append(part)
        if (filled + part.width) % 8 == 0:
            closed = terms.concat(*open_parts)
            open_parts.clear()
            if closed.op == "const":
                _append(result, closed.args[0].to_bytes(closed.width // 8, "big"))
            else:
                _append(result, closed)


@dataclass(frozen=True, slots=True)
class Message:
    """One OpenFlow message to the controller (a message, not a write)."""

    step: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Packet:
    """One frame sent out of a data-plane port."""

    step: int
    port: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Close:
    """The agent closed the control connection."""

    step: int


@dataclass(frozen=True, slots=True)
class Crash:
    """The agent ended: `reason` is a signal's name ("SIGSEGV", "SIGABRT") or "exit N"."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Hang:
    """The agent never became quiet."""

    step: int


@dataclass(frozen=True, slots=True)
class Flood:
    """The agent sent without end; what it sent was cut off at a bound."""

    step: int


Event = Message | Packet | Close | Crash | Hang | Flood
Trace = tuple[Event, ...]

# Control messages first, packets by port, endings last: between these there is no order that two agents could share.
_RANK: dict[type, int] = {Message: 0, Packet: 1, Close: 2, Crash: 3, Hang: 4, Flood: 5}


def canonical_order(events: Iterable[Event]) -> Trace:
    """The events in canonical order: by step; messages in their order, packets by port (in order on one), endings."""

    def key(event: Event) -> tuple[int, int, int]:
        return event.step, _RANK[type(event)], event.port if isinstance(event, Packet) else 0

    return tuple(sorted(events, key=key))


def evaluate_trace(trace: Trace, values: Mapping[str, int]) -> Trace:
    """What the trace is under one input: every payload concrete."""
    memo: dict[Term, int] = {}
    result: list[Event] = []
    for event in trace:
        if isinstance(event, Message):
            event = Message(event.step, Payload.of(event.payload.evaluate(values, memo)))
        elif isinstance(event, Packet):
            event = Packet(event.step, event.port, Payload.of(event.payload.evaluate(values, memo)))
        result.append(event)
    return tuple(result)


def map_terms(trace: Trace, change: Callable[[Term], Term]) -> Trace:
    """The trace with other terms in its payloads."""
    return tuple(
        replace(event, payload=_changed(event.payload, change)) if isinstance(event, Message | Packet) else event
        for event in trace
    )


def _changed(payload: Payload, change: Callable[[Term], Term]) -> Payload:
    if not payload.variables:
        return payload
    pieces = tuple(piece if isinstance(piece, bytes) else change(piece) for piece in payload.pieces)
    return Payload(pieces, None if payload.length is None else change(payload.length))
