"""Sets of values of one field, as intervals; and which values of a field satisfy a condition on it alone.

Most conditions of real agents compare one field with a constant. Their solutions are a few intervals, whatever the
field's width, and whether two such conditions go together needs no solver. The same intervals tell a person where two
agents differ.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from soft.crosscheck.substitute import substitute
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.solve.vector import evaluate_vector
from soft.solve.walk import post_order

# Closed intervals in ascending order, with gaps between them.
Intervals = tuple[tuple[int, int], ...]

EMPTY: Intervals = ()
# A field of up to this many bits is evaluated over all of its values, which takes under a millisecond.
NARROW_BITS = 16
# A test of the lowest bit of a field of 16 bits has this many intervals. Wider fields with as many go to the solver.
MOST_INTERVALS = 1 << (NARROW_BITS - 1)
# While a term is taken apart; past this many it is faster to try all values of a narrow field.
_MANY = 300
# Intervals within which the solutions are looked for one by one.
_MOST_NARROW = 8
# Values times steps of a condition that is evaluated for each: a tenth of a second. A minute in milliseconds, divided
# and multiplied by timers' periods, is a twentieth of it.
_MOST_TRIED = 1 << 24
# How many values at a time: for larger arrays the kernel is asked for memory, which takes longer than computing.
_CHUNK = 1 << 13
# Steps of the search for a solution; a stranger's term may be large.
_MOST_STEPS = 2_000
_MOST_PIECES = 1_000


def full(width: int) -> Intervals:
    return ((0, (1 << width) - 1),)


def single(value: int) -> Intervals:
    return ((value, value),)


def contains(intervals: Intervals, value: int) -> bool:
    for low, high in intervals:
        if value <= high:
            return low <= value
    return False


def count(intervals: Intervals) -> int:
    return sum(high - low + 1 for low, high in intervals)


def intersect(a: Intervals, b: Intervals) -> Intervals:
    if len(a) == 1 and len(b) == 1:
        low, high = max(a[0][0], b[0][0]), min(a[0][1], b[0][1])
        return ((low, high),) if low <= high else EMPTY
    result = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            result.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def complement(a: Intervals, width: int) -> Intervals:
    result, start = [], 0
    for low, high in a:
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start < 1 << width:
        result.append((start, (1 << width) - 1))
    return tuple(result)


def without(a: Intervals, b: Intervals) -> Intervals:
    """The values of `a` that are not in `b`."""
    return intersect(a, complement(b, a[-1][1].bit_length() or 1)) if a and b else a


def union(*sets: Intervals) -> Intervals:
    result: list[tuple[int, int]] = []
    for low, high in sorted(interval for intervals in sets for interval in intervals):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return tuple(result)


def includes(a: Intervals, b: Intervals) -> bool:
    """Whether every value of `b` is in `a`."""
    return intersect(a, b) == b


def low_bits(a: Intervals, width: int) -> tuple[Intervals, int] | None:
    """A set that only looks at the lowest bits, as the values of these and their mask; None if it looks at all."""
    size = 1 << width
    step = size
    while step > 1:
        half = intersect(a, ((0, step // 2 - 1),))
        other = tuple((low - step // 2, high - step // 2) for low, high in intersect(a, ((step // 2, step - 1),)))
        if half != other:
            break
        step //= 2
        a = half
    return (a, step - 1) if step < size else None


def nearest(a: Intervals, value: int) -> int:
    """The value of a set that is nearest to a given one."""
    return min((min(max(value, low), high) for low, high in a), key=lambda found: abs(found - value))


# ---------------------------------------------------------------------------------------------- solutions


class _TooHard(Exception):
    """The solutions are not a few intervals, or not found in a few steps."""


def solutions(condition: Term, name: str, width: int) -> Intervals | None:
    """The values of a field that satisfy a condition on it alone; None if they are not a few intervals."""
    try:
        found = _Solutions(name, width).truth(condition)
    except (_TooHard, RecursionError):
        if width > NARROW_BITS:
            return None
        found_or_none = _tried(condition, name, full(width))
        if found_or_none is None:
            return None
        found = found_or_none
    return found if len(found) <= MOST_INTERVALS else None


def solutions_within(condition: Term, name: str, width: int, allowed: Intervals) -> Intervals | None:
    """As `solutions`, but only of some values: these are few, or each interval is narrow or has few solutions."""
    found = _solutions_inside(condition, name, width, allowed)
    if found is None and allowed and count(allowed) * sum(1 for _ in post_order((condition,))) <= _MOST_TRIED:
        return _tried(condition, name, allowed)
    return found


def _solutions_inside(condition: Term, name: str, width: int, allowed: Intervals) -> Intervals | None:
    if len(allowed) > _MOST_NARROW:
        return None
    found: list[Intervals] = []
    for low, high in allowed:
        free = (low ^ high).bit_length()
        if free > NARROW_BITS or free == width:
            return None
        start = low >> free << free
        prefix = terms.const(low >> free, width - free)
        rest = terms.var(f"{name}[{free - 1}:0]", free) if free else None
        here = substitute(condition, {name: prefix if rest is None else terms.concat(prefix, rest)})
        inside = full(1) if not here.variables and evaluate(here, {}) else EMPTY
        if rest is not None and here.variables:
            solved = solutions(here, rest.args[0], free)
            if solved is None:
                return None
            inside = solved
        elif inside:
            inside = ((0, (1 << free) - 1),)
        found.append(tuple((start + a, start + b) for a, b in inside))
    return intersect(union(*found), allowed)


def _tried(condition: Term, name: str, allowed: Intervals) -> Intervals | None:
    """Evaluate the condition for each of some values."""
    found: list[Intervals] = []
    for low, high in allowed:
        for start in range(low, high + 1, _CHUNK):
            values = np.arange(start, min(start + _CHUNK, high + 1), dtype=np.uint64)
            truth = evaluate_vector(condition, {name: values})
            if truth is None:
                return None
            edges = np.flatnonzero(np.diff(np.concatenate(([0], truth.astype(np.int8), [0])))) + start
            found.append(tuple(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True)))
    result = union(*found)
    return result if len(result) <= MOST_INTERVALS else None


class _Solutions:
    """From the outside of a term to the field inside: which values make it true, or make it one of a set."""

    def __init__(self, name: str, width: int) -> None:
        self._name = name
        self._width = width
        self._steps = 0

    def truth(self, term: Term) -> Intervals:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooHard
        op, args = term.op, term.args
        if op == "const":
            return full(self._width) if args[0] else EMPTY
        if op == "not":
            return complement(self.truth(args[0]), self._width)
        if op == "and":
            result = full(self._width)
            for part in _bytes_joined(split(term)):
                result = self._bounded(intersect(result, self.truth(part)))
            return result
        if op == "or":
            if all(part.op == "not" for part in args):
                return complement(self.truth(terms.conj(*[part.args[0] for part in args])), self._width)
            return self._bounded(union(*[self.truth(part) for part in args]))
        if op == "=":
            pieces = split(term)
            if len(pieces) > 1:
                return self.truth(terms.conj(*pieces))
        if op in ("=", "bvult", "bvule", "bvslt", "bvsle"):
            return self._comparison(op, args[0], args[1])
        if op == "var" and term.width == 0:
            return single(1)
        raise _TooHard

    def _comparison(self, op: str, a: Term, b: Term) -> Intervals:
        width = a.width
        if not width:
            raise _TooHard
        if a.op == "const":
            constant, term, left = a.args[0], b, True
        elif b.op == "const":
            constant, term, left = b.args[0], a, False
        else:
            raise _TooHard
        if op == "=":
            return self.values(term, single(constant))
        most = (1 << width) - 1
        if op.startswith("bvs"):
            # Signed order is unsigned order with the two halves exchanged.
            half = 1 << (width - 1)
            ordered = _order(op.endswith("le"), (constant + half) & most, left, most)
            return self.values(term, union(*[_shifted(low, high, half, width) for low, high in ordered]))
        return self.values(term, _order(op == "bvule", constant, left, most))

    def values(self, term: Term, wanted: Intervals) -> Intervals:
        """The field's values for which a term has one of the wanted values."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooHard
        if not wanted:
            return EMPTY
        op, args = term.op, term.args
        if op == "var":
            return wanted
        if op == "const":
            return full(self._width) if contains(wanted, args[0]) else EMPTY
        if op == "extract":
            return self.values(args[2], self._widened(wanted, args[0], args[1], args[2].width))
        if op == "concat":
            return self._concat(term, wanted)
        if op == "bvadd" and args[1].op == "const":
            return self.values(args[0], union(*[_shifted(*i, -args[1].args[0], term.width) for i in wanted]))
        if op == "bvsub" and args[0].op == "const":
            return self.values(args[1], union(*[_reflected(*i, args[0].args[0], term.width) for i in wanted]))
        if op == "bvnot":
            return self.values(args[0], union(*[_reflected(*i, -1, term.width) for i in wanted]))
        if op == "ite":
            where = self.truth(args[0])
            first = intersect(where, self.values(args[1], wanted))
            other = intersect(complement(where, self._width), self.values(args[2], wanted))
            return self._bounded(union(first, other))
        raise _TooHard

    def _concat(self, term: Term, wanted: Intervals) -> Intervals:
        head, rest = term.args[0], term.args[1:]
        low_width = term.width - head.width
        if head.op == "const":
            start = head.args[0] << low_width
            inside = intersect(wanted, ((start, start + (1 << low_width) - 1),))
            moved = tuple((low - start, high - start) for low, high in inside)
            if len(rest) == 1:
                return self.values(rest[0], moved)
            return self._concat_parts(rest, low_width, moved)
        return self._concat_parts(term.args, term.width, wanted)

    def _concat_parts(self, parts: tuple[Term, ...], width: int, wanted: Intervals) -> Intervals:
        if len(wanted) == 1 and wanted[0][0] == wanted[0][1]:
            # One value: each part has its share of it.
            result, end = full(self._width), width
            for part in parts:
                end -= part.width
                share = wanted[0][0] >> end & ((1 << part.width) - 1)
                result = intersect(result, self.values(part, single(share)))
            return result
        last = parts[-1]
        if len(parts) == 2 and last.op == "const":
            step, offset = 1 << last.width, last.args[0]
            inner = []
            for low, high in wanted:
                first, final = -((offset - low) // step) if low > offset else 0, (high - offset) // step
                if high >= offset and first <= final:
                    inner.append((first, final))
            return self.values(parts[0], tuple(inner))
        raise _TooHard

    def _widened(self, wanted: Intervals, high_bit: int, low_bit: int, width: int) -> Intervals:
        """All values of a wider term whose cut-out bits are one of the wanted values."""
        copies = 1 << (width - 1 - high_bit)
        if copies * len(wanted) > _MANY:
            raise _TooHard
        below = (1 << low_bit) - 1
        step = 1 << (high_bit + 1)
        return union(
            *[
                tuple(((low << low_bit) + copy * step, (high << low_bit) + below + copy * step) for low, high in wanted)
                for copy in range(copies)
            ]
        )

    def _bounded(self, intervals: Intervals) -> Intervals:
        if len(intervals) > _MANY:
            raise _TooHard
        return intervals


def split(condition: Term) -> list[Term]:
    """A conjunction, or an equality of masked or assembled words, as conditions on smaller pieces, if it is one.

    Agents compare a whole match in a few wide operations; each piece of these looks at one field only.
    """
    found: list[Term] = []
    stack = [condition]
    while stack:
        part = stack.pop()
        if part.op == "and":
            stack += reversed(part.args)
            continue
        if part.op == "=" and part.args[0].op not in ("var", "extract") and len(stack) < _MOST_PIECES:
            a, b = part.args
            if a.op == "bvor" and b.op == "const" and not b.args[0]:
                stack += [terms.eq(a.args[1], b), terms.eq(a.args[0], b)]
                continue
            if a.width > 8 or (a.width > 1 and len(part.variables) > 1):
                cuts = [*range(0, a.width, 8 if a.width > 8 else 1), a.width]
                stack += [
                    terms.eq(terms.extract(high - 1, low, a), terms.extract(high - 1, low, b))
                    for low, high in pairwise(cuts)
                ]
                continue
        if part is not terms.TRUE:
            found.append(part)
    return found or [terms.TRUE]


def _bytes_joined(parts: list[Term]) -> list[Term]:
    """A field that is compared piece by piece, compared as a whole: the values of its low bits alone are too many."""
    cut: dict[tuple[Term, int], tuple[Term, int]] = {}  # field and highest bit → the piece and its value
    rest = []
    for part in parts:
        inner, value = (part.args[0], 0) if part.op == "not" and part.args[0].op == "=" else (part, None)
        if inner.op == "=" and inner.args[0].op == "extract" and inner.args[1].op == "const":
            piece, constant = inner.args
            key = piece.args[2], piece.args[0]
            # A second comparison of the same bits may contradict the first: it stays by itself.
            if key not in cut and (value is None or piece.width == 1):
                cut[key] = piece, constant.args[0] ^ (value is not None)
                continue
        rest.append(part)
    runs: list[list[tuple[Term, int]]] = []
    for piece, value in (cut[key] for key in sorted(cut, key=lambda key: (key[0].uid, -key[1]))):
        last = runs[-1][-1][0] if runs else None
        if last is not None and last.args[2] is piece.args[2] and last.args[1] == piece.args[0] + 1:
            runs[-1].append((piece, value))
        else:
            runs.append([(piece, value)])
    for run in runs:
        whole = terms.concat(*[piece for piece, _ in run])
        rest.append(terms.eq(whole, terms.concat(*[terms.const(value, piece.width) for piece, value in run])))
    return rest


def _order(or_equal: bool, constant: int, left: bool, most: int) -> Intervals:
    """The values x with `constant < x` (the constant on the left) or `x < constant`."""
    if left:
        low = constant if or_equal else constant + 1
        return ((low, most),) if low <= most else EMPTY
    high = constant if or_equal else constant - 1
    return ((0, high),) if high >= 0 else EMPTY


def _shifted(low: int, high: int, offset: int, width: int) -> Intervals:
    """An interval moved by an offset, around the end of the numbers if need be."""
    size = 1 << width
    if high - low + 1 >= size:
        return full(width)
    low, high = (low + offset) % size, (high + offset) % size
    return ((low, high),) if low <= high else ((0, high), (low, size - 1))


def _reflected(low: int, high: int, total: int, width: int) -> Intervals:
    """The values x for which `total - x` is in an interval."""
    return _shifted(-high, -low, total, width)
