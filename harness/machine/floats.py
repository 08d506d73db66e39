"""Floating point on concrete values, as SSE does it. An agent's timers and rates use it; inputs hardly ever reach it.

A symbolic operand is refused by name: QF_BV has no floating point, and a wrong path is worse than a missing one. So is
a rounding mode other than to the nearest, which nobody was seen to set. The x87 unit is not here at all: VEX computes
it in 64 bits where the processor has 80.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

from harness.machine.ends import Unsupported
from soft.solve.terms import Term, signed

# VEX rounding modes, as the first argument of conversions and arithmetic: nearest, down, up, towards zero.
_ROUND: tuple[Callable[[float], int], ...] = (round, math.floor, math.ceil, math.trunc)
_NEAREST = 0


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def _single(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _single_bits(value: float) -> int:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return int(struct.unpack("<I", packed)[0])


# width → (to a float, from a float, the quiet bit of a NaN, the NaN of an invalid operation)
_FORMATS: dict[int, tuple[Callable[[int], float], Callable[[float], int], int, int]] = {
    32: (_single, _single_bits, 1 << 22, 0xFFC00000),
    64: (_double, _bits, 1 << 51, 0xFFF8000000000000),
}


def _nearest(mode: int) -> None:
    if mode != _NEAREST:
        raise Unsupported("a rounding mode other than to the nearest")


def _to_integer(mode: int, value: float, width: int) -> int:
    indefinite = 1 << (width - 1)
    if math.isnan(value) or math.isinf(value):
        return indefinite
    rounded = _ROUND[mode & 3](value)
    return rounded & ((1 << width) - 1) if -indefinite <= rounded < indefinite else indefinite


def _round(mode: int, bits: int, width: int) -> int:
    to_float, from_float, quiet, _ = _FORMATS[width]
    value = to_float(bits)
    if math.isnan(value):
        return bits | quiet
    if math.isinf(value):
        return bits
    return from_float(math.copysign(float(_ROUND[mode & 3](value)), value))


def _single_from_integer(value: int) -> int:
    """Rounded once: by way of a double it would be rounded twice."""
    excess = max(abs(value).bit_length() - 24, 0)
    kept, rest, half = abs(value) >> excess, abs(value) & (1 << excess) - 1, 1 << excess >> 1
    if excess and (rest > half or (rest == half and kept & 1)):
        kept += 1
    return _single_bits(math.copysign(float(kept << excess), value))


def _compare(a: float, b: float) -> int:
    """VEX's IRCmpFResult: unordered 0x45, less 0x01, greater 0x00, equal 0x40."""
    if math.isnan(a) or math.isnan(b):
        return 0x45
    return 0x01 if a < b else 0x00 if a > b else 0x40


def _divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "CmpEQ": lambda a, b: a == b,
    "CmpLT": lambda a, b: a < b,
    "CmpLE": lambda a, b: a <= b,
    "CmpUN": lambda a, b: math.isnan(a) or math.isnan(b),
}


def _lane(kind: str, width: int) -> Callable[[int, int], int]:
    """One operation on two lanes, given and returned as bits."""
    to_float, from_float, quiet, invalid = _FORMATS[width]
    if kind in _COMPARISONS:
        compare = _COMPARISONS[kind]
        return lambda a, b: (1 << width) - 1 if compare(to_float(a), to_float(b)) else 0
    # Where neither is greater (equal, zeros, a NaN) the processor takes the second operand.
    if kind == "Min":
        return lambda a, b: a if to_float(a) < to_float(b) else b
    if kind == "Max":
        return lambda a, b: a if to_float(a) > to_float(b) else b
    function = _ARITHMETIC[kind]

    def arithmetic(a: int, b: int) -> int:
        x, y = to_float(a), to_float(b)
        if math.isnan(x):
            return a | quiet
        if math.isnan(y):
            return b | quiet
        result = function(x, y)
        return invalid if math.isnan(result) else from_float(result)

    return arithmetic


def _root(bits: int, width: int) -> int:
    to_float, from_float, quiet, invalid = _FORMATS[width]
    value = to_float(bits)
    if math.isnan(value):
        return bits | quiet
    return invalid if value < 0 else from_float(math.sqrt(value))


def _vector(name: str) -> Callable[..., int] | None:
    """Operations on vectors: on the lowest lane only (`F0x2`), or on each (`Fx2`)."""
    m = re.fullmatch(r"(Add|Sub|Mul|Div|Min|Max|CmpEQ|CmpLT|CmpLE|CmpUN|Sqrt)(32|64)F(0?)x(\d)", name)
    if m is None:
        return None
    width, count = int(m[2]), 1 if m[3] else int(m[4])
    mask = (1 << width) - 1
    binary = _lane(m[1], width) if m[1] != "Sqrt" else None
    arity = 2 if binary else 1

    def each(*arguments: int) -> int:
        for mode in arguments[:-arity]:
            _nearest(mode)
        operands = arguments[-arity:]
        result = operands[0]
        for shift in range(0, width * count, width):
            lanes = [x >> shift & mask for x in operands]
            value = binary(*lanes) if binary else _root(lanes[0], width)
            result = result & ~(mask << shift) | value << shift
        return result

    return each


def _concrete(name: str) -> Callable[..., int] | None:
    if m := re.fullmatch(r"(Add|Sub|Mul|Div)F(32|64)", name):
        lane = _lane(m[1], int(m[2]))

        def arithmetic(mode: int, a: int, b: int) -> int:
            _nearest(mode)
            return lane(a, b)

        return arithmetic
    if m := re.fullmatch(r"I(32|64)StoF(32|64)", name):
        return _from_integer(int(m[1]), int(m[2]))
    table: dict[str, Callable[..., int]] = {
        "I32UtoF64": lambda a: _bits(float(a)),
        "F64toI32S": lambda mode, a: _to_integer(mode, _double(a), 32),
        "F64toI64S": lambda mode, a: _to_integer(mode, _double(a), 64),
        "F64toF32": _narrow,
        "F32toF64": lambda a: _bits(_single(a)),
        "CmpF64": lambda a, b: _compare(_double(a), _double(b)),
        "CmpF32": lambda a, b: _compare(_single(a), _single(b)),
        "RoundF64toInt": lambda mode, a: _round(mode, a, 64),
        "RoundF32toInt": lambda mode, a: _round(mode, a, 32),
        "NegF64": lambda a: a ^ 1 << 63,
        "AbsF64": lambda a: a & (1 << 63) - 1,
    }
    return table.get(name) or _vector(name)


def _from_integer(width: int, target: int) -> Callable[..., int]:
    def convert(*arguments: int) -> int:
        for mode in arguments[:-1]:
            _nearest(mode)
        value = signed(arguments[-1], width)
        return _bits(float(value)) if target == 64 else _single_from_integer(value)

    return convert


def _narrow(mode: int, a: int) -> int:
    _nearest(mode)
    return _single_bits(_double(a))


def operation(name: str) -> tuple[Callable[..., int], Callable[..., Term]] | None:
    """The concrete meaning of a floating-point operation, with a symbolic side that refuses."""
    concrete = _concrete(name)
    if concrete is None:
        return None

    def refuse(*_: Any) -> Term:
        raise Unsupported(f"floating point on input values ({name})")

    return concrete, refuse
