"""Parts of the input space against enumerating it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from soft.crosscheck.box import Box
from soft.crosscheck.cover import outside
from soft.crosscheck.space import Space
from soft.crosscheck.substitute import substitute
from soft.crosscheck.ties import Tie
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Solver
from soft.solve.terms import Term
from tests.soft.crosscheck.agents import inputs, scenario
from tests.soft.crosscheck.strategies import conditions

SCENE = scenario()
EVERYTHING = list(inputs(SCENE))
SOLVER = Solver("bitwuzla")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(conditions(), st.builds(t.negate, conditions())), max_size=5))
def test_a_state_is_empty_exactly_if_no_input_satisfies_it(wanted: list[Term]) -> None:
    space = Space(SCENE, SOLVER)
    state = space.assume_all(space.everything, wanted)
    satisfying = [values for values in EVERYTHING if all(evaluate(term, values) for term in wanted)]
    assert (state is None) == (not satisfying)
    if state is not None:
        assert space.example(state) in satisfying
        for values in satisfying:
            assert all(evaluate(term, values) for term in space.conditions(state))


def boxes() -> st.SearchStrategy[Box]:
    interval = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda ends: ((min(ends), max(ends)),))
    fields = st.dictionaries(st.sampled_from(["m0.in_port", "m0.actions.0.port"]), interval)
    ties = st.sampled_from([(), (Tie("m0.in_port", "=", "m0.actions.0.port"),)])
    return st.builds(Box, fields, ties)


@settings(max_examples=60, deadline=None)
@given(st.lists(conditions(), max_size=3), st.lists(boxes(), max_size=4))
def test_what_is_outside_of_boxes_is_there_exactly_if_an_input_is(wanted: list[Term], boxes: list[Box]) -> None:
    space = Space(SCENE, SOLVER)
    state = space.assume_all(space.everything, wanted)
    if state is None:
        return
    rest = [
        values for values in EVERYTHING
        if all(evaluate(term, values) for term in wanted) and not any(box.contains(values) for box in boxes)
    ]  # fmt: skip
    found = outside(space, state, boxes)
    assert (found is None) == (not rest)
    if found is not None:
        assert space.example(found) in rest


@given(conditions(), st.integers(0, len(EVERYTHING) - 1), st.integers(0, 2))
def test_substituting_is_evaluating_in_steps(term: Term, place: int, kept: int) -> None:
    values = EVERYTHING[place]
    some = dict(list(values.items())[kept:])
    assert evaluate(substitute(term, some), values) == evaluate(term, values)
    assert substitute(term, some).variables.isdisjoint(some)
