"""The decisions of a run: the search over random programs finds every path exactly once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.machine.memory import Memory
from harness.machine.values import Sym
from harness.path import Job, Path, member, narrow_core
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from tests.harness.programs import INPUTS, End, Program, Search, programs, way, words
from tests.soft.solve.strategies import any_term

_END = End(0)
QUICK = settings(max_examples=30, deadline=None)


@QUICK
@given(programs())
def test_the_search_finds_every_path_once(program: Program) -> None:
    search = Search(program)
    found = search.all()
    ways = [each.way for each in found]
    assert len(set(ways)) == len(ways)
    assert set(ways) == {way(program, values) for values in INPUTS}
    for each in found:
        assert way(program, each.witness) == each.way


@QUICK
@given(programs())
def test_the_conditions_of_a_path_hold_for_its_inputs_and_no_others(program: Program) -> None:
    found = Search(program).all()
    for values in INPUTS:
        taken = way(program, values)
        memo: dict[Term, int] = {}
        holding = [each for each in found if all(evaluate(c, values, memo) for c in each.conditions)]
        assert [each.way for each in holding] == [taken]


@QUICK
@given(programs())
def test_no_condition_is_superfluous(program: Program) -> None:
    for each in Search(program).all():
        for place, condition in enumerate(each.conditions):
            before = each.conditions[:place]
            reaching = [v for v in INPUTS if all(evaluate(c, v) for c in before)]
            assert not all(evaluate(condition, v) for v in reaching)


@given(st.sets(st.integers(0, 40), min_size=1), st.data())
def test_membership(candidates: set[int], data: st.DataObject) -> None:
    x = t.var("x", 16)
    chosen = data.draw(st.sets(st.sampled_from(sorted(candidates))))
    condition = member(x, *(np.array(sorted(s), dtype=np.uint64) for s in (chosen, candidates)))
    assert {value for value in candidates if evaluate(condition, {"x": value})} == chosen


@given(any_term(), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 1))
def test_everything_in_a_term_passes_through_its_core(term: Term, x: int, y: int, flag: int) -> None:
    values = {"m0.x": x, "m0.actions.0.y": y, "flag": flag}
    core = narrow_core(term)
    assert core.width <= term.width
    # Without the inputs, but with the value of the core, the term has its value.
    assert evaluate(term, {}, {core: evaluate(core, values)}) == evaluate(term, values)


@QUICK
@given(words(), st.sampled_from(INPUTS))
def test_an_upper_bound(term: Term, values: dict[str, int]) -> None:
    search = Search(_END)
    inside = search.pieces.inside(term)
    if inside.op == "const":
        return
    path = _path(search, values)
    most = path.most(Sym(inside, evaluate(term, values)))
    assert most is None or most >= max(evaluate(term, v) for v in INPUTS)


@QUICK
@given(words(), words(), st.sampled_from(INPUTS))
def test_simplifying_keeps_the_value_where_the_condition_holds(left: Term, right: Term, values: dict[str, int]) -> None:
    search = Search(_END)
    path = _path(search, values)
    given_, condition = t.ult(left, t.const(7, 16)), t.ult(left, t.const(12, 16))
    term = search.pieces.inside(t.ite(condition, right, t.const(99, 16)))
    result = path.simplify(Sym(term, evaluate(term, search.pieces.split(values))), search.pieces.inside(given_))
    for other in INPUTS:
        if evaluate(given_, other):
            inside = search.pieces.split(other)
            got = result if isinstance(result, int) else evaluate(result.term, inside)
            assert got == evaluate(term, inside)


def _path(search: Search, values: dict[str, int]) -> Path:
    return Path(search.feasibility, Job(search.pieces.split(values)), Memory(lambda page: None))
