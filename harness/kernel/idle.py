"""Ticks that change nothing: an agent that looks around every few milliseconds does so thousands of times in a wait.

Such a tick is run once for all of them, with the time as a variable (probe.py). If the agent then waits in the state
from which it came, but for clocks and counters that have gone on by as much as in any other tick (resting.py), all
ticks do the same as long as the conditions hold under which this one went its way. How long that is can be computed
(onset.py): the clock goes to the first tick that may be different, and that one is run at its own time, or to the end
of the wait. So nothing is assumed of a tick that was skipped: it was proved to be like the one that ran.

An agent whose ticks cannot be proved to be alike is followed tick by tick, up to a bound. Behind that the clock goes to
the last tick of the wait, in which everything that is due by then is done, and the path says `approximate`. If that is
known from the beginning (harness.run tries it once) nothing is proved, and the bound is a higher one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.kernel.clock import later, until
from harness.kernel.onset import OFFSET, RESERVED, first_failure, lasting
from harness.kernel.probe import Probe, here, here_value
from harness.kernel.resting import Resting, Shift, capture, clean, install
from harness.machine.values import Sym, Value, concrete, make, term_of
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kernel.kernel import Kernel

# How many ticks one proof skips: 2.7 minutes of them at 10 ms. Beyond, it is made again.
_MOST_SKIPPED = 1 << 14
# Ticks that are followed one by one before the others of the wait are skipped without proof; so many blocks of other
# threads count as much; and how many must be skipped at once for the count to begin anew.
_MOST_TICKS = 256
_MOST_BLOCKS = 100_000
_WORTH = 16
# The same where nothing is tried to be proved.
_MOST_FOLLOWED = 1024
# How often it is tried to prove ticks alike, each time with two of them: the first shows the sizes of counters.
_MOST_ATTEMPTS = 6
# How often ticks are then taken for each other: first what counts becomes a term, then what was computed from it. The
# second time is only tried where sizes were not the reason.
_MOST_GENERAL = 3
# Milliseconds beyond which nothing is computed: no scenario waits so long, and sums of such times do not wrap.
_FAR = 1 << 31
MARK = "approximate: ticks of a timer were skipped that may not have been idle"


@dataclass(frozen=True, slots=True)
class Move:
    """Where the clock goes next, None for the end of the wait; and the deadline of the call in which the agent waits,
    as of then."""

    to: Value | None
    deadline: Value | None


class Idle:
    """Watches one run while the scenario waits."""

    def __init__(self, kernel: Kernel, branch: Callable[[Term, bool], None], proves: bool) -> None:
        self._kernel = kernel
        self._branch = branch
        self._proves = proves
        self.gives_up: Callable[[], None] = lambda: None
        """Called where ticks are skipped without proof, or no proof is tried any more."""
        self._probe: Probe | None = None
        self._origin: Resting | None = None
        """The state from which the probe began."""
        self._generality = 0
        """How often ticks were taken for each other to come to that state: 0 if it is that of one tick."""
        self._end: Resting | None = None
        """The state in which it ended."""
        self._conditions: dict[Term, None] = {}
        self._sizes: dict[int, int] = {}
        """The sizes of counters, by place, where they are not of eight bytes."""
        self._attempts = 0
        self._ticks = 0
        self._blocks = 0
        self._period = 0
        """That of the tick before."""
        self._step = -1

    # ---------------------------------------------------------------------------------------------- for the kernel

    @property
    def is_plain(self) -> bool:
        """Whether nothing is known of ticks, and none is proved."""
        return self._probe is None and self._origin is None

    def follow(self, branch: Callable[[Term, bool], None]) -> None:
        """From now on these are the decisions of another path."""
        self._branch = branch

    def branch(self, condition: Term, holds: bool) -> None:
        """What the kernel itself decides, during a probe and otherwise."""
        if self._probe is not None:
            self._probe.branch(condition, holds)
        elif (now := here(condition)).op != "const":
            self._branch(now, holds)

    def now(self, value: Value) -> Value:
        """A value that somebody has held while the probe may have ended: then it is as it really is."""
        return value if self._probe is not None else here_value(value)

    def rests(self, deadline: Value | None) -> Value | None:
        """The agent waits again, until a deadline. If this was a probe, it is over; gives the deadline without it."""
        if self._probe is None:
            return deadline
        self._end = capture(self._kernel, here_value(self._kernel.clock.now), deadline)
        self._leave()
        return None if deadline is None else here_value(deadline)

    def speaks(self, data: Sequence[Value]) -> Sequence[Value]:
        """The agent does something that can be seen: this is no idle tick."""
        if self._probe is None:
            return data
        self.stop()
        return [here_value(value) for value in data]

    def stop(self) -> None:
        """Forget what was found out about ticks so far."""
        if self._probe is not None:
            self._leave()
        self._origin = self._end = None

    def tick(self, due: Value, deadline: Value | None) -> Move:
        """A timer is about to fire while the scenario waits: let it, or go to a tick that is worth it."""
        kernel = self._kernel
        origin, end, conditions = self._origin, self._end, self._conditions
        self.stop()
        if kernel.outside.step != self._step:
            self._step, self._ticks, self._attempts = kernel.outside.step, 0, 0
            self._blocks = self._of_others()
        now = kernel.clock.now
        period = until(due, now)
        if not isinstance(period, int) or period <= 0:
            return Move(due, deadline)
        self._ticks += 1
        repeats, self._period = period == self._period, period
        if not self._proves:
            if self._ticks > _MOST_FOLLOWED and repeats:
                return self._to_the_last(capture(kernel, now, deadline).moving(due), period)
            return Move(due, deadline)
        state = plain = capture(kernel, now, deadline)
        generality, self._generality = self._generality, 0
        if origin is not None and end is not None and _is_tick(origin, end, now, period):
            if origin.recurs(end, period, self._most(period)):
                self._attempts = 0
                return self._skip(end, list(conditions), period) or Move(due, deadline)
            if generality < (1 if self._attempts < _MOST_ATTEMPTS // 2 else _MOST_GENERAL):
                general = origin.counting(end, period, self._sizes)
                state, self._generality = (state, 0) if general is None else (general, generality + 1)
            if not self._generality:
                self._attempts += 1
                if generality <= 1:
                    # Bytes of a counter may be the same numbers as those of a longer one.
                    self._sizes |= end.sizes(origin.parts_from(end, period))
        is_enough = self._ticks > _MOST_TICKS or self._of_others() - self._blocks > _MOST_BLOCKS
        if is_enough and repeats:
            self.gives_up()
            return self._to_the_last(plain.moving(due), period)
        if self._attempts > _MOST_ATTEMPTS:
            self.gives_up()
            return Move(due, deadline)
        self._origin = state
        return self._begin(state, due)

    def _of_others(self) -> int:
        """The blocks that other threads have run."""
        return self._kernel.machine.executed - self._kernel.machine.own

    # ---------------------------------------------------------------------------------------------- probes

    def _begin(self, state: Resting, due: Value) -> Move:
        """Let the timer fire at any time of such a tick."""
        kernel = self._kernel
        probe = self._probe = Probe(kernel.machine.decisions, self._branch, kernel.memory)
        self._conditions = probe.conditions
        deadline = install(kernel, state)
        kernel.machine.decisions = probe
        return Move(Sym(t.add(term_of(due, 64), OFFSET), concrete(due)), deadline)

    def _leave(self) -> None:
        assert self._probe is not None
        self._kernel.machine.decisions = self._probe.path
        self._probe = None
        clean(self._kernel, here)

    # ---------------------------------------------------------------------------------------------- skipping

    def _skip(self, state: Resting, conditions: list[Term], period: int) -> Move | None:
        """All ticks behind a state are alike while the conditions hold: go to the first one that may not be."""
        kernel = self._kernel
        lasts = self._all_hold_for(conditions, period)
        if isinstance(lasts, int):
            if lasts < period:
                return None
        elif self._kernel.clock.not_after(lasts, period - 1):
            return None
        before = _whole(lasts, period)
        event = later(kernel.clock.now, later(before, period))
        if not kernel.clock.not_after(event, kernel.outside.horizon):
            return self._to_the_end(state, period)
        if not isinstance(before, int) or before >= _WORTH * period:
            self._ticks, self._blocks = 0, self._of_others()
        return Move(event, install(kernel, state, _moved(before, period)))

    def _to_the_end(self, state: Resting, period: int) -> Move:
        """The last tick of the wait has been; the next one would be behind its end."""
        outside = self._kernel.outside
        left = _whole(until(outside.horizon, self._kernel.clock.now), period, outside.longest)
        return Move(None, install(self._kernel, state, _moved(left, period)))

    def _to_the_last(self, state: Resting, period: int) -> Move:
        """Without proof: the last tick of the wait is the next."""
        kernel = self._kernel
        kernel.marks[MARK] = None
        # What is left of the wait is shorter than a period: what happens in it is followed.
        self._ticks, self._blocks = 0, self._of_others()
        left = _whole(until(kernel.outside.horizon, kernel.clock.now), period, kernel.outside.longest)
        return Move(later(kernel.clock.now, left), install(kernel, state, _moved(later(left, -period), period)))

    def _most(self, period: int) -> int:
        """How many ticks are looked at: no wait is longer."""
        return min(self._kernel.outside.longest // period + 1, _MOST_SKIPPED)

    def _all_hold_for(self, conditions: list[Term], period: int) -> Value:
        """For how many milliseconds all of the conditions hold at every tick."""
        most = self._most(period)
        shortest: Value = min(period * most, _FAR)
        for condition in conditions:
            if condition.variables <= RESERVED:
                duration: Value = period * first_failure(condition, period, most) - 1
            else:
                found = lasting(condition)
                if found is None:
                    return 0
                if isinstance(found, int):
                    duration = found
                else:
                    values = getattr(self._kernel.machine.decisions, "values", {})
                    duration = make(found, evaluate(found, values))
            if self._kernel.clock.not_after(duration, shortest):
                shortest = duration
        return shortest


def _is_tick(origin: Resting, end: Resting, now: Value, period: int) -> bool:
    """Whether a probe was a tick like the next: it took as long, and the agent still is where it ended."""
    return until(end.now, origin.now) == period and until(now, end.now) == 0 and origin.alike(end)


def _whole(time: Value, period: int, most: int = (1 << 32) - 1) -> Value:
    """The time, which is known to be `most` at most, without what is left of its last period.

    Solvers divide bit by bit: no more bits than needed.
    """
    if isinstance(time, int):
        return time // period * period
    width = min(max(most.bit_length(), period.bit_length()), 63)
    unit = t.const(period, width)
    whole = t.mul(t.udiv(t.extract(width - 1, 0, time.term), unit), unit)
    return make(t.zero_extend(64 - width, whole), time.value // period * period)


def _moved(by: Value, period: int) -> Shift:
    term = term_of(by, 64)
    return Shift(term, t.udiv(term, t.const(period, 64)))
