"""Condition codes: the expression that goes into a block's text, the terms and angr's own calculation agree."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine import flags
from harness.machine.ends import Unsupported
from harness.machine.values import Sym
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from tests.harness.machine.lab import EDGES

words = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)
operations = st.integers(0, 52)
conditions = st.integers(0, 15)


@cache
def state() -> Any:
    import angr

    return angr.load_shellcode(b"\xc3", "AMD64").factory.blank_state()


# angr 9.2 multiplies without widening first, and so never sees that an unsigned product overflows.
UNSIGNED_PRODUCTS = range(45, 49)


@pytest.mark.parametrize("cc_op", [number for number in range(53) if number not in UNSIGNED_PRODUCTS])
def test_all_flags_agree_with_angr(cc_op: int) -> None:
    import claripy
    from angr.engines.vex.claripy import ccall

    pairs = [(0, 0), (1, 0xFF), (0x80, 0x80), (0x7FFFFFFFFFFFFFFF, 1), (0x8000000080008080, 0x8000000080008080), (5, 7)]
    for dep1, dep2 in pairs:
        for ndep in (0, 0x8D5):
            arguments = [claripy.BVV(x, 64) for x in (cc_op, dep1, dep2, ndep)]
            theirs = state().solver.eval(ccall.amd64g_calculate_rflags_all(state(), *arguments))
            assert flags.calculate_all(cc_op, dep1, dep2, ndep) == theirs, (dep1, dep2, ndep)


@pytest.mark.parametrize("cc_op", UNSIGNED_PRODUCTS)
def test_unsigned_products_carry_where_they_do_not_fit(cc_op: int) -> None:
    width = 8 << cc_op - 45
    half = 1 << width // 2
    assert flags.calculate_condition(2, cc_op, half, half, 0) == 1
    assert flags.calculate_condition(0, cc_op, half, half, 0) == 1
    assert flags.calculate_condition(2, cc_op, half, half - 1, 0) == 0


@given(conditions, operations, words, words, words)
def test_a_condition_follows_from_the_flags(cond: int, cc_op: int, dep1: int, dep2: int, ndep: int) -> None:
    c, p, _, z, s, o = (flags.calculate_all(cc_op, dep1, dep2, ndep) >> bit & 1 for bit in (0, 2, 4, 6, 7, 11))  # type: ignore[operator]
    expected = (o, c, z, c | z, s, p, s ^ o, (s ^ o) | z)[cond >> 1] ^ (cond & 1)
    assert flags.calculate_condition(cond, cc_op, dep1, dep2, ndep) == expected


@given(conditions, operations, words, words, words, st.integers(1, 7))
def test_terms_agree_with_integers(cond: int, cc_op: int, dep1: int, dep2: int, ndep: int, which: int) -> None:
    values = {"a": dep1, "b": dep2, "n": ndep}
    mixed: list[Any] = [dep1, dep2, ndep]
    for i, name in enumerate("abn"):
        if which >> i & 1:
            mixed[i] = Sym(t.var(name, 64), values[name])
    for ours, expected in [
        (flags.calculate_condition(cond, cc_op, *mixed), flags.calculate_condition(cond, cc_op, dep1, dep2, ndep)),
        (flags.calculate_all(cc_op, *mixed), flags.calculate_all(cc_op, dep1, dep2, ndep)),
    ]:
        if isinstance(ours, Sym):
            assert ours.value == evaluate(ours.term, values) == expected
        else:
            assert ours == expected


def test_comparisons_stay_small() -> None:
    a, b = Sym(t.var("a", 64), 1), Sym(t.var("b", 64), 2)
    below = flags.calculate_condition(2, 8, a, b, 0)
    assert isinstance(below, Sym)
    assert below.term is t.ite(t.ult(a.term, b.term), t.const(1, 64), t.const(0, 64))


def test_a_shift_by_an_input_leaves_the_flags_to_either_operation() -> None:
    amount = t.var("n", 8)
    operation = Sym(t.ite(t.eq(amount, t.const(0, 8)), t.const(8, 64), t.const(32, 64)), 32)
    dep = Sym(t.var("a", 64), 5)
    zero = flags.calculate_condition(4, operation, dep, 5, 0)
    assert isinstance(zero, Sym)
    assert evaluate(zero.term, {"n": 0, "a": 5}) == 1  # compared with 5
    assert evaluate(zero.term, {"n": 1, "a": 5}) == 0  # the shift's result is not 0


def test_unknown_operations_are_refused() -> None:
    with pytest.raises(Unsupported, match="operation 61"):
        flags.calculate_condition(4, 61, 0, 0, 0)
