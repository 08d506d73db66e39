"""Bytes that hold for one input only: each is a variable that no scenario has, so that it is found wherever it goes."""

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


def mark_variables() -> Iterator[Term]:
    """Variables of one byte, each a new one."""
    return (t.var(f"!{number}", 8) for number in itertools.cycle(range(_COUNT)))


def is_marked(term: Term) -> bool:
    """Whether a term depends on a byte that holds for one input only."""
    return not _NAMES.isdisjoint(term.variables)
