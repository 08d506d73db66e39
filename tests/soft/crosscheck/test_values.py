"""Sets of values against sets of Python, and solutions against trying every value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck import values as v
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

WIDTH = 8
X = t.var("x", WIDTH)
_byte = st.integers(0, 255)


def of(members: set[int]) -> v.Intervals:
    return v.union(*[v.single(value) for value in members])


def members(intervals: v.Intervals) -> set[int]:
    return {value for low, high in intervals for value in range(low, high + 1)}


@given(st.sets(_byte), st.sets(_byte), _byte)
def test_operations_are_those_of_sets(a: set[int], b: set[int], value: int) -> None:
    assert members(of(a)) == a
    assert v.intersect(of(a), of(b)) == of(a & b)
    assert v.union(of(a), of(b)) == of(a | b)
    assert v.without(of(a), of(b)) == of(a - b)
    assert v.complement(of(a), WIDTH) == of(set(range(256)) - a)
    assert v.includes(of(a), of(b)) == (b <= a)
    assert v.contains(of(a), value) == (value in a)
    assert v.count(of(a)) == len(a)
    if a:
        assert v.nearest(of(a), value) in a
        assert abs(v.nearest(of(a), value) - value) == min(abs(member - value) for member in a)


@given(st.sets(_byte))
def test_sets_that_only_look_at_low_bits_are_told_by_these(a: set[int]) -> None:
    found = v.low_bits(of(a), WIDTH)
    if found is not None:
        low, mask = found
        assert {value for value in range(256) if v.contains(low, value & mask)} == a
    tested = of({value for value in range(256) if value & 4})
    assert v.low_bits(tested, WIDTH) == (((4, 7),), 7)


def _terms() -> st.SearchStrategy[Term]:
    constant = st.builds(t.const, _byte, st.just(WIDTH))

    def deeper(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        shift = st.builds(t.const, st.integers(0, WIDTH), st.just(WIDTH))
        return st.one_of(
            st.builds(t.add, inner, constant),
            st.builds(t.sub, constant, inner),
            st.builds(t.not_, inner),
            st.builds(t.shl, inner, shift),
            st.builds(t.lshr, inner, shift),
            st.builds(t.and_, inner, constant),
            st.builds(t.or_, inner, constant),
            st.builds(t.xor, inner, constant),
            st.builds(lambda a: t.concat(t.extract(3, 0, a), t.extract(7, 4, a)), inner),
            st.builds(lambda c, a, b: t.ite(t.ult(a, c), a, b), constant, inner, inner),
        )

    return st.recursive(st.just(X), deeper, max_leaves=6)


def conditions() -> st.SearchStrategy[Term]:
    constant = st.builds(t.const, _byte, st.just(WIDTH))
    comparison = st.one_of(
        *[st.builds(op, _terms(), constant) for op in (t.eq, t.ult, t.ule, t.slt, t.sle)],
        *[st.builds(op, constant, _terms()) for op in (t.ult, t.slt)],
    )
    return st.recursive(
        comparison,
        lambda inner: st.one_of(
            st.builds(t.conj, inner, inner), st.builds(t.disj, inner, inner), st.builds(t.negate, inner)
        ),
        max_leaves=4,
    )


@given(conditions())
def test_solutions_are_the_values_that_satisfy_a_condition(condition: Term) -> None:
    expected = {value for value in range(256) if evaluate(condition, {"x": value})}
    assert v.solutions(condition, "x", WIDTH) == of(expected)


@given(conditions(), st.sets(st.integers(0, 255), min_size=1))
def test_solutions_among_some_values(condition: Term, some: set[int]) -> None:
    expected = {value for value in some if evaluate(condition, {"x": value})}
    assert v.solutions_within(condition, "x", WIDTH, of(some)) == of(expected)


def test_a_few_values_of_a_wide_field_are_tried() -> None:
    ms = t.var("ms", 32)
    ticks = t.mul(t.udiv(t.add(ms, t.const(100, 32)), t.const(500, 32)), t.const(500, 32))
    late = t.ult(t.const(60000, 32), ticks)
    assert v.solutions(late, "ms", 32) is None
    assert v.solutions_within(late, "ms", 32, ((0, 70000),)) == ((60400, 70000),)
    assert v.solutions_within(late, "ms", 32, v.full(32)) is None


def test_wide_fields_are_solved_by_structure() -> None:
    mac = t.var("mac", 48)
    group = t.eq(t.extract(40, 40, mac), t.const(1, 1))
    found = v.solutions(group, "mac", 48)
    assert found is not None
    assert len(found) == 128
    assert v.contains(found, 0x0100_0000_0000)
    assert not v.contains(found, 0x0200_0000_0000)
    hashed = t.eq(t.urem(t.mul(mac, mac), t.const(17, 48)), t.const(3, 48))
    assert v.solutions(hashed, "mac", 48) is None
