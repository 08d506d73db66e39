"""Both solvers answer alike, with models that satisfy what was asked."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import BACKENDS, Answer, Solver
from soft.solve.terms import Term
from tests.soft.solve.strategies import FLAG, VARIABLES, X, Y, any_term

NAMES = sorted(BACKENDS)


@pytest.mark.parametrize("name", NAMES)
def test_conditions_come_and_go_with_push_and_pop(name: str) -> None:
    solver = Solver(name)
    solver.add(t.ult(X, t.const(10, 16)))
    solver.push()
    solver.add(t.ult(t.const(20, 16), X))
    assert solver.check() is Answer.UNSAT
    solver.pop()
    assert solver.check() is Answer.SAT
    assert solver.model([X])["m0.x"] < 10


@pytest.mark.parametrize("name", NAMES)
def test_assumptions_hold_for_one_check(name: str) -> None:
    solver = Solver(name)
    solver.add(t.ult(X, Y))
    assert solver.check([t.eq(X, t.const(9, 16)), t.ult(Y, t.const(11, 16))]) is Answer.SAT
    assert solver.model([X, Y]) == {"m0.x": 9, "m0.actions.0.y": 10}
    assert solver.check([t.eq(X, t.const(0xFFFF, 16))]) is Answer.UNSAT
    assert solver.check() is Answer.SAT
    assert solver.queries == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_nobody_constrained_has_a_value(name: str) -> None:
    solver = Solver(name)
    assert solver.check() is Answer.SAT
    assert solver.model([X, FLAG]).keys() == {"m0.x", "flag"}


@pytest.mark.parametrize("name", NAMES)
def test_a_wide_value_is_exact(name: str) -> None:
    wide, value = t.var("wide", 256), (1 << 255) + 12345678901234567890
    solver = Solver(name)
    assert solver.check([t.eq(wide, t.const(value, 256))]) is Answer.SAT
    assert solver.model([wide]) == {"wide": value}


@settings(max_examples=150, deadline=None)
@given(any_term(), st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 1)))
def test_solvers_and_evaluation_agree_on_every_operation(term: Term, numbers: tuple[int, int, int]) -> None:
    values = dict(zip(VARIABLES, numbers, strict=True))
    fixed = [t.eq(v, t.const(values[n], v.width)) for n, v in VARIABLES.items()]
    expected = evaluate(term, values)
    claim = t.eq(term, t.const(expected, term.width)) if term.width else (term if expected else t.negate(term))
    for name in NAMES:
        solver = Solver(name)
        assert solver.check([*fixed, claim]) is Answer.SAT
        assert solver.check([*fixed, t.negate(claim)]) is Answer.UNSAT


@pytest.mark.parametrize("name", NAMES)
def test_depth_is_no_problem(name: str) -> None:
    term = X
    for _ in range(10_000):
        term = t.xor(t.add(term, Y), X)
    solver = Solver(name)
    value = evaluate(term, {"m0.x": 3, "m0.actions.0.y": 5})
    inputs = [t.eq(X, t.const(3, 16)), t.eq(Y, t.const(5, 16))]
    assert solver.check([*inputs, t.eq(term, t.const(value, 16))]) is Answer.SAT


@pytest.mark.parametrize("name", NAMES)
def test_a_timeout_is_an_answer(name: str) -> None:
    p, q = t.var("p", 64), t.var("q", 64)
    wide = [t.concat(t.const(0, 64), v) for v in (p, q)]
    # A product of two 62-bit primes, to be factored: not in 0.2 s.
    product = t.const(4611686018427387847 * 4611686018427387817, 128)
    solver = Solver(name, timeout=0.2)
    small = [t.ult(t.const(1, 64), v) for v in (p, q)]
    assert solver.check([t.eq(t.mul(wide[0], wide[1]), product), *small]) is Answer.UNKNOWN


def test_the_table_of_converted_terms_may_be_dropped(monkeypatch: Any) -> None:
    from soft.solve import bitwuzla_solver, z3_solver

    monkeypatch.setattr(z3_solver, "CACHE_LIMIT", 3)
    monkeypatch.setattr(bitwuzla_solver, "CACHE_LIMIT", 3)
    for name in NAMES:
        solver = Solver(name)
        for number in range(20):
            solver.push()
            solver.add(t.ult(t.const(number, 16), t.mul(X, Y)))
            assert solver.check([t.eq(t.add(X, Y), t.const(number + 50, 16))]) is Answer.SAT
        assert solver.check([t.eq(Y, t.const(0, 16))]) is Answer.UNSAT


def test_misuse_is_an_error() -> None:
    with pytest.raises(SoftError, match="There is no solver called 'yices'; choose one of: z3, bitwuzla"):
        Solver("yices")
    solver = Solver()
    with pytest.raises(ValueError, match="pop without push"):
        solver.pop()
    with pytest.raises(ValueError, match="only after a check that answered SAT"):
        solver.model([X])


@pytest.mark.parametrize("name", NAMES)
def test_many_checks_along_one_stack(name: str) -> None:
    # More than bitwuzla answers before its instance is renewed: what was added must survive that.
    solver = Solver(name)
    for number in range(300):
        if number % 20 == 0:
            solver.push()
            solver.add(t.ult(t.const(number, 16), X))
        assert solver.check([t.ult(X, t.const(number - number % 20, 16))]) is Answer.UNSAT
    for _ in range(15):
        solver.pop()
    assert solver.check([t.eq(X, t.const(0, 16))]) is Answer.SAT
