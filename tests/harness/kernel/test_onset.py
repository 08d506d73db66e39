"""harness/kernel/onset.py: how long a condition lasts, against looking at every moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.kernel.onset import COUNT, COUNT_NAME, FOREVER, OFFSET, OFFSET_NAME, first_failure, lasting
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

X = t.zero_extend(48, t.var("x", 16))
START = 1_000_000


def time(base: int = START) -> Term:
    return t.add(OFFSET, t.const(base, 64))


def number(value: int) -> Term:
    return t.const(value, 64)


due = t.add(t.mul(X, number(1000)), number(START + 17))
CONDITIONS: dict[str, Callable[[], Term]] = {
    "before": lambda: t.ult(time(), due),
    "not behind": lambda: t.ule(time(), due),
    "signed": lambda: t.slt(t.sub(time(), number(START + 5000)), t.sub(X, number(4000))),
    "signed, not behind": lambda: t.sle(t.sub(time(), number(START + 5000)), t.sub(X, number(4000))),
    "negative difference": lambda: t.slt(t.sub(time(), due), number(0)),
    "positive difference": lambda: t.sle(number(0), t.sub(time(START + (1 << 28)), due)),
    "behind": lambda: t.ult(X, time()),
    "not that time": lambda: t.ne(time(), due),
    "that time": lambda: t.eq(time(), t.add(t.mul(X, number(1000)), number(START))),
    "seconds": lambda: t.ult(t.udiv(time(), number(1000)), t.add(X, number(1003))),
    "seconds, not behind": lambda: t.ule(t.udiv(time(), number(1000)), t.add(X, number(1003))),
    "32 bits": lambda: t.ult(t.extract(31, 0, t.sub(time(), number(START - 9))), t.extract(31, 0, t.add(X, number(9)))),
    "wraps": lambda: t.ult(t.extract(31, 0, X), t.extract(31, 0, t.add(OFFSET, number((1 << 32) - 500)))),
}


@pytest.mark.parametrize("name", CONDITIONS)
@settings(max_examples=60, deadline=None)
@given(x=st.integers(0, 65535), share=st.floats(0, 1))
def test_a_condition_holds_as_long_as_it_is_said_to(name: str, x: int, share: float) -> None:
    condition = CONDITIONS[name]()

    def holds(offset: int) -> bool:
        return bool(evaluate(condition, {"x": x, OFFSET_NAME: offset}))

    if not holds(0):
        return
    found = lasting(condition)
    assert found is not None
    duration = found if isinstance(found, int) else evaluate(found, {"x": x})
    assert holds(min(round(duration * share), (1 << 32) - 1))
    if duration < 1 << 32:
        assert holds(duration)
        assert not holds(duration + 1)
    else:
        assert duration == FOREVER or name in ("signed", "signed, not behind", "positive difference")


def test_what_is_not_recognised_is_unknown() -> None:
    assert lasting(t.ult(t.mul(time(), number(3)), X)) is None
    assert lasting(t.ult(time(), t.sub(X, time()))) is None
    assert lasting(t.ult(t.add(COUNT, OFFSET), X)) is None
    assert lasting(t.disj(t.ult(time(), due), t.ult(X, number(3)))) is None


@given(modulus=st.integers(2, 300), start=st.integers(0, 299))
@settings(max_examples=50, deadline=None)
def test_the_first_tick_that_counts(modulus: int, start: int) -> None:
    condition = t.ne(t.urem(t.add(COUNT, number(start)), number(modulus)), number(0))
    expected = next(tick for tick in range(1, 400) if (tick + start) % modulus == 0)
    assert first_failure(condition, 10, 1000) == expected
    assert first_failure(condition, 10, 1) == min(expected, 2)


def test_the_first_tick_that_counts_in_wide_terms() -> None:
    wide = t.mul(t.zero_extend(64, COUNT), t.const(1 << 60, 128))
    condition = t.ult(t.extract(127, 64, wide), number(7))
    assert evaluate(condition, {COUNT_NAME: 111})
    assert first_failure(condition, 10, 1000) == 112
    assert first_failure(condition, 10, 50) == 51
