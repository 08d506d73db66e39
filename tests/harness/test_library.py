"""Copies of any size do under the model what they do natively."""

from __future__ import annotations

import pytest

from soft.solve.evaluate import evaluate
from soft.trace import evaluate_trace
from tests.harness.echoing import native, outcome, values

# Negative sizes of several kinds, none, a few bytes, and more than a page.
_NUMBERS = (0, 4, 12, 13, 19, 20, 21, 40, 60, 5000)


@pytest.mark.parametrize("way", range(12))
@pytest.mark.parametrize("number", _NUMBERS)
def test_a_copy_is_as_it_is_natively(way: int, number: int) -> None:
    found = outcome("copying", way, number)
    assert evaluate_trace(found.trace, values(way, number)) == native("copying", way, number)
    assert all(evaluate(condition, values(way, number)) for condition in found.conditions)


@pytest.mark.parametrize("way", [0, 1, 2, 6, 7, 8])
def test_a_negative_size_is_a_matter_of_the_processor(way: int) -> None:
    assert outcome("copying", way, 13).marks == ("unstable",)
    assert outcome("copying", way, 33).marks == ()


@pytest.mark.parametrize("way", [9, 10, 11])
def test_room_that_is_known_is_not_exceeded(way: int) -> None:
    assert [type(event).__name__ for event in outcome("copying", way, 60).trace] == ["Crash"]
    assert outcome("copying", way, 60).marks == ()
