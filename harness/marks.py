"""Values that hold for one input only: each is a variable that no scenario has, so that it is found wherever it goes.

What is known of such a value for every input is in its term: a length that lies between two bounds, a byte that is not
zero. A decision that comes out the same for all such values is no approximation.

Bytes of the stack that the agent has not written since it was frozen are such variables too: they hold whatever was
there. So are random numbers.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from harness.machine.values import Sym, Value
from soft.solve import terms as t
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.machine.memory import Memory

APPROXIMATE = "approximate"
"""What a path says on which such a value came out or decided something."""

UNSTABLE = "unstable"
"""What a path says that depends on bytes which the agent reads and never wrote, or on the processor that it runs on."""

# No run prints as many bytes that depend on its input. Two bytes that shared a variable would count as equal.
_COUNT = 1 << 16
_NAMES = tuple(f"!{number}" for number in range(_COUNT))
_ALL_NAMES = frozenset(_NAMES)
_names = itertools.cycle(_NAMES)
# A pointer that may stand at more places than this says nothing about any of them. Each store through it takes as many
# marks, of which a run must not need more than there are.
_MOST_PLACES = 1 << 10
# As many as harness.unwritten looks at.
UNWRITTEN_BYTES = 1 << 16
# Random numbers that a run takes, each a variable as well; one that takes more is followed without.
RANDOM_BYTES = 1 << 12
_UNWRITTEN = frozenset(f"?{number}" for number in range(UNWRITTEN_BYTES + RANDOM_BYTES))


def mark() -> Term:
    """A byte of which nothing is known."""
    return t.var(next(_names), 8)


def text_mark() -> Term:
    """A byte of which nothing is known but that it is not zero."""
    byte = mark()
    return t.ite(t.eq(byte, t.const(0, 8)), t.const(1, 8), byte)


def may_be_zero(term: Term) -> bool:
    """Whether a marked byte may end a text."""
    return not (term.op == "ite" and term.args[1] is t.const(1, 8) and term.args[2].op == "var")


def between(value: int, least: int, most: int, width: int = 64) -> Value:
    """A value that is this one in this run, and anything from `least` to `most` for other inputs."""
    assert least <= value <= most
    if least == most:
        return value
    size = -(-(most - least + 1).bit_length() // 8)
    above = t.urem(t.concat(*(mark() for _ in range(size))), t.const(most - least + 1, 8 * size))
    return Sym(t.add(t.zero_extend(width - 8 * size, above), t.const(least, width)), value)


def is_marked(term: Term) -> bool:
    """Whether a term depends on a value that holds for one input only."""
    return not _ALL_NAMES.isdisjoint(term.variables)


def is_uncertain(value: Value) -> bool:
    """Whether a value holds for one input only."""
    return isinstance(value, Sym) and is_marked(value.term)


def span(term: Term) -> tuple[int, int]:
    """Bounds of a term, whatever its variables are."""
    if term.op == "const":
        return term.args[0], term.args[0]
    if term.op == "bvadd":
        first, second = span(term.args[0]), span(term.args[1])
        least, most = first[0] + second[0], first[1] + second[1]
        wraps = 1 << term.width
        if least >> term.width == most >> term.width:
            return least % wraps, most % wraps
    elif term.op == "concat":
        least = most = 0
        for part in term.args:
            low, high = span(part)
            least, most = least << part.width | low, most << part.width | high
        return least, most
    elif term.op == "extract" and term.args[1] == 0:
        least, most = span(term.args[2])
        if not most >> term.width:
            return least, most
    elif term.op == "ite":
        (low, high), (other_low, other_high) = span(term.args[1]), span(term.args[2])
        return min(low, other_low), max(high, other_high)
    return 0, term.most


def places(address: Term, size: int) -> range | None:
    """All bytes that an access of `size` bytes may touch; None if they are too many to tell."""
    least, most = span(address)
    return range(least, most + size) if most - least < _MOST_PLACES else None


def blur(memory: Memory, where: range) -> None:
    """From now on these bytes hold for this input only."""
    for place in where:
        memory.store1(place, Sym(mark(), memory.read(place, 1)[0]))


def is_within(memory: Memory, where: range, how: str) -> bool:
    """Whether all of these bytes may be read ("r") or written ("w")."""
    pages = range(where.start >> 12, (max(where.stop - 1, where.start) >> 12) + 1)
    return all(how in (memory.permissions(page) or "") for page in pages)


def unwritten_byte(number: int) -> Term:
    """A byte that was never written, by its place among those."""
    return t.var(f"?{number}", 8)


def random_byte(number: int) -> Term:
    """A random byte, by its place among those of a run. What is said of unwritten bytes is said of these, too."""
    return unwritten_byte(UNWRITTEN_BYTES + number)


def unwritten_in(term: Term) -> frozenset[str]:
    """The unwritten bytes that a term depends on."""
    variables = term.variables
    return frozenset() if _UNWRITTEN.isdisjoint(variables) else _UNWRITTEN & variables
