"""Bytes that say nothing about other inputs or other starts: each is a variable that no scenario has, so that it is
found wherever it goes.

Text that was printed holds for one input only. Bytes of the stack that the agent has not written since it was frozen
hold whatever was there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from soft.solve import terms as t
from soft.solve.terms import Term

APPROXIMATE = "approximate"
"""What a path says on which such a byte came out or decided something."""

# No run prints as many bytes that depend on its input. Two bytes that shared a variable would count as equal.
_COUNT = 1 << 16
_NAMES = frozenset(f"!{number}" for number in range(_COUNT))


# As many as harness.unwritten looks at.
UNWRITTEN_BYTES = 1 << 16
_UNWRITTEN = frozenset(f"?{number}" for number in range(UNWRITTEN_BYTES))


def mark_variables() -> Iterator[Term]:
    """Variables of one byte, each a new one."""
    return (t.var(f"!{number}", 8) for number in itertools.cycle(range(_COUNT)))


def is_marked(term: Term) -> bool:
    """Whether a term depends on a byte that holds for one input only."""
    return not _NAMES.isdisjoint(term.variables)


def unwritten_byte(number: int) -> Term:
    """A byte that was never written, by its place among those."""
    return t.var(f"?{number}", 8)


def unwritten_in(term: Term) -> frozenset[str]:
    """The unwritten bytes that a term depends on."""
    variables = term.variables
    return frozenset() if _UNWRITTEN.isdisjoint(variables) else _UNWRITTEN & variables
