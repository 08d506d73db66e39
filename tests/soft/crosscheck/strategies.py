"""Agents at random: decision trees of the kind that switches are."""

from __future__ import annotations

from hypothesis import strategies as st

from soft.solve import terms as t
from soft.solve.terms import Term
from tests.soft.crosscheck.agents import (
    CRASH,
    IN_PORT,
    MAX_LEN,
    PORT,
    SILENT,
    If,
    Tree,
    error,
    forward,
    number,
    packet_in,
)

FIELDS = (IN_PORT, PORT, MAX_LEN)
_field = st.sampled_from(FIELDS)
_constant = st.integers(0, 8)


def conditions() -> st.SearchStrategy[Term]:
    """Comparisons with constants, between fields, of bits, and of sums."""
    simple = st.builds(lambda f, c, less: (t.ult if less else t.eq)(f, number(c)), _field, _constant, st.booleans())
    bits = st.builds(lambda f, bit: t.eq(t.extract(bit, bit, f), t.const(1, 1)), _field, st.integers(0, 2))
    related = st.builds(
        lambda f, g, less: (t.ult if less else t.eq)(f, g) if f is not g else t.eq(f, number(3)),
        _field,
        _field,
        st.booleans(),
    )
    sums = st.builds(lambda f, g, c: t.ult(t.add(f, g), number(c)), _field, _field, _constant)
    either = st.builds(t.disj, simple, simple)
    return st.one_of(simple, simple, simple, bits, related, sums, either)


_SIZES = (number(3), MAX_LEN, t.ite(t.ult(MAX_LEN, number(4)), MAX_LEN, number(9)))


def outputs() -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.just(SILENT),
        st.just(CRASH),
        st.builds(error, st.just(2), st.integers(4, 5)),
        st.builds(error, st.just(2), st.just(PORT)),
        st.builds(forward, st.integers(1, 2)),
        st.builds(forward, st.just(1), _field),
        st.builds(lambda f, g: forward(1, t.add(f, g)), _field, _field),
        st.builds(packet_in, st.sampled_from(_SIZES)),
    )


def agents() -> st.SearchStrategy[Tree]:
    return st.recursive(outputs(), lambda tree: st.builds(If, conditions(), tree, tree), max_leaves=6)
