"""Text in memory that holds for one input only: where it may end, and what is known of its length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.machine.memory import Memory
from harness.machine.values import Sym, concrete
from harness.marks import is_marked, mark, may_be_zero, text_mark
from soft.solve import terms as t
from soft.solve.terms import Term

MOST_LENGTH = (1 << 31) - 1
"""What no printed text is longer than: its length is an int."""


@dataclass(frozen=True, slots=True)
class Length:
    """How long a text is in this run, and how short and how long it can be."""

    here: int
    least: int
    most: int


class Texts:
    """The printed texts of a process."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        # The byte that ends a text here → how much longer it may be for other inputs. Names of marks are used again
        # at some time, which bounds this.
        self._reach: dict[Term, int] = {}

    def mark(self, start: int, length: Length, end: int) -> None:
        """Mark a text from `start`, as far as it can be, but not from `end` on."""
        memory = self._memory
        behind = length.here if length.least == length.most else length.most + 1
        for index in range(min(behind, end - start)):
            byte = memory.read(start + index, 1)[0]
            term = text_mark() if index < length.least else mark()
            if index == length.here:
                self._reach[term] = length.most - length.here
            memory.store1(start + index, Sym(term, byte))

    def length(
        self, start: int, most: int | None = None, decide: Callable[[Term, bool], None] | None = None
    ) -> Length:
        """The length of a text, of which no more than `most` bytes count.

        `decide` hears whether a byte of the input ends it; without it, any of them may.
        """
        load, here, least = self._memory.load1, 0, None
        longest = None
        while most is None or here < most:
            byte = load(start + here)
            if isinstance(byte, Sym):
                if not is_marked(byte.term) and decide is not None:
                    decide(t.eq(byte.term, t.const(0, 8)), byte.value == 0)
                elif may_be_zero(byte.term):
                    least = here if least is None else least
                    if not byte.value:
                        reach = self._reach.get(byte.term)
                        longest = MOST_LENGTH if reach is None else here + reach
            if not concrete(byte):
                break
            here += 1
        longest = here if longest is None else longest
        return Length(here, here if least is None else least, longest if most is None else min(longest, most))


__all__ = ["MOST_LENGTH", "Length", "Texts"]
