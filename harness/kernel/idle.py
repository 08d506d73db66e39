"""Ticks that change nothing: an agent that looks around every few milliseconds does so thousands of times in a wait.

Two ticks in a row after which the agent waits in the same state as before (but for the same few bytes, which hold the
time) are taken for idle. The clock then goes to the last tick before the wait ends; that one runs, at its own time. If
it does something after all, all that the skipped ticks would have done is done in it, and the path says `approximate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.kernel.clock import later, until
from harness.machine.values import Sym, Value, concrete, make
from soft.solve import terms as t

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

# Words of memory that may differ between two idle ticks: clocks, not tables.
_MOST_RESIDUE = 64
# Fewer ticks than this are not worth skipping.
_FEWEST = 4
MARK = "approximate: the ticks of a timer were taken together"


@dataclass(frozen=True, slots=True)
class _State:
    """What the agent is while it waits, as far as the next tick may depend on it."""

    now: int
    period: int
    registers: tuple[object, ...]
    pages: dict[int, bytes]
    symbols: dict[int, object]
    descriptors: tuple[object, ...]
    sent: int

    def residue(self, other: _State) -> frozenset[int] | None:
        """Which words of memory differ; None if anything else does, or too much."""
        same = self.period == other.period and self.registers == other.registers and self.sent == other.sent
        if not same or self.descriptors != other.descriptors or self.pages.keys() != other.pages.keys():
            return None
        found: set[int] = set()
        for page, content in self.pages.items():
            there = other.pages[page]
            if content != there:
                found.update((page << 12 | i) >> 3 for i in range(len(content)) if content[i] != there[i])
                if len(found) > _MOST_RESIDUE:
                    return None
        return frozenset(found) if self.symbols == other.symbols else None


class Idle:
    """Watches one run while the scenario waits."""

    def __init__(self) -> None:
        self._before: _State | None = None
        self._residue: frozenset[int] | None = None
        self._last: Value | None = None
        self._expected: _State | None = None

    def is_last(self, deadline: Value) -> bool:
        """Whether a deadline is the one behind the last tick of the wait."""
        if self._last is None:
            return False
        return until(deadline, self._last) == 0

    def jump(self, kernel: Kernel, deadline: Value) -> Value | None:
        """Where the clock may go instead of to the next deadline, or None."""
        now = kernel.clock.now
        if not isinstance(now, int) or not isinstance(deadline, int) or kernel.outside.wait_began is None:
            return None
        state = _capture(kernel, now, deadline - now)
        before, self._before = self._before, state
        residue = before.residue(state) if before is not None and before.now < now else None
        earlier, self._residue = self._residue, residue
        if residue is None or earlier is None or not residue <= earlier or state.period <= 0:
            return None
        horizon = kernel.outside.horizon
        if not kernel.clock.not_after(now + _FEWEST * state.period, horizon):
            return None
        last = _last_tick(now, state.period, kernel.outside.wait_began, horizon)
        self._last = later(last, state.period)
        self._expected = state
        return last

    def check(self, kernel: Kernel, ended: bool = False) -> None:
        """The agent waits again after the last tick, or the run has ended: say so if that tick was not idle."""
        expected, self._expected = self._expected, None
        if expected is None:
            return
        if ended or expected.residue(_capture(kernel, expected.now, expected.period)) is None:
            kernel.marks[MARK] = None


def _last_tick(now: int, period: int, start: int, horizon: Value) -> Value:
    """The time of the last tick that is not after the horizon; counted from the start of the wait, never negative."""
    count = (concrete(horizon) - now) // period
    if isinstance(horizon, int):
        return now + count * period
    # Ticks are at start + phase + k * period; the sums are written so that none of them wraps.
    gap = -(now - start) % period
    wait = t.sub(horizon.term, t.const(start, 64))
    whole = t.mul(t.udiv(t.add(wait, t.const(gap, 64)), t.const(period, 64)), t.const(period, 64))
    return make(t.add(whole, t.const(start - gap, 64)), now + count * period)


def _capture(kernel: Kernel, now: int, period: int) -> _State:
    memory, outside = kernel.memory, kernel.outside
    timers = [
        (number, type(each).__name__, _relative(getattr(each, "deadline", None), now), each.readable())
        for number, each in sorted(kernel.table.items())
    ]
    return _State(
        now,
        period,
        tuple(value.term if isinstance(value, Sym) else value for value in kernel.machine.registers),
        {page: bytes(content) for page, content in memory.written.items()},
        dict(memory.symbols),
        (*timers, kernel.signals.blocked, _relative(kernel.signals.alarm, now)),
        len(outside.events) + outside.written,
    )


def _relative(deadline: Value | None, now: int) -> object:
    if deadline is None:
        return None
    return deadline - now if isinstance(deadline, int) else deadline.term
