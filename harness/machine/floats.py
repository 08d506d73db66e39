"""Floating point on concrete values. An agent's timers and rates use it; inputs hardly ever reach it.

A symbolic operand is refused by name: QF_BV has no floating point, and a wrong path is worse than a missing one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from soft.solve.terms import Term, signed

# VEX rounding modes, as the first argument of conversions and arithmetic: nearest, down, up, towards zero.
_NEAREST, _DOWN, _UP, _ZERO = range(4)


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def _single(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _single_bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _to_integer(mode: int, value: float, width: int) -> int:
    indefinite = 1 << (width - 1)
    if math.isnan(value) or math.isinf(value):
        return indefinite
    rounded = {_NEAREST: round, _DOWN: math.floor, _UP: math.ceil, _ZERO: math.trunc}[mode & 3](value)
    return rounded & ((1 << width) - 1) if -indefinite <= rounded < indefinite else indefinite


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

_LOW64 = (1 << 64) - 1


def _concrete(name: str) -> Callable[..., int] | None:
    kind = name[:3]
    if name.endswith("F64") and kind in _ARITHMETIC:
        f = _ARITHMETIC[kind]
        return lambda mode, a, b: _bits(f(_double(a), _double(b)))
    if name.endswith("64F0x2") and kind in _ARITHMETIC:
        f = _ARITHMETIC[kind]
        return lambda a, b: a & ~_LOW64 | _bits(f(_double(a & _LOW64), _double(b & _LOW64)))
    table: dict[str, Callable[..., int]] = {
        "I32StoF64": lambda a: _bits(float(signed(a, 32))),
        "I32UtoF64": lambda a: _bits(float(a)),
        "I64StoF64": lambda mode, a: _bits(float(signed(a, 64))),
        "F64toI32S": lambda mode, a: _to_integer(mode, _double(a), 32),
        "F64toI64S": lambda mode, a: _to_integer(mode, _double(a), 64),
        "F64toF32": lambda mode, a: _single_bits(_double(a)),
        "F32toF64": lambda a: _bits(_single(a)),
        "CmpF64": lambda a, b: _compare(_double(a), _double(b)),
        "SqrtF64": lambda mode, a: _bits(math.sqrt(_double(a))),
        "NegF64": lambda a: a ^ 1 << 63,
        "AbsF64": lambda a: a & (1 << 63) - 1,
    }
    return table.get(name)


def operation(name: str) -> tuple[Callable[..., int], Callable[..., Term]] | None:
    """The concrete meaning of a floating-point operation, with a symbolic side that refuses."""
    concrete = _concrete(name)
    if concrete is None:
        return None

    def refuse(*_: Any) -> Term:
        from harness.machine.operations import Unsupported

        raise Unsupported(f"floating point on input values ({name})")

    return concrete, refuse
