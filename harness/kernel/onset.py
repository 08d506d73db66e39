"""How long a condition that holds at one tick of a timer goes on to hold at those behind it.

A tick that is like all others is run once for all of them: what depends on the time is then a term over OFFSET, the
milliseconds that have passed since that tick, and over COUNT, the ticks since then.
"""

from __future__ import annotations

import numpy as np

from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.solve.vector import evaluate_vector

# No field of a scenario has a name like these.
OFFSET_NAME, COUNT_NAME = "tick#ms", "tick#count"
_NARROW = t.var(OFFSET_NAME, 32)
OFFSET = t.zero_extend(32, _NARROW)
COUNT = t.var(COUNT_NAME, 64)
RESERVED = frozenset({OFFSET_NAME, COUNT_NAME})

FOREVER = 1 << 63
# Ticks that are looked at one by one, where a condition cannot be vectorised.
_ONE_BY_ONE = 2048


def depends(term: Term) -> bool:
    """Whether a term depends on which of the ticks it is."""
    return not RESERVED.isdisjoint(term.variables)


def first_failure(condition: Term, period: int, most: int) -> int:
    """The first tick, counted from 1, at which a condition over OFFSET and COUNT may not hold; at most `most` + 1."""
    ticks = np.arange(1, most + 1, dtype=np.uint64)
    holds = evaluate_vector(condition, {OFFSET_NAME: ticks * np.uint64(period), COUNT_NAME: ticks})
    if holds is not None:
        failures = np.flatnonzero(holds == 0)
        return int(failures[0]) + 1 if len(failures) else most + 1
    for tick in range(1, min(most, _ONE_BY_ONE) + 1):
        if not evaluate(condition, {OFFSET_NAME: tick * period, COUNT_NAME: tick}):
            return tick
    return min(most, _ONE_BY_ONE) + 1


def lasting(condition: Term) -> Term | int | None:
    """For how many milliseconds a condition that holds now will go on to: a term of 64 bits, FOREVER or unknown.

    It holds at every OFFSET up to the one given, under every input under which it holds at OFFSET 0.
    """
    if COUNT_NAME in condition.variables:
        return None
    negated = condition.op == "not"
    atom = condition.args[0] if negated else condition
    if atom.op == "=":
        return _while_equal(atom.args[0], atom.args[1], not negated)
    if atom.op not in ("bvult", "bvslt"):
        return None
    low, high = reversed(atom.args) if negated else atom.args
    strict, signed = not negated, atom.op == "bvslt"
    if OFFSET_NAME in high.variables:
        return None if OFFSET_NAME in low.variables else _until_wrapping(high, signed)
    return _while_below(low, high, strict, signed)


def _while_below(low: Term, high: Term, strict: bool, signed: bool) -> Term | None:
    """low < high (or <=), and low grows."""
    width = low.width
    if low.op == "bvudiv" and low.args[1].op == "const" and not signed:
        # x / k < y as long as x < k * y.
        low, factor = low.args[0], low.args[1].args[0]
        if not factor or (high.most + 1) * factor >> width:
            return None
        high = t.mul(high if strict else t.add(high, t.const(1, width)), t.const(factor, width))
        strict = True
    rest = _growing(low)
    if rest is None:
        return None
    top = t.add(high, t.const(-1, width)) if strict else high
    return _wide(t.sub(top, rest))


def _until_wrapping(growing: Term, signed: bool) -> Term | int | None:
    """Something grows beyond what is compared with it, until it wraps."""
    if growing.op == "bvudiv" and growing.args[1].op == "const" and not signed:
        growing = growing.args[0]
    rest = _growing(growing)
    if rest is None:
        return None
    top = (1 << growing.width - signed) - 1
    if rest.most + (1 << 32) <= top:
        return FOREVER
    return _wide(t.sub(t.const(top, growing.width), rest))


def _while_equal(left: Term, right: Term, equal: bool) -> Term | int | None:
    if OFFSET_NAME in right.variables:
        left, right = right, left
    if OFFSET_NAME in right.variables:
        return None
    if left.op == "extract" and left.width == 1 and right.op == "const" and left.args[0] == left.args[2].width - 1:
        # The sign of something: negative until it comes to zero, or positive until it wraps.
        rest, top = _growing(left.args[2]), (1 << left.args[0]) - 1
        if rest is None:
            return None
        negative = bool(right.args[0]) == equal
        return _wide(t.sub(t.const(-1 if negative else top, rest.width), rest))
    rest = _growing(left)
    if rest is None:
        return None
    if equal:
        return 0
    return _wide(t.sub(t.add(right, t.const(-1, right.width)), rest))


def _growing(term: Term) -> Term | None:
    """What is left of a sum without OFFSET in it; None if it is no such sum."""
    if term is _NARROW or term is OFFSET:
        return t.const(0, term.width)
    if term.op == "concat" and len(term.args) == 2 and term.args[1] is _NARROW and term.args[0].most == 0:
        return t.const(0, term.width)
    if term.op == "bvadd":
        one, other = term.args
        if OFFSET_NAME in other.variables:
            one, other = other, one
        rest = None if OFFSET_NAME in other.variables else _growing(one)
        return None if rest is None else t.add(rest, other)
    if term.op == "bvsub" and OFFSET_NAME not in term.args[1].variables:
        rest = _growing(term.args[0])
        return None if rest is None else t.sub(rest, term.args[1])
    if term.op == "extract" and term.args[1] == 0 and term.args[0] >= 31:
        rest = _growing(term.args[2])
        return None if rest is None else t.extract(term.args[0], 0, rest)
    return None


def _wide(term: Term) -> Term:
    return t.zero_extend(64 - term.width, term)
