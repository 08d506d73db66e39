"""Formatted text takes no paths, and a path says so where it matters."""

from __future__ import annotations

import pytest

from harness.run import Outcome
from soft.solve.evaluate import evaluate
from soft.trace import Trace, evaluate_trace
from tests.harness import echoing
from tests.harness.echoing import values


def native(way: int, number: int) -> Trace:
    return echoing.native("printing", way, number)


def outcome(way: int, number: int = 4711) -> Outcome:
    return echoing.outcome("printing", way, number)


_WAYS = range(18)
_NUMBERS = (0, 7, 10, 77, 999, 4711, 65535)
# Ways in which a text, its length or what is behind it comes out or decides.
_MATTERS = (1, 2, 4, 5, 6, 7, 10, 11, 16)


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("number", [0, 77, 4711])
def test_the_input_itself_is_as_it_is_natively(way: int, number: int) -> None:
    predicted = evaluate_trace(outcome(way, number).trace, values(way, number))
    assert predicted == native(way, number)


@pytest.mark.parametrize("way", [way for way in _WAYS if way not in _MATTERS])
@pytest.mark.parametrize("number", _NUMBERS)
def test_an_exact_path_tells_about_other_numbers(way: int, number: int) -> None:
    found = outcome(way)
    assert found.marks == ()
    if all(evaluate(condition, values(way, number)) for condition in found.conditions):
        assert evaluate_trace(found.trace, values(way, number)) == native(way, number)


@pytest.mark.parametrize("way", [way for way in _WAYS if way != 13])
def test_no_condition_is_about_the_number(way: int) -> None:
    assert not any("m0.data.number" in condition.variables for condition in outcome(way).conditions)


@pytest.mark.parametrize("way", _MATTERS)
def test_text_that_matters_makes_a_path_approximate(way: int) -> None:
    assert outcome(way).marks == ("approximate",)


def test_digits_that_a_condition_has_counted_are_no_approximation() -> None:
    found = outcome(13, 321)
    assert found.marks == ()
    assert evaluate_trace(found.trace, values(13, 999)) == native(13, 999)
