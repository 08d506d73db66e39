"""Virtual time, as numbers and as terms over the input."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.kernel.clock import MILLISECOND, Clock, from_parts, later, split, until
from harness.machine.values import Sym, Value
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

WAITED = t.var("w0.ms", 32)
TIMES = st.integers(0, 1 << 31)


def symbolic(milliseconds: int) -> Sym:
    return Sym(t.zero_extend(32, WAITED), milliseconds)


def agrees(value: Value, milliseconds: int) -> int:
    """The number, if the term beside it is worth the same."""
    if isinstance(value, int):
        return value
    assert evaluate(value.term, {"w0.ms": milliseconds}) == value.value
    return value.value


@given(TIMES, TIMES)
def test_sums_and_differences(base: int, waited: int) -> None:
    total = later(base, symbolic(waited))
    assert agrees(total, waited) == base + waited
    assert agrees(until(total, base), waited) == waited
    assert until(later(total, 20), total) == 20


@given(TIMES, st.sampled_from([1000, MILLISECOND]))
def test_parts_of_a_time(milliseconds: int, unit: int) -> None:
    whole, rest = milliseconds // 1000, milliseconds % 1000 * unit
    assert split(milliseconds, unit) == (whole, rest)
    assert split(symbolic(milliseconds), unit)[0].__class__ is Sym
    parts = [agrees(part, milliseconds) for part in split(symbolic(milliseconds), unit)]
    assert parts == [whole, rest]
    assert from_parts(whole, rest, unit) == milliseconds
    assert agrees(from_parts(symbolic(milliseconds), rest, unit), milliseconds) == 1000 * milliseconds + rest // unit


def test_a_timer_never_fires_early() -> None:
    assert from_parts(1, 1, MILLISECOND) == 1001


def test_which_comes_first_is_a_condition_of_the_path() -> None:
    met: list[tuple[Term, bool]] = []
    clock = Clock(5_000_000_000, 1_000_000_000_000, lambda condition, holds: met.append((condition, holds)))
    assert clock.not_after(3, 4)
    assert met == []
    assert not clock.not_after(later(clock.now, symbolic(70)), later(clock.now, 60))
    ((condition, holds),) = met
    assert not holds
    assert [evaluate(condition, {"w0.ms": waited}) for waited in (59, 60, 61)] == [1, 1, 0]


def test_clocks_differ_by_a_constant() -> None:
    clock = Clock(5_000_000_000, 1_000_000_000_000, lambda condition, holds: None)
    assert (clock.read(), clock.read(realtime=True)) == (5000, 1_000_000)
    clock.advance(6000)
    assert (clock.read(), clock.read(realtime=True), clock.monotonic(1_001_000)) == (6000, 1_001_000, 6000)


def test_who_spins_sees_time_pass() -> None:
    clock = Clock(0, 0, lambda condition, holds: None)
    for _ in range(100_000):
        if clock.read() == 3:
            return
    raise AssertionError("time stands still")
