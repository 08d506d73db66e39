"""AMD64 condition codes, which VEX keeps lazily as (cc_op, cc_dep1, cc_dep2, cc_ndep).

Integers are computed outright, and the common cases as one Python expression that a block has in its text. For terms,
comparisons (sub) and tests (logic) have small forms of their own: spelled out as flags, every comparison would be a
puzzle for the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from harness.machine.ends import Unsupported
from harness.machine.values import Value, concrete, make, term_of
from soft.solve import terms as t
from soft.solve.terms import Term, signed

# VEX numbers cc_op: 0 copy, then groups of four (8, 16, 32, 64 bits) in this order.
_GROUPS = ("add", "sub", "adc", "sbb", "logic", "inc", "dec", "shl", "shr", "rol", "ror", "umul", "smul")
_CONDITIONS = ("o", "b", "z", "be", "s", "p", "l", "le")  # condition // 2; odd numbers are the negations
_CARRY = 2
_LOGIC = 1 + 4 * _GROUPS.index("logic")
# Where each flag stands in rflags.
_BITS = {"c": 0, "p": 2, "a": 4, "z": 6, "s": 7, "o": 11}


def _group(cc_op: int) -> tuple[str, int]:
    if cc_op == 0:
        return "copy", 64
    index = (cc_op - 1) >> 2
    if index >= len(_GROUPS):
        raise Unsupported(f"condition codes of operation {cc_op}")
    return _GROUPS[index], 8 << (cc_op - 1 & 3)


def _even_parity(value: int) -> int:
    return (value & 0xFF).bit_count() & 1 ^ 1


def _flags(cc_op: int, dep1: int, dep2: int, ndep: int) -> tuple[int, int, int, int, int, int]:
    """(carry, parity, adjust, zero, sign, overflow)"""
    group, width = _group(cc_op)
    if group == "copy":
        return tuple(dep1 >> _BITS[f] & 1 for f in "cpazso")  # type: ignore[return-value]
    mask, top = (1 << width) - 1, width - 1
    a, b = dep1 & mask, dep2 & mask
    adjust = 0
    if group == "add":
        r = a + b & mask
        c, o, adjust = r < a, ~(a ^ b) & (a ^ r), (a ^ b ^ r) >> 4 & 1
    elif group == "sub":
        r = a - b & mask
        c, o, adjust = a < b, (a ^ b) & (a ^ r), (a ^ b ^ r) >> 4 & 1
    elif group == "adc":
        old = ndep & 1
        b = (dep2 ^ old) & mask
        r = a + b + old & mask
        c, o, adjust = (r <= a if old else r < a), ~(a ^ b) & (a ^ r), (a ^ b ^ r) >> 4 & 1
    elif group == "sbb":
        old = ndep & 1
        b = (dep2 ^ old) & mask
        r = a - b - old & mask
        c, o, adjust = (a <= b if old else a < b), (a ^ b) & (a ^ r), (a ^ b ^ r) >> 4 & 1
    elif group == "logic":
        r, c, o = a, False, 0
    elif group == "inc":
        r, c, o, adjust = a, bool(ndep & 1), (1 << top if a == 1 << top else 0), (a ^ (a - 1)) >> 4 & 1
    elif group == "dec":
        r, c, o, adjust = a, bool(ndep & 1), (1 << top if a == mask >> 1 else 0), (a ^ (a + 1)) >> 4 & 1
    elif group == "shl":
        r, c, o = a, bool(b >> top & 1), a ^ b
    elif group == "shr":
        r, c, o = a, bool(b & 1), a ^ b
    elif group == "umul":
        product = a * b
        r = product & mask
        c = product >> width != 0
        o = c << top
    elif group == "smul":
        full = signed(a, width) * signed(b, width)
        r = full & mask
        c = signed(r, width) != full
        o = c << top
    else:  # rol, ror: only carry and overflow change, the rest stands in ndep
        c = bool(a & 1) if group == "rol" else bool(a >> top & 1)
        o = (a >> top ^ a) << top if group == "rol" else a ^ a << 1
        keep = [ndep >> _BITS[f] & 1 for f in "pazs"]
        return int(c), keep[0], keep[1], keep[2], keep[3], o >> top & 1
    return int(c), _even_parity(r), adjust, int(r == 0), r >> top & 1, o >> top & 1


def _condition(cond: int, cc_op: int, dep1: int, dep2: int, ndep: int) -> int:
    c, p, _, z, s, o = _flags(cc_op, dep1, dep2, ndep)
    value = (o, c, z, c | z, s, p, s ^ o, (s ^ o) | z)[cond >> 1]
    return value ^ (cond & 1)


# Truth of a condition over the operands {a}, {b} and the old flags {n}: sub and logic make up nearly all of real code.
_TEMPLATES: dict[tuple[str, str], str] = {
    ("sub", "z"): "{a} == {b}",
    ("sub", "b"): "{a} < {b}",
    ("sub", "be"): "{a} <= {b}",
    ("sub", "s"): "({a} - {b}) & {top}",
    # With the sign bit flipped, signed order is unsigned order.
    ("sub", "l"): "({a} ^ {top}) < ({b} ^ {top})",
    ("sub", "le"): "({a} ^ {top}) <= ({b} ^ {top})",
    ("logic", "o"): "0",
    ("logic", "b"): "0",
    ("logic", "z"): "{a} == 0",
    ("logic", "be"): "{a} == 0",
    ("logic", "s"): "{a} & {top}",
    ("logic", "l"): "{a} & {top}",
    ("logic", "le"): "not 0 < {a} < {top}",
    ("add", "z"): "({a} + {b}) & {mask} == 0",
    ("add", "b"): "{a} + {b} > {mask}",
    ("add", "s"): "({a} + {b}) & {top}",
    **{(group, "z"): "{a} == 0" for group in ("inc", "dec", "shl", "shr")},
    **{(group, "s"): "{a} & {top}" for group in ("inc", "dec", "shl", "shr")},
    **{(group, "b"): "{n} & 1" for group in ("inc", "dec")},
    ("shl", "b"): "{b} & {top}",
    ("shr", "b"): "{b} & 1",
}


def expression(cond: int, cc_op: int, dep1: str, dep2: str, ndep: str) -> str | None:
    """Python text that is true exactly if the condition holds, over the texts of integers; None if there is none."""
    index = (cc_op - 1) >> 2
    if not 0 <= index < len(_GROUPS):
        return None
    template = _TEMPLATES.get((_GROUPS[index], _CONDITIONS[cond >> 1]))
    if template is None:
        return None
    width = 8 << (cc_op - 1 & 3)
    mask = hex((1 << width) - 1)
    a, b = (dep1, dep2) if width == 64 else (f"({dep1} & {mask})", f"({dep2} & {mask})")
    text = template.format(a=a, b=b, n=ndep, top=hex(1 << width - 1), mask=mask)
    return f"not ({text})" if cond & 1 else text


@cache
def _evaluator(cond: int, cc_op: int) -> Callable[[int, int, int], int]:
    text = expression(cond, cc_op, "a", "b", "n")
    if text is None:
        return lambda a, b, n: _condition(cond, cc_op, a, b, n)
    function: Callable[[int, int, int], int] = eval(f"lambda a, b, n: 1 if {text} else 0")  # our own text
    return function


def _is_set(term: Term, bit: int) -> Term:
    return t.eq(t.extract(bit, bit, term), t.const(1, 1))


def _flag_terms(cc_op: int, dep1: Term, dep2: Term, ndep: Term) -> dict[str, Term]:
    """Each flag as a Boolean term."""
    group, width = _group(cc_op)
    if group == "copy":
        return {flag: _is_set(dep1, bit) for flag, bit in _BITS.items()}
    top = width - 1
    a, b, zero = t.extract(top, 0, dep1), t.extract(top, 0, dep2), t.const(0, width)
    carry = overflow = adjust = t.FALSE
    result = a
    if group in ("add", "sub", "adc", "sbb"):
        old, had = zero, t.FALSE
        if group in ("adc", "sbb"):
            old, had = t.zero_extend(top, t.extract(0, 0, ndep)), _is_set(ndep, 0)
            b = t.xor(b, old)
        if group in ("add", "adc"):
            result = t.add(t.add(a, b), old)
            carry, differ = t.ite(had, t.ule(result, a), t.ult(result, a)), t.not_(t.xor(a, b))
        else:
            result = t.sub(t.sub(a, b), old)
            carry, differ = t.ite(had, t.ule(a, b), t.ult(a, b)), t.xor(a, b)
        overflow = _is_set(t.and_(differ, t.xor(a, result)), top)
        adjust = _is_set(t.xor(t.xor(a, b), result), 4)
    elif group in ("inc", "dec"):
        edge = 1 << top if group == "inc" else (1 << top) - 1
        carry, overflow = _is_set(ndep, 0), t.eq(a, t.const(edge, width))
        adjust = _is_set(t.xor(a, t.add(a, t.const(-1 if group == "inc" else 1, width))), 4)
    elif group in ("shl", "shr"):
        carry, overflow = _is_set(b, top if group == "shl" else 0), _is_set(t.xor(a, b), top)
    elif group in ("umul", "smul"):
        extend = t.zero_extend if group == "umul" else t.sign_extend
        full = t.mul(extend(width, a), extend(width, b))
        result = t.extract(top, 0, full)
        carry = overflow = t.ne(extend(width, result), full)
    elif group in ("rol", "ror"):
        # Only carry and overflow change; the rest stands in ndep.
        first, second = (0, top) if group == "rol" else (top, top - 1)
        kept = {flag: _is_set(ndep, _BITS[flag]) for flag in "pazs"}
        return {**kept, "c": _is_set(a, first), "o": t.negate(t.eq(_is_set(a, first), _is_set(a, second)))}
    return {
        "c": carry,
        "p": _parity(result),
        "a": adjust,
        "z": t.eq(result, zero),
        "s": _is_set(result, top),
        "o": overflow,
    }


def _symbolic(kind: str, cc_op: int, dep1: Term, dep2: Term, ndep: Term) -> Term:
    """One condition as a Boolean term."""
    group, width = _group(cc_op)
    if group in ("sub", "logic"):
        a, b = (t.extract(width - 1, 0, dep) for dep in (dep1, dep2))
        if group == "logic":
            b = t.const(0, width)
        if kind == "b":
            return t.ult(a, b)
        if kind == "be":
            return t.ule(a, b)
        if kind == "z":
            return t.eq(a, b)
        if kind == "l":
            return t.slt(a, b)
        if kind == "le":
            return t.sle(a, b)
    flags = _flag_terms(cc_op, dep1, dep2, ndep)
    less = t.negate(t.eq(flags["s"], flags["o"]))
    return {
        "o": flags["o"],
        "b": flags["c"],
        "z": flags["z"],
        "be": t.disj(flags["c"], flags["z"]),
        "s": flags["s"],
        "p": flags["p"],
        "l": less,
        "le": t.disj(less, flags["z"]),
    }[kind]


def _parity(result: Term) -> Term:
    folded = t.extract(0, 0, result)
    for bit in range(1, 8):
        folded = t.xor(folded, t.extract(bit, bit, result))
    return t.eq(folded, t.const(0, 1))


_memo: dict[tuple[Any, ...], Term] = {}


def calculate_condition(cond: Any, cc_op: Any, dep1: Any, dep2: Any, ndep: Any) -> Value:
    """VEX's amd64g_calculate_condition."""
    if dep1.__class__ is int and dep2.__class__ is int and ndep.__class__ is int and cc_op.__class__ is int:
        return _evaluator(cond, cc_op)(dep1, dep2, ndep)
    terms = term_of(dep1, 64), term_of(dep2, 64), term_of(ndep, 64)
    key = (cond, cc_op if cc_op.__class__ is int else cc_op.term, *terms)
    term = _memo.get(key)
    if term is None:
        kind = _CONDITIONS[cond >> 1]
        condition = _over_operations(cc_op, lambda number: _symbolic(kind, number, *terms))
        if cond & 1:
            condition = t.negate(condition)
        term = _memo[key] = t.ite(condition, t.const(1, 64), t.const(0, 64))
    return make(term, _evaluator(cond, concrete(cc_op))(concrete(dep1), concrete(dep2), concrete(ndep)))


def _over_operations(cc_op: Value, one: Callable[[int], Term]) -> Term:
    """`one` of the operation that set the flags. It may depend on the input itself: a shift by nothing sets none."""
    if isinstance(cc_op, int):
        return one(cc_op)
    return _over_leaves(cc_op.term, one)


def _over_leaves(operation: Term, one: Callable[[int], Term]) -> Term:
    if operation.op == "const":
        return one(int(operation.args[0]))
    if operation.op == "ite":
        condition, yes, no = operation.args
        return t.ite(condition, _over_leaves(yes, one), _over_leaves(no, one))
    raise Unsupported("condition codes of an operation that depends on the input")


def calculate_carry(cc_op: Value, dep1: Value, dep2: Value, ndep: Value) -> Value:
    """VEX's amd64g_calculate_rflags_c."""
    return calculate_condition(_CARRY, cc_op, dep1, dep2, ndep)


def calculate_all(cc_op: Value, dep1: Value, dep2: Value, ndep: Value) -> Value:
    """VEX's amd64g_calculate_rflags_all."""
    value = _all_flags(concrete(cc_op), concrete(dep1), concrete(dep2), concrete(ndep))
    if isinstance(dep1, int) and isinstance(dep2, int) and isinstance(ndep, int) and isinstance(cc_op, int):
        return value
    terms = term_of(dep1, 64), term_of(dep2, 64), term_of(ndep, 64)
    key = ("all", cc_op if isinstance(cc_op, int) else cc_op.term, *terms)
    term = _memo.get(key)
    if term is None:
        term = _memo[key] = _over_operations(cc_op, lambda number: _gather(_flag_terms(number, *terms)))
    return make(term, value)


_PARITY_BITS = bytes(_even_parity(value) << 2 for value in range(256))


def _all_flags(cc_op: int, dep1: int, dep2: int, ndep: int) -> int:
    if _LOGIC <= cc_op < _LOGIC + 4:
        # VEX computes all flags before each rotate, and hashing code rotates what it has just combined.
        width = 8 << cc_op - _LOGIC
        result = dep1 & (1 << width) - 1
        return _PARITY_BITS[result & 0xFF] | result >> width - 1 << 7 if result else 0x44
    c, p, a, z, s, o = _flags(cc_op, dep1, dep2, ndep)
    return c | p << 2 | a << 4 | z << 6 | s << 7 | o << 11


def _gather(flags: dict[str, Term]) -> Term:
    one, none = t.const(1, 1), t.const(0, 1)
    names = {bit: flag for flag, bit in _BITS.items()}
    bits = [t.ite(flags[names[bit]], one, none) if bit in names else none for bit in range(12)]
    return t.zero_extend(52, t.concat(*reversed(bits)))
