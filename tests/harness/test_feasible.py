"""Feasibility: the cheap answers are those of the solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.feasible import Feasibility
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term

# Two that fit a bitmap together, one that fits alone, one that never does.
WIDTHS = {"p": 6, "q": 8, "r": 16, "s": 24}
VARIABLES = {name: t.var(name, width) for name, width in WIDTHS.items()}
EMPTY: dict[str, int] = dict.fromkeys(WIDTHS, 0)
QUICK = settings(max_examples=60, deadline=None)


@st.composite
def conditions(draw: Callable[..., Any]) -> Term:
    """A comparison of words made of one or two variables."""
    names = draw(st.lists(st.sampled_from(sorted(WIDTHS)), min_size=1, max_size=2))
    left = t.zero_extend(32 - WIDTHS[names[0]], VARIABLES[names[0]])
    right = t.const(draw(st.one_of(st.integers(0, 80), st.integers(0, 1 << 24))), 32)
    if len(names) == 2:
        other = t.zero_extend(32 - WIDTHS[names[1]], VARIABLES[names[1]])
        left = draw(st.sampled_from([t.add, t.xor, t.and_, t.sub]))(left, other)
    comparison = draw(st.sampled_from([t.eq, t.ult, t.ule, t.slt, t.ne]))
    made: Term = comparison(left, right)
    return t.negate(made) if draw(st.booleans()) else made


def holds_for_one(*conditions: Term) -> bool:
    solver = Solver("z3")
    for condition in conditions:
        solver.add(condition)
    return solver.check() is Answer.SAT


def consistent(assumed: list[Term]) -> list[Term]:
    """As many as can hold together: a run never assumes more."""
    kept: list[Term] = []
    for condition in assumed:
        if condition.op != "const" and holds_for_one(*kept, condition):
            kept.append(condition)
    return kept


@QUICK
@given(st.lists(conditions(), max_size=4), conditions(), st.sampled_from(["z3", "bitwuzla"]))
def test_another_way_out_is_found_exactly_if_there_is_one(assumed: list[Term], asked: Term, solver: str) -> None:
    if asked.op == "const":
        return
    assumed = consistent(assumed)
    feasibility = Feasibility(WIDTHS, [], solver)
    components = dict(feasibility.roots)
    for condition in assumed:
        feasibility.assume(components, condition)
    for _ in range(2):  # the second time from memory
        model = feasibility.otherwise(components, (asked,))
        assert (model is not None) == holds_for_one(*assumed, t.negate(asked))
    if model is not None:
        assert not evaluate(asked, {**EMPTY, **model})
        # It satisfies everything that was assumed of its variables.
        for condition in assumed:
            if condition.variables & model.keys():
                assert evaluate(condition, {**EMPTY, **model})


@QUICK
@given(st.lists(conditions(), max_size=3), st.lists(conditions(), min_size=1, max_size=3))
def test_several_ways_may_be_excluded_at_once(assumed: list[Term], excluded: list[Term]) -> None:
    # The alternatives of one choice are about the same variables.
    excluded = [each for each in excluded if each.variables == excluded[0].variables and each.op != "const"]
    if not excluded:
        return
    assumed = consistent(assumed)
    feasibility = Feasibility(WIDTHS, assumed)
    model = feasibility.otherwise(feasibility.roots, tuple(excluded))
    assert (model is not None) == holds_for_one(*assumed, *map(t.negate, excluded))
    if model is not None:
        assert not any(evaluate(each, {**EMPTY, **model}) for each in excluded)


@QUICK
@given(st.lists(conditions(), max_size=3), conditions())
def test_an_assumption_that_adds_nothing_follows_from_the_others(assumed: list[Term], added: Term) -> None:
    if added.op == "const":
        return
    assumed = consistent(assumed)
    feasibility = Feasibility(WIDTHS, assumed)
    if not feasibility.assume(dict(feasibility.roots), added):
        assert not holds_for_one(*assumed, t.negate(added))


@QUICK
@given(st.lists(conditions(), max_size=3), conditions())
def test_no_value_that_a_term_can_have_is_missing(assumed: list[Term], about: Term) -> None:
    term = next(iter(about.args), None)
    if about.op == "const" or not isinstance(term, Term) or not term.variables or not term.width:
        return
    assumed = consistent(assumed)
    feasibility = Feasibility(WIDTHS, assumed)
    allowed = feasibility.allowed_values(feasibility.roots, term)
    if allowed is not None:
        listed = {int(value) for value in allowed}
        solver = Solver("z3")
        for condition in assumed:
            solver.add(condition)
        for value in sorted(listed)[:50]:
            solver.add(t.ne(term, t.const(value, term.width)))
        if len(listed) <= 50:
            assert solver.check() is Answer.UNSAT


@QUICK
@given(conditions(), conditions())
def test_what_is_seen_to_imply_does(first: Term, second: Term) -> None:
    if "const" in (first.op, second.op):
        return
    if Feasibility(WIDTHS, []).implies(first, second):
        assert not holds_for_one(first, t.negate(second))


def test_fields_of_16_bits_need_no_solver() -> None:
    feasibility = Feasibility(WIDTHS, [])
    r, pq = VARIABLES["r"], t.concat(VARIABLES["p"], VARIABLES["q"])
    components = dict(feasibility.roots)
    feasibility.assume(components, t.ult(r, t.const(7, 16)))
    feasibility.assume(components, t.eq(pq, t.const(5, 14)))
    assert feasibility.otherwise(components, (t.ult(r, t.const(9, 16)),)) is None
    assert feasibility.otherwise(components, (t.eq(r, t.const(0, 16)),)) is not None
    assert feasibility.otherwise(components, (t.eq(VARIABLES["q"], t.const(5, 8)),)) is None
    assert feasibility.queries == 0
    assert feasibility.kept == 3


def test_the_solver_is_asked_once() -> None:
    feasibility = Feasibility(WIDTHS, [])
    asked = t.eq(t.mul(VARIABLES["s"], VARIABLES["s"]), t.const(1 << 20, 24))
    for _ in range(3):
        assert feasibility.otherwise(feasibility.roots, (asked,)) is not None
    assert feasibility.queries == 1


def test_a_time_within_bounds_is_divided_without_the_solver() -> None:
    most = t.negate(t.ult(t.const(70_000, 32), t.concat(t.var("high", 16), t.var("low", 16))))
    feasibility = Feasibility({"high": 16, "low": 16, "other": 16}, [most])
    time = t.concat(t.var("high", 16), t.var("low", 16))
    tick = t.mul(t.udiv(t.add(time, t.const(100, 32)), t.const(500, 32)), t.const(500, 32))
    components = dict(feasibility.roots)
    feasibility.assume(components, t.ule(t.const(69_000, 32), tick))
    model = feasibility.otherwise(components, (t.ule(tick, t.const(69_500, 32)),))
    assert model is not None
    assert 69_900 <= model["high"] << 16 | model["low"] <= 70_000
    assert feasibility.otherwise(components, (t.ult(tick, t.const(70_500, 32)),)) is None
    assert feasibility.queries == 0
    # With another variable it is too much for a table.
    model = feasibility.otherwise(components, (t.ne(t.var("other", 16), t.extract(15, 0, tick)),))
    assert model is not None
    assert feasibility.queries == 1
