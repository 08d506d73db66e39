"""Wide fields in pieces: the same values, whichever form a term has."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.pieces import Pieces
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.trace import Message, Payload, evaluate_trace, map_terms
from tests.harness.programs import A, B, C, conditions, scenario, words

PIECES = Pieces(scenario())
INPUTS = st.fixed_dictionaries({v.args[0]: st.integers(0, (1 << v.width) - 1) for v in (A, B, C)})


def test_only_what_is_wide_is_in_pieces() -> None:
    assert sorted(PIECES.widths.values()) == [8, 16, 16, 16]
    assert PIECES.inside(A) is A
    assert len(PIECES.inside(C).args) == 2


@given(INPUTS)
def test_values_there_and_back(values: dict[str, int]) -> None:
    assert PIECES.join(PIECES.split(values)) == values
    assert PIECES.split(PIECES.split(values)) == PIECES.split(values)


@settings(max_examples=60, deadline=None)
@given(st.one_of(words(), conditions()), INPUTS)
def test_terms_there_and_back(term: Term, values: dict[str, int]) -> None:
    inside = PIECES.inside(term)
    assert evaluate(inside, PIECES.split(values)) == evaluate(term, values)
    outside = PIECES.outside(inside)
    assert outside.variables <= set(values)
    assert evaluate(outside, values) == evaluate(term, values)


@given(INPUTS)
def test_traces(values: dict[str, int]) -> None:
    inside = (Message(0, Payload((b"ab", PIECES.inside(C), PIECES.inside(B)), PIECES.inside(B))),)
    assert evaluate_trace(map_terms(inside, PIECES.outside), values) == evaluate_trace(inside, PIECES.split(values))
