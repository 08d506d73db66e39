"""A tie says one thing, whether it is evaluated, asked about or written down."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.model import Relation
from soft.crosscheck.slices import Slice, Slices
from soft.crosscheck.ties import Tie
from soft.crosscheck.values import contains
from soft.crosscheck.words import relation_texts
from soft.solve.evaluate import evaluate
from tests.soft.crosscheck.agents import scenario

WIDTHS = {"x": 8, "v": 8, "y": 6, "z": 7}


@st.composite
def ties(draw: st.DrawFn) -> Tie:
    equality: Literal["=", "≠"] = draw(st.sampled_from(("=", "≠")))
    bound: Literal["≥", "≤"] = draw(st.sampled_from(("≥", "≤")))
    factor = draw(st.integers(-1000, 1000).filter(bool))
    slanted = Tie("x", bound, "y", factor, draw(st.integers(-300, 300)))
    return draw(
        st.sampled_from([Tie("x", equality, "v"), Tie("x", equality, "z", bits=7, wild=draw(st.booleans())), slanted])
    )


@given(ties(), st.data())
def test_the_term_is_true_where_the_tie_holds(tie: Tie, data: st.DataObject) -> None:
    values = {name: data.draw(st.integers(0, (1 << width) - 1)) for name, width in WIDTHS.items()}
    assert bool(evaluate(tie.term(WIDTHS), values)) == tie.holds(values)


@given(ties().filter(lambda tie: tie.operator in ("≥", "≤")), st.integers(0, 255), st.integers(0, 255))
def test_beyond_are_the_values_that_leave_nothing(tie: Tie, a: int, b: int) -> None:
    low, high = sorted((a, b))
    beyond = tie.beyond(low, high, (1 << WIDTHS["y"]) - 1)
    for y in range(1 << WIDTHS["y"]):
        assert contains(beyond, y) != any(tie.holds({"x": x, "y": y}) for x in range(low, high + 1))


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("operator", ["=", "≠"])
def test_a_wildcard_is_a_field_again_in_the_relation(operator: str, wild: bool) -> None:
    tie = Tie("f*", operator, "p", bits=4, wild=wild)  # type: ignore[arg-type]
    slices = Slices(scenario(), replace(scenario()), {"f*": (Slice("wild", 0, 1), Slice("f", 0, 4))})
    relation = tie.relation(slices)
    assert relation == Relation("f", operator, "p", head="wild", wild=wild)  # type: ignore[arg-type]
    for head in (0, 1):
        for f in range(16):
            for p in range(16):
                assert relation.holds({"f": f, "p": p, "wild": head}) == tie.holds({"f*": head << 4 | f, "p": p})


def test_bounds_are_told_together() -> None:
    low, high = Relation("w", "≥", "t", 1000), Relation("w", "≤", "t", 1000, 999)
    assert relation_texts([high, Relation("a", "≠", "b"), low]) == ["w from 1000·t to 1000·t + 999", "a ≠ b"]
    assert relation_texts([Relation("w", "≤", "t", 1, -1)]) == ["w < t"]
    assert relation_texts([Relation("w", "≤", "t", 2, -3)]) == ["w ≤ 2·t - 3"]
    assert relation_texts([Relation("w", "≤", "t", -1, 8999)]) == ["w ≤ 8999 - t"]
    assert relation_texts([Relation("f", "=", "p", head="wild", wild=True)]) == ["f = p or wildcarded"]
    assert relation_texts([Relation("f", "≠", "p", head="wild", wild=True)]) == ["f ≠ p or wildcarded"]
    assert relation_texts([Relation("f", "≠", "p", head="wild")]) == ["f ≠ p and not wildcarded"]
