"""A tick that is run for all ticks like it: keeps the conditions under which another one would go the same way.

The run itself goes on as if nothing were: its own conditions are those at the time that it really is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.kernel.onset import COUNT, COUNT_NAME, OFFSET, OFFSET_NAME, depends
from harness.machine.values import Sym, Value, make
from harness.marks import span
from harness.pieces import rebuilt
from soft.solve import terms as t
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.machine.machine import Decisions
    from harness.machine.memory import Memory

_HERE: dict[Term, Term] = {t.var(OFFSET_NAME, 32): t.const(0, 32), COUNT: t.const(0, 64)}
_MOST_KEPT = 100_000


def here(term: Term) -> Term:
    """A term at the tick that really is: nothing has passed since it."""
    if not depends(term):
        return term
    if len(_HERE) > _MOST_KEPT:
        for known in list(_HERE)[2:]:
            del _HERE[known]
    return rebuilt(term, _HERE)


def here_value(value: Value) -> Value:
    return make(here(value.term), value.value) if isinstance(value, Sym) and depends(value.term) else value


class Probe:
    """What decides in place of the path, for the length of one tick."""

    def __init__(self, path: Decisions | None, branch: Callable[[Term, bool], None], memory: Memory) -> None:
        self.path = path
        self.conditions: dict[Term, None] = {}
        self._branch = branch
        self._memory = memory

    @property
    def values(self) -> Mapping[str, int]:
        return {**getattr(self.path, "values", {}), OFFSET_NAME: 0, COUNT_NAME: 0}

    def branch(self, condition: Term, holds: bool) -> None:
        literal = condition if holds else t.negate(condition)
        self._keep(literal)
        now = here(literal)
        if now.op != "const":
            self._branch(now, True)

    def _keep(self, literal: Term) -> None:
        for part in literal.args if literal.op == "and" else (literal,):
            if depends(part):
                self.conditions[part] = None

    def pin(self, value: Sym) -> int:
        self._keep(t.eq(value.term, t.const(value.value, value.term.width)))
        now = here_value(value)
        if isinstance(now, int):
            return now
        assert self.path is not None
        return self.path.pin(now)

    def read(self, address: Sym, size: int) -> Value:
        if self.path is not None and not depends(address.term):
            return self.path.read(address, size)
        return self._memory.load(self.pin(address), size)

    def most(self, value: Sym) -> int | None:
        if self.path is not None and not depends(value.term):
            return self.path.most(value)
        return self.pin(value)

    def simplify(self, value: Value, given: Term) -> Value:
        if self.path is None or depends(given) or (isinstance(value, Sym) and depends(value.term)):
            return value
        return self.path.simplify(value, given)

    def settled(self, condition: Term, holds: bool) -> bool:
        """Whether a branch needs no condition: not where it depends on the tick, which is then kept."""
        if self.path is not None and not depends(condition):
            return self.path.settled(condition, holds)
        self.branch(condition, holds)
        return True

    def bounds(self, value: Sym) -> tuple[int, int]:
        if self.path is not None and not depends(value.term):
            return self.path.bounds(value)
        return span(value.term)

    def place(self, address: Sym, size: int) -> int:
        if self.path is not None and not depends(address.term):
            return self.path.place(address, size)
        return self.pin(address)

    def stored(self, address: Sym, size: int) -> None:
        if self.path is not None and not depends(address.term):
            self.path.stored(address, size)


__all__ = ["COUNT", "OFFSET", "Probe", "here", "here_value"]
