"""Virtual time, in milliseconds. It moves only while the agent waits, so a run takes no real time and repeats exactly.

A scenario may wait for a symbolic time; then the clock is a term over it, and which of two things comes first is
decided like a branch: by the value in this run, with the condition recorded.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.machine.values import Value, concrete, make, term_of
from soft.solve import terms as t
from soft.solve.terms import Term

MILLISECOND = 1_000_000  # in nanoseconds
_SECOND = 1000  # in milliseconds
# An agent that reads the clock this often without waiting spins until time passes: let it pass.
_PATIENCE = 20_000


class Clock:
    """All clocks of one run; they differ by constants only, and never run backwards."""

    def __init__(self, monotonic_ns: int, realtime_ns: int, branch: Callable[[Term, bool], None]) -> None:
        self.now: Value = monotonic_ns // MILLISECOND
        self._offset = (realtime_ns - monotonic_ns) // MILLISECOND
        self._branch = branch
        self._reads = 0
        self._moment = 0

    def read(self, realtime: bool = False) -> Value:
        """Milliseconds on the monotonic or the realtime clock."""
        self._reads += 1
        if self._reads > _PATIENCE:
            self.now = later(self.now, 1)
        return later(self.now, self._offset) if realtime else self.now

    def monotonic(self, realtime: Value) -> Value:
        """When it is that time of day, on the monotonic clock."""
        return later(realtime, -self._offset)

    def advance(self, to: Value) -> None:
        """Move to a time that is not in the past."""
        self.now = to
        self._reads = 0

    def settle(self, milliseconds: int) -> None:
        """A step begins: from now on so much time may pass without a wait."""
        self._moment = milliseconds

    def spend(self, milliseconds: int) -> bool:
        """Take from the time that a step may take; False if there is not so much left."""
        if milliseconds > self._moment:
            return False
        self._moment -= max(milliseconds, 0)
        return True

    def not_after(self, first: Value, second: Value) -> bool:
        """Whether one time is not after another; a condition of the path where that depends on the input."""
        holds = concrete(first) <= concrete(second)
        if isinstance(first, int) and isinstance(second, int):
            return holds
        self._branch(t.ule(term_of(first, 64), term_of(second, 64)), holds)
        return holds


def later(time: Value, milliseconds: Value) -> Value:
    """The sum of two times."""
    if isinstance(time, int) and isinstance(milliseconds, int):
        return time + milliseconds
    total = concrete(time) + concrete(milliseconds)
    return make(t.add(term_of(time, 64), term_of(milliseconds, 64)), total & (1 << 64) - 1)


def until(time: Value, now: Value) -> Value:
    """How long it is from one time to another: an integer wherever both depend on the input in the same way."""
    if isinstance(time, int) and isinstance(now, int):
        return time - now
    left = make(t.sub(term_of(time, 64), term_of(now, 64)), concrete(time) - concrete(now) & (1 << 64) - 1)
    return left - (1 << 64) if isinstance(left, int) and left >> 63 else left


def split(time: Value, unit: int) -> tuple[Value, Value]:
    """Whole seconds, and the rest in units of which a millisecond has `unit`."""
    if isinstance(time, int):
        return time // _SECOND, time % _SECOND * unit
    whole, rest = divmod(time.value, _SECOND)
    thousand = t.const(_SECOND, 64)
    fraction = t.mul(t.urem(time.term, thousand), t.const(unit, 64))
    return make(t.udiv(time.term, thousand), whole), make(fraction, rest * unit)


def from_parts(seconds: Value, fraction: Value, unit: int) -> Value:
    """Milliseconds from seconds and a fraction, rounded up: a timer never fires early."""
    if isinstance(seconds, int) and isinstance(fraction, int):
        return seconds * _SECOND + -(-fraction // unit)
    up = t.udiv(t.add(term_of(fraction, 64), t.const(unit - 1, 64)), t.const(unit, 64))
    total = t.add(t.mul(term_of(seconds, 64), t.const(_SECOND, 64)), up)
    return make(total, concrete(seconds) * _SECOND + -(-concrete(fraction) // unit))
