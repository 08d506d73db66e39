"""Values that hold for one input only, and what is known of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.machine.memory import PAGE
from harness.machine.values import Sym
from harness.marks import between, blur, is_marked, is_within, mark, may_be_zero, places, span, text_mark
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from tests.harness.machine.test_memory import FIRST, memory

numbers = st.integers(0, 70000)


def some_value(term: Term, seed: int) -> int:
    chance = random.Random(seed)
    return evaluate(term, {name: chance.randrange(256) for name in sorted(term.variables)})


@given(numbers, numbers, numbers, st.integers(0, 1000))
def test_a_bounded_value_stays_within_its_bounds(a: int, b: int, c: int, seed: int) -> None:
    least, here, most = sorted((a, b, c))
    value = between(here, least, most)
    if least == most:
        assert value == here
        return
    assert isinstance(value, Sym)
    assert is_marked(value.term)
    assert span(value.term) == (least, most)
    assert least <= some_value(value.term, seed) <= most


@given(numbers, numbers, st.integers(-5, 1 << 40), st.integers(0, 1000))
def test_the_span_of_a_sum_holds_all_its_values(least: int, more: int, base: int, seed: int) -> None:
    value = between(least, least, least + more + 1)
    assert isinstance(value, Sym)
    narrow = t.sign_extend(32, t.extract(31, 0, value.term))
    total = t.add(narrow, t.const(base, 64))
    low, high = span(total)
    assert low <= some_value(total, seed) <= high
    assert places(total, 4) in (range(low, high + 4), None)


def test_a_byte_of_text_is_not_zero() -> None:
    assert not may_be_zero(text_mark())
    assert may_be_zero(mark())
    assert all(some_value(text_mark(), seed) for seed in range(300))


def test_no_two_marks_are_the_same() -> None:
    assert len({mark() for _ in range(1000)}) == 1000


def test_blurred_bytes_keep_their_value_in_this_run() -> None:
    m = memory()
    where = range(FIRST * PAGE + 10, FIRST * PAGE + 14)
    before = m.read(where.start, 8)
    blur(m, where)
    assert m.read(where.start, 8) == before
    assert [isinstance(value, Sym) for value in m.read_values(where.start, 6)] == [True] * 4 + [False] * 2


def test_permissions_of_places() -> None:
    m = memory()
    both = range(FIRST * PAGE + PAGE - 1, FIRST * PAGE + PAGE + 1)
    assert is_within(m, both, "w")
    assert not is_within(m, range(both.start, (FIRST + 2) * PAGE + 1), "w")
    assert is_within(m, range(both.start, (FIRST + 2) * PAGE + 1), "r")
    assert not is_within(m, range((FIRST - 1) * PAGE, both.start), "r")
