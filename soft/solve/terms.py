"""Bit-vector terms: immutable, shared, and simplified as they are built.

One term language serves the whole pipeline: the machine builds terms, the bundle prints them, crosscheck solves them.
A term is interned, so two terms are equal exactly if they are the same object, and a memo may use them as keys.

Constructors rewrite towards a small normal form, because a condition that is one comparison of one field is what makes
everything after it cheap:

- shifts by a constant and masks are `concat` and `extract`, so that a byte swap is just a reordering of pieces;
- zero extension is `concat` with a zero; subtraction of a constant is addition;
- comparisons are `=`, `bvult` and `bvslt` under at most one `not`.

Rewriting never depends on the order in which terms happened to be created: two processes build the same term.
"""

from __future__ import annotations

import itertools
from typing import Any

from soft.solve.bounds import most_of

_NO_VARIABLES: frozenset[str] = frozenset()

# Bit-runs longer than this are left to the solver: a mask such as 0xaaaaaaaa would become sixteen pieces.
_MOST_MASK_RUNS = 8


class Term:
    """One node. `width` is in bits, 0 for a Boolean; `args` are terms, or the integers and names that `op` takes."""

    __slots__ = ("__weakref__", "args", "most", "op", "uid", "variables", "width")

    op: str
    args: tuple[Any, ...]
    width: int
    variables: frozenset[str]
    uid: int
    most: int
    """No input makes the value larger than this."""

    def __repr__(self) -> str:
        if self.op == "const":
            return f"{self.args[0]:#x}" if self.width else ("true" if self.args[0] else "false")
        if self.op == "var":
            return str(self.args[0])
        return f"({self.op} {' '.join(map(str, self.args))})"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _make, (self.op, self.args, self.width)

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: Any) -> Term:
        return self


_interned: dict[tuple[Any, ...], Term] = {}


def _make(op: str, args: tuple[Any, ...], width: int) -> Term:
    key = (op, args, width)
    term = _interned.get(key)
    if term is None:
        term = Term()
        term.op = op
        term.args = args
        term.width = width
        term.uid = len(_interned)
        if op == "var":
            term.variables = frozenset(args)
        else:
            names = _NO_VARIABLES
            for arg in args:
                if arg.__class__ is Term and arg.variables is not names:
                    names = names | arg.variables if names else arg.variables
            term.variables = names
        term.most = most_of(op, args, width)
        _interned[key] = term
    return term


def rebuild(op: str, args: tuple[Any, ...], width: int) -> Term:
    """A node exactly as it was in another process, without rewriting it."""
    return _make(op, args, width)


TRUE = _make("const", (1,), 0)
FALSE = _make("const", (0,), 0)


def const(value: int, width: int) -> Term:
    return _make("const", (value & ((1 << width) - 1),), width)


def var(name: str, width: int) -> Term:
    return _make("var", (name,), width)


# ---------------------------------------------------------------------------------------------- pieces


def extract(hi: int, lo: int, t: Term) -> Term:
    width = hi - lo + 1
    if width == t.width:
        return t
    op = t.op
    if op == "const":
        return const(t.args[0] >> lo, width)
    if not t.most >> lo:
        return const(0, width)
    if op == "extract":
        return extract(hi + t.args[1], lo + t.args[1], t.args[2])
    if op == "concat":
        parts = []
        end = t.width
        for part in t.args:
            start = end - part.width
            if start <= hi and end > lo:
                parts.append(extract(min(hi, end - 1) - start, max(lo, start) - start, part))
            end = start
        return parts[0] if len(parts) == 1 else concat(*parts)
    if op == "ite":
        c, a, b = t.args
        if a.op == "const" or b.op == "const":
            return ite(c, extract(hi, lo, a), extract(hi, lo, b))
    elif op == "bvand" or op == "bvor" or op == "bvxor":
        a, b = t.args
        return _BITWISE[op](extract(hi, lo, a), extract(hi, lo, b))
    elif op == "bvnot":
        return not_(extract(hi, lo, t.args[0]))
    elif op == "bvmul" and lo and (quotient := _quotient(hi, lo, t)) is not None:
        return quotient
    elif lo == 0 and op in _ARITHMETIC and _fits(t, width):
        return _ARITHMETIC[op](extract(hi, 0, t.args[0]), extract(hi, 0, t.args[1]))
    elif op == "sign_extend":
        inner = t.args[1]
        if hi < inner.width:
            return extract(hi, lo, inner)
        if lo < inner.width:
            return sign_extend(hi - inner.width + 1, extract(inner.width - 1, lo, inner))
        return sign_extend(width - 1, extract(inner.width - 1, inner.width - 1, inner))
    return _make("extract", (hi, lo, t), width)


# The low bits of such a term are a term of the low bits: two bytes of a sum do not look like parts of one thing.
_LOW_BITS_FIRST = frozenset({"bvadd", "bvsub", "bvmul"})


def concat(*terms: Term) -> Term:
    flat: list[Term] = []
    for t in terms:
        for part in t.args if t.op == "concat" else (t,):
            if flat:
                last = flat[-1]
                if last.op == "const" and part.op == "const":
                    flat[-1] = const(last.args[0] << part.width | part.args[0], last.width + part.width)
                    continue
                if (
                    last.op == "extract"
                    and part.op == "extract"
                    and last.args[2] is part.args[2]
                    and last.args[1] == part.args[0] + 1
                ):
                    flat[-1] = extract(last.args[0], part.args[1], last.args[2])
                    continue
                if (
                    part.op in _LOW_BITS_FIRST
                    and last.op == "extract"
                    and last.args[1] == part.width
                    and last.args[2].op == part.op
                    and extract(part.width - 1, 0, last.args[2]) is part
                ):
                    flat[-1] = extract(last.args[0], 0, last.args[2])
                    continue
            flat.append(part)
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and flat[0].op == "const" and not flat[0].args[0]:
        zeros, rest = flat
        if rest.op == "extract":
            # Zeros before the low bits of a term that has nothing but zeros there are that term.
            _, low, whole = rest.args
            if not low and whole.width == zeros.width + rest.width and not whole.most >> rest.width:
                return whole  # type: ignore[no-any-return]
        elif (total := _exact_sum(rest)) is not None:
            # A sum that does not wrap is the same sum in more bits: a length and its bytes in a header meet here.
            return add(zero_extend(zeros.width, total[0]), const(total[1], zeros.width + rest.width))
    return _make("concat", tuple(flat), sum([t.width for t in flat]))


def zero_extend(n: int, t: Term) -> Term:
    return concat(const(0, n), t) if n else t


def sign_extend(n: int, t: Term) -> Term:
    if n == 0:
        return t
    if t.op == "const":
        value = t.args[0]
        return const(value - (1 << t.width) if value >> (t.width - 1) else value, t.width + n)
    if not t.most >> (t.width - 1):
        return zero_extend(n, t)
    if t.op == "sign_extend":
        return _make("sign_extend", (n + t.args[0], t.args[1]), t.width + n)
    if t.width == 1:
        return ite(eq(t, const(1, 1)), const(-1, n + 1), const(0, n + 1))
    return _make("sign_extend", (n, t), t.width + n)


# ---------------------------------------------------------------------------------------------- arithmetic


def add(a: Term, b: Term) -> Term:
    if a.op == "const":
        if b.op == "const":
            return const(a.args[0] + b.args[0], a.width)
        a, b = b, a
    if b.op == "const":
        if b.args[0] == 0:
            return a
        if a.op == "bvadd" and a.args[1].op == "const":
            return add(a.args[0], const(a.args[1].args[0] + b.args[0], a.width))
        if a.op == "bvsub" and a.args[0].op == "const":
            return sub(const(a.args[0].args[0] + b.args[0], a.width), a.args[1])
        if a.op == "ite" and a.args[1].op == "const" and a.args[2].op == "const":
            return ite(a.args[0], add(a.args[1], b), add(a.args[2], b))
    elif a.op == "bvadd" and a.args[1].op == "const":
        return add(add(a.args[0], b), a.args[1])
    elif b.op == "bvadd" and b.args[1].op == "const":
        return add(add(a, b.args[0]), b.args[1])
    elif (whole := _divided(a, b) or _divided(b, a)) is not None:
        return whole
    return _make("bvadd", (a, b), a.width)


def _divided(multiple: Term, rest: Term) -> Term | None:
    """x, if the two are (x / c) * c and x % c: a time taken apart and put together again."""
    if multiple.op == "bvmul" and rest.op == "bvurem" and multiple.args[1] is rest.args[1]:
        quotient = multiple.args[0]
        if quotient.op == "bvudiv" and quotient.args == rest.args:
            return rest.args[0]  # type: ignore[no-any-return]
    return None


def _quotient(hi: int, lo: int, product: Term) -> Term | None:
    """The high part of a product with a constant, if it is a division by a constant as compilers write it.

    x * m >> lo is x / d if m = (2^lo + e) / d and e * x < 2^lo: then the error never reaches the next integer.
    """
    x, factor = product.args
    if factor.op != "const" or x.most * factor.args[0] >> product.width:
        return None
    m = factor.args[0]
    d = -(-(1 << lo) // m)
    e = m * d - (1 << lo)
    if d < 3 or e * x.most >> lo or (x.most // d) >> (hi - lo + 1):
        return None
    return extract(hi - lo, 0, udiv(x, const(d, x.width)))


def sub(a: Term, b: Term) -> Term:
    if b.op == "const":
        return add(a, const(-b.args[0], a.width))
    if a is b:
        return const(0, a.width)
    if a.op == "bvadd" and a.args[0] is b:
        return a.args[1]  # type: ignore[no-any-return]
    if a.op == "bvadd" and a.args[1] is b:
        return a.args[0]  # type: ignore[no-any-return]
    if b.op == "bvadd" and b.args[1].op == "const":
        return add(sub(a, b.args[0]), const(-b.args[1].args[0], a.width))
    if a.op == "bvadd" and a.args[1].op == "const":
        return add(sub(a.args[0], b), a.args[1])
    return _make("bvsub", (a, b), a.width)


def neg(a: Term) -> Term:
    return sub(const(0, a.width), a)


def mul(a: Term, b: Term) -> Term:
    if a.op == "const":
        if b.op == "const":
            return const(a.args[0] * b.args[0], a.width)
        a, b = b, a
    if b.op == "const":
        value = b.args[0]
        if value == 0:
            return b
        if value & (value - 1) == 0:
            return shl(a, const(value.bit_length() - 1, a.width))
        if a.op == "ite" and a.args[1].op == "const" and a.args[2].op == "const":
            return ite(a.args[0], mul(a.args[1], b), mul(a.args[2], b))
    return _make("bvmul", (a, b), a.width)


def udiv(a: Term, b: Term) -> Term:
    if b.op == "const":
        value = b.args[0]
        if a.op == "const":
            return const(a.args[0] // value if value else -1, a.width)
        if value and value & (value - 1) == 0:
            return lshr(a, const(value.bit_length() - 1, a.width))
        if value and a.most < value:
            return const(0, a.width)
        if value and a.op == "bvmul" and a.args[1].op == "const":
            x, factor = a.args[0], a.args[1].args[0]
            if factor % value == 0 and not x.most * factor >> a.width:
                return mul(x, const(factor // value, a.width))
        if value and a.op == "concat" and a.args[0].op == "const" and not a.args[0].args[0]:
            # A quotient has no more bits than what is divided.
            zeros = a.args[0].width
            narrow = extract(a.width - zeros - 1, 0, a)
            return zero_extend(zeros, udiv(narrow, const(value, narrow.width)))
    return _make("bvudiv", (a, b), a.width)


def urem(a: Term, b: Term) -> Term:
    if b.op == "const":
        value = b.args[0]
        if a.op == "const":
            return const(a.args[0] % value if value else a.args[0], a.width)
        if value and value & (value - 1) == 0:
            return and_(a, const(value - 1, a.width))
        if a.most < value:
            return a
    return _make("bvurem", (a, b), a.width)


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


def signed_quotient(a: int, b: int, width: int) -> int:
    """Division of SMT-LIB's bvsdiv: truncates towards zero; by zero gives 1 for negative and -1 otherwise."""
    x, y = signed(a, width), signed(b, width)
    if y == 0:
        return 1 if x < 0 else (1 << width) - 1
    return (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) & ((1 << width) - 1)


def signed_remainder(a: int, b: int, width: int) -> int:
    """Remainder of SMT-LIB's bvsrem: has the sign of the dividend; by zero gives the dividend."""
    x, y = signed(a, width), signed(b, width)
    if y == 0:
        return a
    return (abs(x) % abs(y) * (1 if x >= 0 else -1)) & ((1 << width) - 1)


def sdiv(a: Term, b: Term) -> Term:
    if a.op == "const" and b.op == "const":
        return const(signed_quotient(a.args[0], b.args[0], a.width), a.width)
    return _make("bvsdiv", (a, b), a.width)


def srem(a: Term, b: Term) -> Term:
    if a.op == "const" and b.op == "const":
        return const(signed_remainder(a.args[0], b.args[0], a.width), a.width)
    return _make("bvsrem", (a, b), a.width)


# ---------------------------------------------------------------------------------------------- bits


def _runs(mask: int, width: int) -> list[tuple[int, int, int]]:
    """The runs of equal bits of a mask, most significant first, as (hi, lo, bit)."""
    runs = []
    hi = width - 1
    while hi >= 0:
        bit = mask >> hi & 1
        rest = ~mask if bit else mask
        rest &= (1 << (hi + 1)) - 1
        lo = rest.bit_length()
        runs.append((hi, lo, bit))
        hi = lo - 1
    return runs


def _cuts(t: Term) -> list[int]:
    """Where a concat has the ends of its constant pieces: the places worth cutting a bitwise operation at."""
    cuts: list[int] = []
    end = t.width
    for part in t.args:
        start = end - part.width
        if part.op == "const":
            cuts += (start, end)
        end = start
    return cuts


def _piecewise(operation: Any, a: Term, b: Term) -> Term | None:
    """Apply a bitwise operation piece by piece where one side has constant pieces."""
    cuts = set()
    if a.op == "concat":
        cuts.update(_cuts(a))
    if b.op == "concat":
        cuts.update(_cuts(b))
    cuts.discard(0)
    cuts.discard(a.width)
    if not cuts or len(cuts) > 2 * _MOST_MASK_RUNS:
        return None
    edges = [a.width, *sorted(cuts, reverse=True), 0]
    return concat(
        *[operation(extract(e - 1, s, a), extract(e - 1, s, b)) for e, s in itertools.pairwise(edges)]
    )


def and_(a: Term, b: Term) -> Term:
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        mask = b.args[0]
        if a.op == "const":
            return const(a.args[0] & mask, a.width)
        if mask == 0:
            return b
        if mask == (1 << a.width) - 1:
            return a
        runs = _runs(mask, a.width)
        if len(runs) <= _MOST_MASK_RUNS:
            return concat(*[extract(hi, lo, a) if bit else const(0, hi - lo + 1) for hi, lo, bit in runs])
        return _make("bvand", (a, b), a.width)
    if a is b:
        return a
    cut = _piecewise(and_, a, b)
    return cut if cut is not None else _make("bvand", (a, b), a.width)


def or_(a: Term, b: Term) -> Term:
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        mask = b.args[0]
        if a.op == "const":
            return const(a.args[0] | mask, a.width)
        if mask == 0:
            return a
        if mask == (1 << a.width) - 1:
            return b
        runs = _runs(mask, a.width)
        if len(runs) <= _MOST_MASK_RUNS:
            return concat(*[const(-1, hi - lo + 1) if bit else extract(hi, lo, a) for hi, lo, bit in runs])
        return _make("bvor", (a, b), a.width)
    if a is b:
        return a
    cut = _piecewise(or_, a, b)
    return cut if cut is not None else _make("bvor", (a, b), a.width)


def xor(a: Term, b: Term) -> Term:
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        mask = b.args[0]
        if a.op == "const":
            return const(a.args[0] ^ mask, a.width)
        if mask == 0:
            return a
        if mask == (1 << a.width) - 1:
            return not_(a)
        runs = _runs(mask, a.width)
        if len(runs) <= _MOST_MASK_RUNS:
            return concat(*[not_(extract(hi, lo, a)) if bit else extract(hi, lo, a) for hi, lo, bit in runs])
        return _make("bvxor", (a, b), a.width)
    if a is b:
        return const(0, a.width)
    cut = _piecewise(xor, a, b)
    return cut if cut is not None else _make("bvxor", (a, b), a.width)


_BITWISE = {"bvand": and_, "bvor": or_, "bvxor": xor}


def not_(a: Term) -> Term:
    if a.op == "const":
        return const(~a.args[0], a.width)
    if a.op == "bvnot":
        return a.args[0]  # type: ignore[no-any-return]
    if a.op == "concat":
        return concat(*[not_(part) for part in a.args])
    if a.op == "ite" and (a.args[1].op == "const" or a.args[2].op == "const"):
        return ite(a.args[0], not_(a.args[1]), not_(a.args[2]))
    return _make("bvnot", (a,), a.width)


def shl(a: Term, b: Term) -> Term:
    if b.op == "const":
        n = b.args[0]
        if n == 0:
            return a
        if n >= a.width:
            return const(0, a.width)
        return concat(extract(a.width - 1 - n, 0, a), const(0, n))
    return _make("bvshl", (a, b), a.width)


def lshr(a: Term, b: Term) -> Term:
    if b.op == "const":
        n = b.args[0]
        if n == 0:
            return a
        if n >= a.width:
            return const(0, a.width)
        return concat(const(0, n), extract(a.width - 1, n, a))
    return _make("bvlshr", (a, b), a.width)


def ashr(a: Term, b: Term) -> Term:
    if b.op == "const":
        n = min(b.args[0], a.width - 1)
        return sign_extend(n, extract(a.width - 1, n, a))
    return _make("bvashr", (a, b), a.width)


# ---------------------------------------------------------------------------------------------- truth


def ite(c: Term, a: Term, b: Term) -> Term:
    if c is TRUE or a is b:
        return a
    if c is FALSE:
        return b
    if c.op == "not":
        return ite(c.args[0], b, a)
    if a.width == 0:
        return disj(conj(c, a), conj(negate(c), b))
    if b.op == "ite" and b.args[0] is c:
        b = b.args[2]
    if a.op == "ite" and a.args[0] is c:
        a = a.args[1]
    return _make("ite", (c, a, b), a.width) if a is not b else a


def negate(c: Term) -> Term:
    if c.op == "not":
        return c.args[0]  # type: ignore[no-any-return]
    if c.op == "const":
        return FALSE if c is TRUE else TRUE
    return _make("not", (c,), 0)


def _junction(op: str, unit: Term, zero: Term, terms: tuple[Term, ...]) -> Term:
    flat: dict[Term, None] = {}
    for t in terms:
        for part in t.args if t.op == op else (t,):
            if part is zero or negate(part) in flat:
                return zero
            if part is not unit:
                flat[part] = None
    if not flat:
        return unit
    if len(flat) == 1:
        return next(iter(flat))
    return _make(op, tuple(flat), 0)


def conj(*terms: Term) -> Term:
    return _junction("and", TRUE, FALSE, terms)


def disj(*terms: Term) -> Term:
    return _junction("or", FALSE, TRUE, terms)


def eq(a: Term, b: Term) -> Term:
    if a is b:
        return TRUE
    if a.op == "const":
        if b.op == "const":
            return FALSE
        a, b = b, a
    if a.width == 0:
        return disj(conj(a, b), conj(negate(a), negate(b)))
    op = a.op
    if b.op == "const":
        value = b.args[0]
        if op == "concat":
            parts = []
            end = a.width
            pieces: list[tuple[Term, int]] = []
            for part in a.args:
                end -= part.width
                pieces.append((part, value >> end & (1 << part.width) - 1))
            for part, wanted in _joined_slices(pieces):
                piece = eq(part, const(wanted, part.width))
                if piece is FALSE:
                    return FALSE
                parts.append(piece)
            return conj(*parts)
        if op == "ite":
            c, x, y = a.args
            if x.op == "const":
                return disj(c, eq(y, b)) if x is b else conj(negate(c), eq(y, b))
            if y.op == "const":
                return disj(negate(c), eq(x, b)) if y is b else conj(c, eq(x, b))
        elif op == "bvadd" and a.args[1].op == "const":
            return eq(a.args[0], const(value - a.args[1].args[0], a.width))
        elif op == "bvsub":
            if value == 0:
                return eq(a.args[0], a.args[1])
            if a.args[0].op == "const":
                return eq(a.args[1], const(a.args[0].args[0] - value, a.width))
        elif op == "bvnot":
            return eq(a.args[0], const(~value, a.width))
        elif op == "bvxor":
            if value == 0:
                return eq(a.args[0], a.args[1])
            if a.args[1].op == "const":
                return eq(a.args[0], const(value ^ a.args[1].args[0], a.width))
        elif op == "sign_extend":
            inner = a.args[1]
            low = const(value, inner.width)
            return eq(inner, low) if sign_extend(a.args[0], low) is b else FALSE
        if a.width == 1 and value == 0:
            return negate(eq(a, const(1, 1)))
    elif (shorter := _shifted_sums(a, b)) is not None:
        return eq(*shorter)
    elif op == "concat" or b.op == "concat":
        cut = _common_cut(a, b)
        if cut is not None:
            lo = cut
            return conj(
                eq(extract(a.width - 1, lo, a), extract(a.width - 1, lo, b)),
                eq(extract(lo - 1, 0, a), extract(lo - 1, 0, b)),
            )
    return _make("=", (a, b), 0)


def _joined_slices(pieces: list[tuple[Term, int]]) -> list[tuple[Term, int]]:
    """Neighbouring slices of one term, wherever they stand, as one: a swapped field is compared as a whole."""
    slices: dict[Term, list[tuple[int, int, int]]] = {}
    result: list[tuple[Term, int]] = []
    for part, wanted in pieces:
        if part.op == "extract":
            slices.setdefault(part.args[2], []).append((part.args[1], part.args[0], wanted))
        else:
            result.append((part, wanted))
    for base, found in slices.items():
        found.sort()
        low, high, value = found[0]
        for next_low, next_high, wanted in found[1:]:
            if next_low == high + 1:
                value |= wanted << (next_low - low)
                high = next_high
            else:
                result.append((extract(high, low, base), value))
                low, high, value = next_low, next_high, wanted
        result.append((extract(high, low, base), value))
    return result


def _common_cut(a: Term, b: Term) -> int | None:
    """A place where two terms of one width may be cut without cutting a piece of either, or a constant piece's edge."""
    if a.op == "concat" and b.op == "concat":
        mine: set[int] = set()
        end: int = a.width
        for part in a.args[:-1]:
            end -= part.width
            mine.add(end)
        end = b.width
        for part in b.args[:-1]:
            end -= part.width
            if end in mine:
                return end
    for t in (a, b):
        if t.op == "concat":
            for cut in _cuts(t):
                if 0 < cut < t.width:
                    return cut
    return None


def ne(a: Term, b: Term) -> Term:
    return negate(eq(a, b))


_ARITHMETIC = {"bvadd": add, "bvsub": sub, "bvmul": mul}


def _fits(t: Term, width: int) -> bool:
    """Whether arithmetic may be narrowed: some operand has no more bits than that. Else the bytes of one sum, as a swap
    takes them apart, would be unrelated sums."""
    return any(a.op != "const" and a.width - _leading_zeros(a) <= width for a in t.args)


def _leading_zeros(t: Term) -> int:
    """How many of the highest bits are zero whatever the input."""
    return t.width - t.most.bit_length()


def _literal_zeros(t: Term) -> int:
    """The same for a term that says so itself: cutting them off makes it simpler, not more complicated."""
    if t.op == "concat" and t.args[0].op == "const":
        head = t.args[0]
        return int(head.width - head.args[0].bit_length())
    return int(t.width - t.args[0].bit_length()) if t.op == "const" else 0


def _exact_sum(t: Term) -> tuple[Term, int] | None:
    """(x, c) if the term is x + c, and the sum never wraps."""
    if t.op == "bvadd" and t.args[1].op == "const" and not t.args[0].most + t.args[1].args[0] >> t.width:
        return t.args[0], t.args[1].args[0]
    return None


def _shifted_sums(a: Term, b: Term) -> tuple[Term, Term] | None:
    """Two sums without what both have in common."""
    first, second = _exact_sum(a), _exact_sum(b)
    if first is None or second is None:
        return None
    common = min(first[1], second[1])
    return add(first[0], const(first[1] - common, a.width)), add(second[0], const(second[1] - common, a.width))


def ult(a: Term, b: Term) -> Term:
    if a is b:
        return FALSE
    width = a.width
    if b.op == "const":
        value = b.args[0]
        if a.op == "const":
            return TRUE if a.args[0] < value else FALSE
        if value == 0:
            return FALSE
        if value == 1:
            return eq(a, const(0, width))
        if value == (1 << width) - 1:
            return ne(a, b)
        if a.most < value:
            return TRUE
        if (total := _exact_sum(a)) is not None:
            return ult(total[0], const(value - total[1], width)) if value > total[1] else FALSE
    elif a.op == "const":
        value = a.args[0]
        if value == (1 << width) - 1:
            return FALSE
        if value == 0:
            return ne(b, a)
        if value == (1 << width) - 2:
            return eq(b, const(-1, width))
        if b.most <= value:
            return FALSE
        if (total := _exact_sum(b)) is not None:
            return ult(const(value - total[1], width), total[0]) if value >= total[1] else TRUE
    elif (shorter := _shifted_sums(a, b)) is not None:
        return ult(*shorter)
    zeros = min(_literal_zeros(a), _literal_zeros(b))
    if zeros:
        return ult(extract(width - zeros - 1, 0, a), extract(width - zeros - 1, 0, b))
    if b.op == "const" and a.op == "ite" and (a.args[1].op == "const" or a.args[2].op == "const"):
        return ite(a.args[0], ult(a.args[1], b), ult(a.args[2], b))
    if a.op == "const" and b.op == "ite" and (b.args[1].op == "const" or b.args[2].op == "const"):
        return ite(b.args[0], ult(a, b.args[1]), ult(a, b.args[2]))
    # Against a constant, a constant low piece k decides only where the high pieces are equal.
    if b.op == "const" and a.op == "concat" and a.args[-1].op == "const":
        low = a.args[-1].width
        high, bound, rest = extract(width - 1, low, a), b.args[0] >> low, b.args[0] & ((1 << low) - 1)
        limit = const(bound, width - low)
        return ule(high, limit) if a.args[-1].args[0] < rest else ult(high, limit)
    if a.op == "const" and b.op == "concat" and b.args[-1].op == "const":
        low = b.args[-1].width
        high, bound, rest = extract(width - 1, low, b), a.args[0] >> low, a.args[0] & ((1 << low) - 1)
        limit = const(bound, width - low)
        return ule(limit, high) if rest < b.args[-1].args[0] else ult(limit, high)
    # A constant whose low bits are all zero bounds only the high piece: x:y < c:0 exactly if x < c.
    if b.op == "const" and a.op == "concat":
        low = a.args[-1].width
        if b.args[0] & ((1 << low) - 1) == 0:
            return ult(extract(width - 1, low, a), const(b.args[0] >> low, width - low))
    return _make("bvult", (a, b), 0)


def ule(a: Term, b: Term) -> Term:
    return negate(ult(b, a))


def ugt(a: Term, b: Term) -> Term:
    return ult(b, a)


def uge(a: Term, b: Term) -> Term:
    return negate(ult(a, b))


def slt(a: Term, b: Term) -> Term:
    if a is b:
        return FALSE
    width = a.width
    if a.op == "const" and b.op == "const":
        return TRUE if signed(a.args[0], width) < signed(b.args[0], width) else FALSE
    if b.op == "const" and b.args[0] == 0:
        return eq(extract(width - 1, width - 1, a), const(1, 1))
    positive_a, positive_b = _leading_zeros(a) > 0, _leading_zeros(b) > 0
    if positive_a and positive_b:
        return ult(a, b)
    if positive_a and b.op == "const":
        return FALSE  # b is negative
    if positive_b and a.op == "const":
        return TRUE  # a is negative
    if a.op == "sign_extend" and (b.op == "sign_extend" or b.op == "const"):
        narrow = max(a.args[1].width, b.args[1].width if b.op == "sign_extend" else 0)
        low_a, low_b = extract(narrow - 1, 0, a), extract(narrow - 1, 0, b)
        if sign_extend(width - narrow, low_b) is b:
            return slt(low_a, low_b)
    if b.op == "const" and a.op == "ite" and (a.args[1].op == "const" or a.args[2].op == "const"):
        return ite(a.args[0], slt(a.args[1], b), slt(a.args[2], b))
    return _make("bvslt", (a, b), 0)


def sle(a: Term, b: Term) -> Term:
    return negate(slt(b, a))
