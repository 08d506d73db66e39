"""The distinct outputs of all agents, and the condition under which two of them differ."""

from __future__ import annotations

from collections.abc import Sequence

from soft.bundle.model import group_key, may_match
from soft.errors import SoftError
from soft.solve import terms
from soft.solve.terms import FALSE, TRUE, Term
from soft.trace import Message, Packet, Payload, Trace


class Outputs:
    """Traces by number: equal traces have one number, whichever bundle they come from."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self._numbers: dict[Trace, int] = {}
        self._differences: dict[tuple[int, int], tuple[Term, ...]] = {}

    def add(self, traces: Sequence[Trace]) -> list[int]:
        """The numbers of a bundle's traces."""
        found = []
        for trace in traces:
            number = self._numbers.setdefault(trace, len(self.traces))
            if number == len(self.traces):
                self.traces.append(trace)
            found.append(number)
        return found

    def difference(self, a: int, b: int) -> tuple[Term, ...]:
        """Conditions of which one holds exactly if the outputs differ: none if they never do, TRUE if always."""
        if a == b:
            return ()
        key = (a, b) if a < b else (b, a)
        found = self._differences.get(key)
        if found is None:
            found = self._differences[key] = difference(self.traces[key[0]], self.traces[key[1]])
        return found


def difference(a: Trace, b: Trace) -> tuple[Term, ...]:
    """Conditions of which one holds exactly if two traces differ."""
    if not may_match(group_key(a), group_key(b)):
        return (TRUE,)
    found: dict[Term, None] = {}
    try:
        for x, y in zip(a, b, strict=True):
            if isinstance(x, Message | Packet) and isinstance(y, Message | Packet):
                for condition in _payloads(x.payload, y.payload):
                    if condition is TRUE:
                        return (TRUE,)
                    if condition is not FALSE:
                        found[condition] = None
    except RecursionError:
        raise SoftError("Two outputs cannot be compared: their terms nest too deep.") from None
    return tuple(found)


def _payloads(a: Payload, b: Payload) -> list[Term]:
    if a == b:
        return []
    if a.length is None and b.length is None:
        return _pieces(a, b)
    # Only a part of the bytes is sent: the lengths differ, or a byte within them does.
    length_a, length_b = _length(a), _length(b)
    result = [terms.ne(length_a, length_b)]
    for place, (x, y) in enumerate(zip(a.each_byte(), b.each_byte(), strict=False)):
        if x is not y and x != y:
            sent = terms.ult(terms.const(place, 16), length_a)
            result.append(terms.conj(sent, terms.ne(_byte(x), _byte(y))))
    return result


def _pieces(a: Payload, b: Payload) -> list[Term]:
    """Payloads of one size, cut wherever a piece of either ends."""
    cuts = sorted(_ends(a) | _ends(b))
    result = []
    start = 0
    for stop in cuts:
        x, y = a.field(start, stop), b.field(start, stop)
        if isinstance(x, bytes) and isinstance(y, bytes):
            if x != y:
                return [TRUE]
        else:
            result.append(terms.ne(_term(x), _term(y)))
        start = stop
    return result


def _ends(payload: Payload) -> set[int]:
    ends, offset = set(), 0
    for piece in payload.pieces:
        offset += len(piece) if isinstance(piece, bytes) else piece.width // 8
        ends.add(offset)
    return ends


def _term(value: bytes | Term) -> Term:
    return terms.const(int.from_bytes(value, "big"), 8 * len(value)) if isinstance(value, bytes) else value


def _byte(value: int | Term) -> Term:
    return terms.const(value, 8) if isinstance(value, int) else value


def _length(payload: Payload) -> Term:
    if payload.length is None:
        return terms.const(payload.size, 16)
    # The pieces hold the most there can be, whatever the length says.
    most = terms.const(payload.size, 16)
    return terms.ite(terms.ult(most, payload.length), most, payload.length)
