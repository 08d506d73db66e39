"""VEX operations: for each, a Python expression over integers and a function over terms.

The common scalar operations are written here, because their terms must stay small. Operations on lanes are the scalar
ones repeated. What is left goes to angr's own tables (`bridge.py`), and what those lack is `Unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyvex

from harness.machine import floats
from harness.machine.ends import Trap, Unsupported
from harness.machine.values import Sym, Value, make, term_of
from soft.solve import terms as t
from soft.solve.terms import Term, signed

WIDTHS = {
    "Ity_I1": 1,
    "Ity_I8": 8,
    "Ity_I16": 16,
    "Ity_I32": 32,
    "Ity_I64": 64,
    "Ity_I128": 128,
    "Ity_F32": 32,
    "Ity_F64": 64,
    "Ity_V128": 128,
    "Ity_V256": 256,
}


Symbolic = Callable[..., Term]


@dataclass(frozen=True, slots=True)
class Operation:
    """`expression` has {0}, {1}… for its integer arguments; `symbolic` takes and gives terms.

    `memo` keeps what `symbolic` gave: runs of one prefix build the same terms again and again.
    """

    name: str
    expression: str
    concrete: Callable[..., int]
    symbolic: Symbolic
    argument_widths: tuple[int, ...]
    width: int
    memo: dict[Any, Term] = field(default_factory=dict, compare=False, repr=False)


def _mask(width: int) -> str:
    return hex((1 << width) - 1)


def _signed(place: str, width: int) -> str:
    """The text of a signed value: flipping the sign bit and taking it off again is cheaper than a call."""
    top = hex(1 << width - 1)
    return f"(({place} ^ {top}) - {top})"


def _count_leading(x: int, width: int) -> int:
    return width - x.bit_length()


def _count_trailing(x: int, width: int) -> int:
    return (x & -x).bit_length() - 1 if x else width


def _divmod(x: int, y: int, half: int, is_signed: bool) -> int:
    """Quotient in the low half, remainder in the high half; a quotient that does not fit is a trap, like a zero."""
    low, high = 0, (1 << half) - 1
    if is_signed:
        x, y = signed(x, 2 * half), signed(y, half)
        low, high = -(1 << half - 1), (1 << half - 1) - 1
    if y == 0:
        raise Trap("SIGFPE")
    quotient, remainder = abs(x) // abs(y), abs(x) % abs(y)
    if (x < 0) != (y < 0):
        quotient = -quotient
    if x < 0:
        remainder = -remainder
    if not low <= quotient <= high:
        raise Trap("SIGFPE")
    mask = (1 << half) - 1
    return (remainder & mask) << half | quotient & mask


def division_overflows(dividend: Term, divisor: Term, is_signed: bool) -> Term:
    """When the quotient of 2n bits by n does not fit n bits, which is a trap; VEX itself tests for division by zero."""
    half = divisor.width
    high, low = t.extract(2 * half - 1, half, dividend), t.extract(half - 1, 0, dividend)
    if _is_extension(high, low, is_signed):
        if not is_signed:
            return t.FALSE
        return t.conj(t.eq(low, t.const(1 << half - 1, half)), t.eq(divisor, t.const(-1, half)))
    if not is_signed:
        return t.ule(divisor, high)
    # One bit more, or the least dividend by -1 would wrap.
    quotient = t.sdiv(t.sign_extend(1, dividend), t.sign_extend(half + 1, divisor))
    return t.ne(t.sign_extend(half + 1, t.extract(half - 1, 0, quotient)), quotient)


def _is_extension(high: Term, low: Term, is_signed: bool) -> bool:
    """Is `high` just the extension of `low`, as compilers set it up before they divide n bits by n?"""
    return high is (t.ashr(low, t.const(low.width - 1, low.width)) if is_signed else t.const(0, low.width))


# What the integer expressions of compiled blocks may call.
EXPRESSION_NAMES: dict[str, Any] = {
    "count_leading": _count_leading,
    "count_trailing": _count_trailing,
    "divmod_halves": _divmod,
}


def _shift(kind: Symbolic, width: int) -> Symbolic:
    def shift(a: Term, n: Term) -> Term:
        return kind(a, t.zero_extend(width - n.width, n) if n.width < width else n)

    return shift


def _flag(condition: Callable[[Term, Term], Term]) -> Symbolic:
    def flag(a: Term, b: Term) -> Term:
        return t.ite(condition(a, b), t.const(1, 1), t.const(0, 1))

    return flag


def _wide_multiply(width: int, extend: Callable[[int, Term], Term]) -> Symbolic:
    return lambda a, b: t.mul(extend(width, a), extend(width, b))


def _wide_divide(half: int, is_signed: bool) -> Symbolic:
    def divide(a: Term, b: Term) -> Term:
        high, low = t.extract(2 * half - 1, half, a), t.extract(half - 1, 0, a)
        if _is_extension(high, low, is_signed):
            a = low
        elif is_signed:
            b = t.sign_extend(half, b)
        else:
            b = t.zero_extend(half, b)
        quotient, remainder = (t.sdiv(a, b), t.srem(a, b)) if is_signed else (t.udiv(a, b), t.urem(a, b))
        return t.concat(t.extract(half - 1, 0, remainder), t.extract(half - 1, 0, quotient))

    return divide


def _leading(a: Term) -> Term:
    result = t.const(a.width, a.width)
    for bit in range(a.width):
        result = t.ite(t.eq(t.extract(bit, bit, a), t.const(1, 1)), t.const(a.width - 1 - bit, a.width), result)
    return result


def _trailing(a: Term) -> Term:
    result = t.const(a.width, a.width)
    for bit in reversed(range(a.width)):
        result = t.ite(t.eq(t.extract(bit, bit, a), t.const(1, 1)), t.const(bit, a.width), result)
    return result


Scalar = tuple[str, Symbolic]


def _scalar(name: str) -> Scalar | None:
    """The scalar operations, found by the shape of their names."""
    if m := re.fullmatch(r"(Add|Sub|Mul)(8|16|32|64)", name):
        sign, function = {"Add": ("+", t.add), "Sub": ("-", t.sub), "Mul": ("*", t.mul)}[m[1]]
        return f"({{0}} {sign} {{1}}) & {_mask(int(m[2]))}", function
    if m := re.fullmatch(r"(And|Or|Xor)(1|8|16|32|64|V128|V256)", name):
        sign, function = {"And": ("&", t.and_), "Or": ("|", t.or_), "Xor": ("^", t.xor)}[m[1]]
        return f"{{0}} {sign} {{1}}", function
    if m := re.fullmatch(r"(Shl|Shr|Sar)(8|16|32|64)", name):
        width = int(m[2])
        return {
            "Shl": (f"({{0}} << {{1}}) & {_mask(width)}", _shift(t.shl, width)),
            "Shr": ("{0} >> {1}", _shift(t.lshr, width)),
            "Sar": (f"({_signed('{0}', width)} >> {{1}}) & {_mask(width)}", _shift(t.ashr, width)),
        }[m[1]]
    if m := re.fullmatch(r"(?:Cas|Exp)?Cmp(EQ|NE)(8|16|32|64)", name):
        sign, condition = {"EQ": ("==", t.eq), "NE": ("!=", t.ne)}[m[1]]
        return f"1 if {{0}} {sign} {{1}} else 0", _flag(condition)
    if m := re.fullmatch(r"Cmp(LT|LE)(32|64)(U|S)", name):
        sign = {"LT": "<", "LE": "<="}[m[1]]
        condition = {"LTU": t.ult, "LEU": t.ule, "LTS": t.slt, "LES": t.sle}[m[1] + m[3]]
        if m[3] == "U":
            return f"1 if {{0}} {sign} {{1}} else 0", _flag(condition)
        # With the sign bit flipped, signed order is unsigned order.
        top = hex(1 << int(m[2]) - 1)
        return f"1 if ({{0}} ^ {top}) {sign} ({{1}} ^ {top}) else 0", _flag(condition)
    if m := re.fullmatch(r"Not(1|8|16|32|64|V128|V256)", name):
        return f"{{0}} ^ {_mask(int(m[1].lstrip('V')))}", t.not_
    if m := re.fullmatch(r"(Clz|Ctz)(?:Nat)?(32|64)", name):
        word, count = ("leading", _leading) if m[1] == "Clz" else ("trailing", _trailing)
        return f"count_{word}({{0}}, {m[2]})", count
    if m := re.fullmatch(r"Mull(U|S)(8|16|32|64)", name):
        width = int(m[2])
        if m[1] == "U":
            return "{0} * {1}", _wide_multiply(width, t.zero_extend)
        wide = f"({_signed('{0}', width)} * {_signed('{1}', width)}) & {_mask(2 * width)}"
        return wide, _wide_multiply(width, t.sign_extend)
    if m := re.fullmatch(r"DivMod(U|S)(?:64to32|128to64)", name):
        half = 32 if name.endswith("32") else 64
        return f"divmod_halves({{0}}, {{1}}, {half}, {m[1] == 'S'})", _wide_divide(half, m[1] == "S")
    return _conversion(name)


def _conversion(name: str) -> Scalar | None:
    if m := re.fullmatch(r"(1|8|16|32|64)(U|S)to(8|16|32|64|V128)", name):
        source, target = int(m[1]), int(m[3].lstrip("V"))
        if m[2] == "U":
            return "{0}", lambda a: t.zero_extend(target - source, a)
        return f"{_signed('{0}', source)} & {_mask(target)}", lambda a: t.sign_extend(target - source, a)
    if m := re.fullmatch(r"V?(8|16|32|64|128)to(1|8|16|32|64)", name):
        target = int(m[2])
        return f"{{0}} & {_mask(target)}", lambda a: t.extract(target - 1, 0, a)
    if m := re.fullmatch(r"V?(16|32|64|128)HIto(8|16|32|64)", name):
        target = int(m[2])
        return f"{{0}} >> {target}", lambda a: t.extract(2 * target - 1, target, a)
    if m := re.fullmatch(r"(8|16|32|64)HLto(?:V?)(16|32|64|128)", name):
        return f"({{0}} << {m[1]}) | {{1}}", t.concat
    if m := re.fullmatch(r"V256toV128_(0|1)", name):
        low = 128 * int(m[1])
        return f"({{0}} >> {low}) & {_mask(128)}", lambda a: t.extract(low + 127, low, a)
    if m := re.fullmatch(r"V256to64_(0|1|2|3)", name):
        place = 64 * int(m[1])
        return f"({{0}} >> {place}) & {_mask(64)}", lambda a: t.extract(place + 63, place, a)
    if name == "64x4toV256":
        return "({0} << 192) | ({1} << 128) | ({2} << 64) | {3}", t.concat
    if name == "V128HLtoV256":
        return "({0} << 128) | {1}", t.concat
    if m := re.fullmatch(r"SetV128lo(32|64)", name):
        width = int(m[1])
        return (
            f"({{0}} & {hex((1 << 128) - (1 << width))}) | {{1}}",
            lambda a, b: t.concat(t.extract(127, width, a), b),
        )
    if re.fullmatch(r"Reinterp(F64asI64|I64asF64|F32asI32|I32asF32)", name):
        return "{0}", lambda a: a
    return None


# ---------------------------------------------------------------------------------------------- lanes

_LANE_CONCRETE: dict[str, Callable[[int, int, int], int]] = {
    "Add": lambda a, b, w: a + b,
    "Sub": lambda a, b, w: a - b,
    "Mul": lambda a, b, w: a * b,
    "CmpEQ": lambda a, b, w: -(a == b),
    "CmpGTU": lambda a, b, w: -(a > b),
    "CmpGTS": lambda a, b, w: -(signed(a, w) > signed(b, w)),
    "MinU": lambda a, b, w: min(a, b),
    "MaxU": lambda a, b, w: max(a, b),
    "MinS": lambda a, b, w: min(a, b, key=lambda x: signed(x, w)),
    "MaxS": lambda a, b, w: max(a, b, key=lambda x: signed(x, w)),
    "QSubU": lambda a, b, w: max(a - b, 0),
    "QAddU": lambda a, b, w: min(a + b, (1 << w) - 1),
    "AvgU": lambda a, b, w: (a + b + 1) >> 1,
    "QAddS": lambda a, b, w: _saturate(signed(a, w) + signed(b, w), w, True),
    "QSubS": lambda a, b, w: _saturate(signed(a, w) - signed(b, w), w, True),
    "MulHiU": lambda a, b, w: a * b >> w,
    "MulHiS": lambda a, b, w: signed(a, w) * signed(b, w) >> w,
}


def _saturate(value: int, width: int, is_signed: bool) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    return min(max(value, low), high)


def _saturate_term(value: Term, width: int, is_signed: bool) -> Term:
    """A signed value in fewer bits, at the bound where it does not fit."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    least, most = t.const(low, value.width), t.const(high, value.width)
    inside = t.ite(t.slt(value, least), least, t.ite(t.slt(most, value), most, value))
    return t.extract(width - 1, 0, inside)


def _wider(function: Symbolic, extend: Callable[[int, Term], Term], extra: int) -> Callable[[Term, Term], Term]:
    return lambda a, b: function(extend(extra or a.width, a), extend(extra or b.width, b))


def _all_ones_if(condition: Term, width: int) -> Term:
    return t.ite(condition, t.const(-1, width), t.const(0, width))


_LANE_SYMBOLIC: dict[str, Callable[[Term, Term], Term]] = {
    "Add": t.add,
    "Sub": t.sub,
    "Mul": t.mul,
    "CmpEQ": lambda a, b: _all_ones_if(t.eq(a, b), a.width),
    "CmpGTU": lambda a, b: _all_ones_if(t.ult(b, a), a.width),
    "CmpGTS": lambda a, b: _all_ones_if(t.slt(b, a), a.width),
    "MinU": lambda a, b: t.ite(t.ult(a, b), a, b),
    "MaxU": lambda a, b: t.ite(t.ult(a, b), b, a),
    "MinS": lambda a, b: t.ite(t.slt(a, b), a, b),
    "MaxS": lambda a, b: t.ite(t.slt(a, b), b, a),
    "QSubU": lambda a, b: t.ite(t.ult(a, b), t.const(0, a.width), t.sub(a, b)),
    "QAddU": lambda a, b: t.ite(t.ult(t.add(a, b), a), t.const(-1, a.width), t.add(a, b)),
    "AvgU": lambda a, b: t.extract(
        a.width, 1, t.add(t.add(t.zero_extend(1, a), t.zero_extend(1, b)), t.const(1, a.width + 1))
    ),
    "QAddS": lambda a, b: _saturate_term(_wider(t.add, t.sign_extend, 1)(a, b), a.width, True),
    "QSubS": lambda a, b: _saturate_term(_wider(t.sub, t.sign_extend, 1)(a, b), a.width, True),
    "MulHiU": lambda a, b: t.extract(2 * a.width - 1, a.width, _wider(t.mul, t.zero_extend, 0)(a, b)),
    "MulHiS": lambda a, b: t.extract(2 * a.width - 1, a.width, _wider(t.mul, t.sign_extend, 0)(a, b)),
}

Pair = tuple[Callable[..., int], Symbolic]


def _split(x: int, width: int, count: int) -> list[int]:
    mask = (1 << width) - 1
    return [x >> i * width & mask for i in range(count)]


def _gather(lanes: list[int], width: int) -> int:
    mask = (1 << width) - 1
    result = 0
    for i, lane in enumerate(lanes):
        result |= (lane & mask) << i * width
    return result


def _split_term(x: Term, width: int, count: int) -> list[Term]:
    return [t.extract(i * width + width - 1, i * width, x) for i in range(count)]


def _gather_terms(lanes: list[Term]) -> Term:
    return t.concat(*reversed(lanes))


def _lanes(name: str) -> Pair | None:
    """Operations on lanes of a 64- or 128-bit vector."""
    if m := re.fullmatch(r"(Add|Sub|MulHi|Mul|CmpEQ|CmpGT|Min|Max|QSub|QAdd|Avg)(8|16|32|64)([US]?)x(\d+)", name):
        kind, width, count = m[1] + m[3], int(m[2]), int(m[4])
        one, one_term = _LANE_CONCRETE.get(kind), _LANE_SYMBOLIC.get(kind)
        if one is None or one_term is None:
            return None

        def each(a: int, b: int) -> int:
            pairs = zip(_split(a, width, count), _split(b, width, count), strict=True)
            return _gather([one(x, y, width) for x, y in pairs], width)

        def each_term(a: Term, b: Term) -> Term:
            pairs = zip(_split_term(a, width, count), _split_term(b, width, count), strict=True)
            return _gather_terms([one_term(x, y) for x, y in pairs])

        return each, each_term
    if m := re.fullmatch(r"(Shl|Shr|Sar)N(8|16|32|64)x(\d+)", name):
        return _shift_lanes(m[1], int(m[2]), int(m[3]))
    if m := re.fullmatch(r"Interleave(LO|HI)(8|16|32|64)x(\d+)", name):
        return _interleave(m[1] == "HI", int(m[2]), int(m[3]))
    if m := re.fullmatch(r"NarrowBin(16|32)to(?:8|16)x(\d+)", name):
        return _narrow(int(m[1]), int(m[2]))
    if m := re.fullmatch(r"QNarrowBin(16|32)Sto(?:8|16)([US])x(\d+)", name):
        return _narrow_saturating(int(m[1]), int(m[3]), m[2] == "S")
    if m := re.fullmatch(r"Perm(8x8|8x16|32x8)", name):
        width, count = map(int, m[1].split("x"))
        return _permute(width, count)
    if m := re.fullmatch(r"GetMSBs8x(8|16)", name):
        count = int(m[1])
        return (
            lambda a: _gather([x >> 7 for x in _split(a, 8, count)], 1),
            lambda a: _gather_terms([t.extract(7, 7, x) for x in _split_term(a, 8, count)]),
        )
    if m := re.fullmatch(r"(Shl|Shr)V128", name):
        left = m[1] == "Shl"
        return (
            lambda a, n: (a << n) & ((1 << 128) - 1) if left else a >> n,
            lambda a, n: (t.shl if left else t.lshr)(a, t.zero_extend(120, n)),
        )
    return None


def _shift_lanes(kind: str, width: int, count: int) -> Pair:
    def concrete(a: int, n: int) -> int:
        lanes = _split(a, width, count)
        if kind == "Sar":
            return _gather([signed(x, width) >> min(n, width - 1) for x in lanes], width)
        if n >= width:
            return 0
        return _gather([x << n if kind == "Shl" else x >> n for x in lanes], width)

    def symbolic(a: Term, n: Term) -> Term:
        function = {"Shl": t.shl, "Shr": t.lshr, "Sar": t.ashr}[kind]
        amount = t.zero_extend(width - n.width, n) if n.width < width else n
        return _gather_terms([function(x, amount) for x in _split_term(a, width, count)])

    return concrete, symbolic


def _interleave(high: bool, width: int, count: int) -> Pair:
    first = count // 2 if high else 0

    def order(a: list[Any], b: list[Any]) -> list[Any]:
        return [lane for i in range(first, first + count // 2) for lane in (b[i], a[i])]

    return (
        lambda a, b: _gather(order(_split(a, width, count), _split(b, width, count)), width),
        lambda a, b: _gather_terms(order(_split_term(a, width, count), _split_term(b, width, count))),
    )


def _narrow(width: int, count: int) -> Pair:
    half, lanes = width // 2, count // 2

    def concrete(a: int, b: int) -> int:
        return _gather(_split(b, width, lanes) + _split(a, width, lanes), half)

    def symbolic(a: Term, b: Term) -> Term:
        pieces = _split_term(b, width, lanes) + _split_term(a, width, lanes)
        return _gather_terms([t.extract(half - 1, 0, x) for x in pieces])

    return concrete, symbolic


def _narrow_saturating(width: int, count: int, is_signed: bool) -> Pair:
    half, lanes = width // 2, count // 2

    def concrete(a: int, b: int) -> int:
        wide = _split(b, width, lanes) + _split(a, width, lanes)
        return _gather([_saturate(signed(x, width), half, is_signed) for x in wide], half)

    def symbolic(a: Term, b: Term) -> Term:
        wide = _split_term(b, width, lanes) + _split_term(a, width, lanes)
        return _gather_terms([_saturate_term(x, half, is_signed) for x in wide])

    return concrete, symbolic


def _permute(width: int, count: int) -> Pair:
    """Each lane of the second operand says which lane of the first to take; VEX sees to it that it is in range."""

    def concrete(a: int, order: int) -> int:
        lanes = _split(a, width, count)
        return _gather([lanes[i & count - 1] for i in _split(order, width, count)], width)

    def symbolic(a: Term, order: Term) -> Term:
        lanes = _split_term(a, width, count)
        return _gather_terms([_select(lanes, index) for index in _split_term(order, width, count)])

    return concrete, symbolic


def _select(lanes: list[Term], index: Term) -> Term:
    """A binary choice on each bit of the index."""
    for bit in range(len(lanes).bit_length() - 1):
        is_odd = t.eq(t.extract(bit, bit, index), t.const(1, 1))
        lanes = [t.ite(is_odd, odd, even) for even, odd in zip(lanes[::2], lanes[1::2], strict=True)]
    return lanes[0]


# ---------------------------------------------------------------------------------------------- the table


@cache
def operation(op: str) -> Operation:
    """The meaning of a VEX operation such as `Iop_Add32`."""
    result_type, argument_types = pyvex.expr.op_arg_types(op)
    if any(a not in WIDTHS for a in (result_type, *argument_types)):
        raise Unsupported(f"the operation {op}")
    widths = tuple(WIDTHS[a] for a in argument_types)
    name = op.removeprefix("Iop_")
    scalar = _scalar(name)
    if scalar is not None:
        expression, symbolic = scalar
        places = [f"a{i}" for i in range(len(widths))]
        function = eval(f"lambda {', '.join(places)}: {expression.format(*places)}", EXPRESSION_NAMES)  # our own text
        return Operation(op, expression, function, symbolic, widths, WIDTHS[result_type])
    pair: Pair | None = _lanes(name) or floats.operation(name)
    if pair is None:
        from harness.machine import bridge

        pair = bridge.operation(op, widths)
    concrete, symbolic = pair
    holes = ", ".join(f"{{{i}}}" for i in range(len(widths)))
    return Operation(op, f"operation({op!r}).concrete({holes})", concrete, symbolic, widths, WIDTHS[result_type])


EXPRESSION_NAMES["operation"] = operation


def _build(op: Operation, key: Any, arguments: tuple[Value, ...]) -> Term:
    term = op.symbolic(*[term_of(a, w) for a, w in zip(arguments, op.argument_widths, strict=True)])
    if term.width == 0:
        term = t.ite(term, t.const(1, op.width), t.const(0, op.width))
    op.memo[key] = term
    return term


def apply(op: Operation, *arguments: Value) -> Value:
    """The operation on values of which at least one is symbolic."""
    key = tuple([a if isinstance(a, int) else a.term for a in arguments])
    term = op.memo.get(key) or _build(op, key, arguments)
    return make(term, op.concrete(*[a if isinstance(a, int) else a.value for a in arguments]))


def apply1(op: Operation, a: Sym) -> Value:
    """As `apply`, for one operand: these two are where runs with symbolic values spend their time."""
    key = a.term
    term = op.memo.get(key) or _build(op, key, (a,))
    return Sym(term, op.concrete(a.value)) if term.op != "const" else term.args[0]


def apply2(op: Operation, a: Any, b: Any) -> Value:
    """As `apply`, for two operands."""
    key: tuple[Any, Any]
    if a.__class__ is int:
        x, y, key = a, b.value, (a, b.term)
    elif b.__class__ is int:
        x, y, key = a.value, b, (a.term, b)
    else:
        x, y, key = a.value, b.value, (a.term, b.term)
    term = op.memo.get(key) or _build(op, key, (a, b))
    return Sym(term, op.concrete(x, y)) if term.op != "const" else term.args[0]


__all__ = ["WIDTHS", "Operation", "Unsupported", "apply", "apply1", "apply2", "division_overflows", "make", "operation"]
