"""Every rewriting of the term constructors keeps the value, and the rewritings that conditions rely on do happen."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from soft.solve import terms as t
from soft.solve.evaluate import _BINARY, evaluate

NAMES = ("x", "y", "z")
WIDTH = 16
BINARY = {
    "bvadd": t.add,
    "bvsub": t.sub,
    "bvmul": t.mul,
    "bvand": t.and_,
    "bvor": t.or_,
    "bvxor": t.xor,
    "bvshl": t.shl,
    "bvlshr": t.lshr,
    "bvashr": t.ashr,
    "bvudiv": t.udiv,
    "bvurem": t.urem,
    "bvsdiv": t.sdiv,
    "bvsrem": t.srem,
}
COMPARE = {"eq": t.eq, "ne": t.ne, "ult": t.ult, "ule": t.ule, "slt": t.slt, "sle": t.sle}
EDGES = [0, 1, 2, 8, 0xFF, 0x100, 0xFF00, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF]
INTERESTING = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFF))


def vectors() -> st.SearchStrategy[Any]:
    """Recipes for 16-bit terms: nested tuples, built later both as a term and as a value."""
    leaves = st.one_of(st.tuples(st.just("var"), st.sampled_from(NAMES)), st.tuples(st.just("const"), INTERESTING))

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
            st.tuples(st.just("ite"), st.sampled_from(sorted(COMPARE)), inner, inner, inner, inner),
            st.tuples(st.sampled_from(["not", "neg", "swap", "low", "signed-low", "high"]), inner),
        )

    return st.recursive(leaves, grow, max_leaves=10)


def build(recipe: Any, values: dict[str, int]) -> tuple[t.Term, int]:
    head = recipe[0]
    if head == "var":
        return t.var(recipe[1], WIDTH), values[recipe[1]]
    if head == "const":
        return t.const(recipe[1], WIDTH), recipe[1]
    if head == "ite":
        (a, av), (b, bv), (c, cv), (d, dv) = (build(r, values) for r in recipe[2:])
        truth = compare(recipe[1], av, bv)
        return t.ite(COMPARE[recipe[1]](a, b), c, d), cv if truth else dv
    a, av = build(recipe[1], values)
    if head in BINARY:
        b, bv = build(recipe[2], values)
        return BINARY[head](a, b), _BINARY[head](av, bv, WIDTH) & 0xFFFF
    if head == "not":
        return t.not_(a), av ^ 0xFFFF
    if head == "neg":
        return t.neg(a), -av & 0xFFFF
    if head == "swap":
        eight = t.const(8, WIDTH)
        return t.or_(t.shl(a, eight), t.lshr(a, eight)), (av << 8 | av >> 8) & 0xFFFF
    if head == "low":
        return t.zero_extend(8, t.extract(7, 0, a)), av & 0xFF
    if head == "signed-low":
        return t.sign_extend(8, t.extract(7, 0, a)), t.signed(av & 0xFF, 8) & 0xFFFF
    return t.extract(23, 8, t.concat(t.const(0, 8), a)), av >> 8


def compare(name: str, a: int, b: int) -> bool:
    sa, sb = t.signed(a, WIDTH), t.signed(b, WIDTH)
    return {"eq": a == b, "ne": a != b, "ult": a < b, "ule": a <= b, "slt": sa < sb, "sle": sa <= sb}[name]


@settings(max_examples=1500, deadline=None)
@given(vectors(), vectors(), st.sampled_from(sorted(COMPARE)), st.tuples(INTERESTING, INTERESTING, INTERESTING))
def test_rewriting_keeps_the_value(left: Any, right: Any, comparison: str, numbers: tuple[int, int, int]) -> None:
    values = dict(zip(NAMES, numbers, strict=True))
    a, av = build(left, values)
    b, bv = build(right, values)
    assert evaluate(a, values) == av
    assert evaluate(b, values) == bv
    assert evaluate(COMPARE[comparison](a, b), values) == compare(comparison, av, bv)


def test_a_byte_swap_of_a_field_is_a_reordering_and_twice_is_the_field() -> None:
    x = t.var("x", 16)
    eight = t.const(8, 16)

    def swap(v: t.Term) -> t.Term:
        return t.or_(t.shl(v, eight), t.lshr(v, eight))

    assert swap(x).op == "concat"
    assert swap(swap(x)) is x


def test_a_test_of_a_widened_field_is_a_test_of_the_field() -> None:
    port = t.var("port", 16)
    wide = t.zero_extend(48, port)
    assert t.eq(wide, t.const(0xFFFD, 64)) is t.eq(port, t.const(0xFFFD, 16))
    assert t.eq(wide, t.const(0x10000, 64)) is t.FALSE
    assert t.ult(wide, t.const(25, 64)) is t.ult(port, t.const(25, 16))
    assert t.slt(wide, t.const(25, 64)) is t.ult(port, t.const(25, 16))
    assert t.ult(wide, t.const(1 << 20, 64)) is t.TRUE


def test_a_flag_made_of_a_comparison_is_that_comparison() -> None:
    condition = t.ult(t.var("x", 16), t.const(7, 16))
    flag = t.ite(condition, t.const(1, 64), t.const(0, 64))
    assert t.eq(t.extract(0, 0, flag), t.const(1, 1)) is condition
    assert t.eq(flag, t.const(0, 64)) is t.negate(condition)


def test_terms_are_shared_also_through_pickle_and_copy() -> None:
    term = t.add(t.var("x", 16), t.const(3, 16))
    assert pickle.loads(pickle.dumps(term)) is term
    assert copy.deepcopy(term) is term


def test_negation_is_its_own_inverse_and_a_contradiction_is_seen() -> None:
    c = t.eq(t.var("x", 8), t.const(1, 8))
    assert t.negate(t.negate(c)) is c
    assert t.conj(c, t.negate(c)) is t.FALSE
    assert t.disj(c, t.negate(c)) is t.TRUE


@given(st.integers(3, 1 << 31), st.integers(0, 0xFFFFFFFF), st.integers(32, 60))
def test_a_division_that_a_compiler_wrote_as_a_multiplication_keeps_the_value(d: int, x: int, shift: int) -> None:
    factor = (1 << shift) // d + 1
    wide = t.zero_extend(64, t.zero_extend(32, t.var("x", 32)))
    high = t.extract(127, shift, t.mul(wide, t.const(factor, 128)))
    assert evaluate(high, {"x": x}) == x * factor >> shift


def test_a_time_taken_apart_and_put_together_is_the_time() -> None:
    wait = t.var("wait", 32)
    now = t.add(t.zero_extend(32, wait), t.const(3_557_649, 64))
    thousand, million = t.const(1000, 64), t.const(1_000_000, 64)
    seconds, nanoseconds = t.udiv(now, thousand), t.mul(t.urem(now, thousand), million)
    # What gcc makes of nanoseconds / 1000000 for a signed number.
    product = t.mul(t.sign_extend(64, nanoseconds), t.const(0x431BDE82D7B634DB, 128))
    high = t.ashr(t.extract(127, 64, product), t.const(18, 64))
    milliseconds = t.sub(high, t.ashr(nanoseconds, t.const(63, 64)))
    again = t.add(t.mul(seconds, thousand), milliseconds)
    assert again is now
    deadline = t.add(t.mul(t.zero_extend(48, t.var("timeout", 16)), thousand), t.const(3_557_649, 64))
    assert "3557649" not in repr(t.slt(again, deadline))
    assert t.slt(again, deadline).variables == {"wait", "timeout"}
