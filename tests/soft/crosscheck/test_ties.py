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
from soft.crosscheck.words import relation_texts
from soft.solve.evaluate import evaluate
from tests.soft.crosscheck.agents import scenario

WIDTHS = {"x": 8, "v": 8, "y": 6, "z": 7}


@st.composite
def ties(draw: st.DrawFn) -> Tie:
    equality: Literal["=", "≠"] = draw(st.sampled_from(("=", "≠")))
    bound: Literal["≥", "≤"] = draw(st.sampled_from(("≥", "≤")))
    slanted = Tie("x", bound, "y", draw(st.integers(1, 1000)), draw(st.integers(-300, 300)))
    return draw(st.sampled_from([Tie("x", equality, "v"), Tie("x", equality, "z", bits=7), slanted]))


@given(ties(), st.data())
def test_the_term_is_true_where_the_tie_holds(tie: Tie, data: st.DataObject) -> None:
    values = {name: data.draw(st.integers(0, (1 << width) - 1)) for name, width in WIDTHS.items()}
    assert bool(evaluate(tie.term(WIDTHS), values)) == tie.holds(values)


@pytest.mark.parametrize("operator", ["=", "≠"])
def test_a_wildcard_is_a_field_again_in_the_relation(operator: str) -> None:
    tie = Tie("f*", operator, "p", bits=4)  # type: ignore[arg-type]
    slices = Slices(scenario(), replace(scenario()), {"f*": (Slice("wild", 0, 1), Slice("f", 0, 4))})
    relation = tie.relation(slices)
    assert relation == Relation("f", operator, "p", head="wild")  # type: ignore[arg-type]
    for wild in (0, 1):
        for f in range(16):
            for p in range(16):
                assert relation.holds({"f": f, "p": p, "wild": wild}) == tie.holds({"f*": wild << 4 | f, "p": p})


def test_bounds_are_told_together() -> None:
    low, high = Relation("w", "≥", "t", 1000), Relation("w", "≤", "t", 1000, 999)
    assert relation_texts([high, Relation("a", "≠", "b"), low]) == ["w from 1000·t to 1000·t + 999", "a ≠ b"]
    assert relation_texts([Relation("w", "≤", "t", 1, -1)]) == ["w < t"]
    assert relation_texts([Relation("w", "≤", "t", 2, -3)]) == ["w ≤ 2·t - 3"]
    assert relation_texts([Relation("f", "=", "p", head="wild")]) == ["f = p or wildcarded"]
    assert relation_texts([Relation("f", "≠", "p", head="wild")]) == ["f ≠ p and not wildcarded"]
