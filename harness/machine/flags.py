"""AMD64 condition codes, which VEX keeps lazily as (cc_op, cc_dep1, cc_dep2, cc_ndep).

Integers are computed outright. For terms the common producers (sub, logic, add, inc, dec, shifts) have small forms of
their own; the generic ones would make every comparison a puzzle for the solver.
"""

from __future__ import annotations

from typing import Any

from harness.machine.operations import Unsupported
from harness.machine.values import Value, concrete, make, term_of
from soft.solve import terms as t
from soft.solve.terms import Term, signed

# VEX numbers cc_op: 0 copy, then groups of four (8, 16, 32, 64 bits) in this order.
_GROUPS = ("add", "sub", "adc", "sbb", "logic", "inc", "dec", "shl", "shr", "rol", "ror", "umul", "smul")
_CONDITIONS = ("o", "b", "z", "be", "s", "p", "l", "le")  # condition // 2; odd numbers are the negations
_CARRY = 2
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


def _symbolic(kind: str, cc_op: int, dep1: Term, dep2: Term, ndep: Term) -> Term | None:
    """One condition as a Boolean term, or None where the generic way has to be taken."""
    group, width = _group(cc_op)
    if group == "copy":
        bits = {k: t.eq(t.extract(i, i, dep1), t.const(1, 1)) for k, i in _BITS.items()}
        less = t.negate(t.eq(bits["s"], bits["o"]))
        table = {"o": bits["o"], "b": bits["c"], "z": bits["z"], "be": t.disj(bits["c"], bits["z"])}
        table |= {"s": bits["s"], "p": bits["p"], "l": less, "le": t.disj(less, bits["z"])}
        return table[kind]
    top = width - 1
    a, b, zero = t.extract(top, 0, dep1), t.extract(top, 0, dep2), t.const(0, width)

    def is_negative(x: Term) -> Term:
        return t.slt(x, zero)

    if group == "sub":
        if kind == "o":
            r = t.sub(a, b)
            return is_negative(t.and_(t.xor(a, b), t.xor(a, r)))
        return {
            "b": lambda: t.ult(a, b),
            "z": lambda: t.eq(a, b),
            "be": lambda: t.ule(a, b),
            "s": lambda: is_negative(t.sub(a, b)),
            "l": lambda: t.slt(a, b),
            "le": lambda: t.sle(a, b),
        }.get(kind, lambda: _parity(t.sub(a, b)))()
    if group == "logic":
        table_logic: dict[str, Any] = {"o": t.FALSE, "b": t.FALSE, "z": t.eq(a, zero), "be": t.eq(a, zero)}
        table_logic |= {"s": is_negative(a), "l": is_negative(a), "le": t.sle(a, zero), "p": _parity(a)}
        return table_logic[kind]  # type: ignore[no-any-return]
    if group == "add":
        r = t.add(a, b)
        carry, is_zero, sign = t.ult(r, a), t.eq(r, zero), is_negative(r)
        overflow = is_negative(t.and_(t.not_(t.xor(a, b)), t.xor(a, r)))
    elif group in ("inc", "dec"):
        edge = 1 << top if group == "inc" else (1 << top) - 1
        carry = t.eq(t.extract(0, 0, ndep), t.const(1, 1))
        r, is_zero, sign, overflow = a, t.eq(a, zero), is_negative(a), t.eq(a, t.const(edge, width))
    elif group in ("shl", "shr"):
        bit = top if group == "shl" else 0
        carry = t.eq(t.extract(bit, bit, b), t.const(1, 1))
        r, is_zero, sign, overflow = a, t.eq(a, zero), is_negative(a), is_negative(t.xor(a, b))
    elif group in ("umul", "smul"):
        extend = t.zero_extend if group == "umul" else t.sign_extend
        full = t.mul(extend(width, a), extend(width, b))
        r = t.extract(top, 0, full)
        carry = overflow = t.ne(extend(width, r), full)
        is_zero, sign = t.eq(r, zero), is_negative(r)
    elif group in ("adc", "sbb"):
        old = t.zero_extend(top, t.extract(0, 0, ndep))
        b = t.xor(b, old)
        had = t.eq(t.extract(0, 0, ndep), t.const(1, 1))
        if group == "adc":
            r = t.add(t.add(a, b), old)
            carry, same = t.ite(had, t.ule(r, a), t.ult(r, a)), t.not_(t.xor(a, b))
        else:
            r = t.sub(t.sub(a, b), old)
            carry, same = t.ite(had, t.ule(a, b), t.ult(a, b)), t.xor(a, b)
        overflow, is_zero, sign = is_negative(t.and_(same, t.xor(a, r))), t.eq(r, zero), is_negative(r)
    else:
        return None
    less = t.negate(t.eq(sign, overflow))
    return {
        "o": lambda: overflow,
        "b": lambda: carry,
        "z": lambda: is_zero,
        "be": lambda: t.disj(carry, is_zero),
        "s": lambda: sign,
        "p": lambda: _parity(r),
        "l": lambda: less,
        "le": lambda: t.disj(less, is_zero),
    }[kind]()


def _parity(result: Term) -> Term:
    folded = t.extract(0, 0, result)
    for bit in range(1, 8):
        folded = t.xor(folded, t.extract(bit, bit, result))
    return t.eq(folded, t.const(0, 1))


_memo: dict[tuple[Any, ...], Term] = {}


def calculate_condition(cond: Value, cc_op: Value, dep1: Value, dep2: Value, ndep: Value) -> Value:
    """VEX's amd64g_calculate_condition."""
    if dep1.__class__ is int and dep2.__class__ is int and ndep.__class__ is int and cc_op.__class__ is int:
        assert isinstance(cond, int)
        return _condition(cond, cc_op, dep1, dep2, ndep)  # type: ignore[arg-type]
    number, operation = _number(cond), _number(cc_op)
    terms = term_of(dep1, 64), term_of(dep2, 64), term_of(ndep, 64)
    key = (number, operation, *terms)
    term = _memo.get(key)
    if term is None:
        condition = _symbolic(_CONDITIONS[number >> 1], operation, *terms)
        if condition is None:
            raise Unsupported(f"symbolic condition codes of operation {operation}")
        if number & 1:
            condition = t.negate(condition)
        term = _memo[key] = t.ite(condition, t.const(1, 64), t.const(0, 64))
    return make(term, _condition(number, operation, concrete(dep1), concrete(dep2), concrete(ndep)))


def _number(value: Value) -> int:
    if isinstance(value, int):
        return value
    raise Unsupported("an operation whose condition codes depend on the input")


def calculate_carry(cc_op: Value, dep1: Value, dep2: Value, ndep: Value) -> Value:
    """VEX's amd64g_calculate_rflags_c."""
    return calculate_condition(_CARRY, cc_op, dep1, dep2, ndep)


def calculate_all(cc_op: Value, dep1: Value, dep2: Value, ndep: Value) -> Value:
    """VEX's amd64g_calculate_rflags_all."""
    if isinstance(dep1, int) and isinstance(dep2, int) and isinstance(ndep, int) and isinstance(cc_op, int):
        c, p, a, z, s, o = _flags(cc_op, dep1, dep2, ndep)
        return c | p << 2 | a << 4 | z << 6 | s << 7 | o << 11
    operation = _number(cc_op)
    terms = term_of(dep1, 64), term_of(dep2, 64), term_of(ndep, 64)
    flags = {}
    for flag, kind in (("c", "b"), ("p", "p"), ("z", "z"), ("s", "s"), ("o", "o")):
        condition = _symbolic(kind, operation, *terms)
        if condition is None:
            raise Unsupported(f"symbolic condition codes of operation {operation}")
        flags[flag] = t.ite(condition, t.const(1, 64), t.const(0, 64))
    total = t.const(0, 64)
    for flag, term in flags.items():
        total = t.or_(total, t.shl(term, t.const(_BITS[flag], 64)))
    # The adjust flag serves decimal arithmetic only; no compiler emits a read of it.
    value = _flags(operation, concrete(dep1), concrete(dep2), concrete(ndep))
    return make(total, value[0] | value[1] << 2 | value[3] << 6 | value[4] << 7 | value[5] << 11)
