"""Each VEX operation that occurs in Open vSwitch, libc, libssl and libcrypto.

Its integers against angr's tables, or the processor itself; its terms against its integers.
"""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.machine import bridge
from harness.machine.ends import Trap, Unsupported
from harness.machine.operations import apply, apply1, apply2, division_overflows, operation
from harness.machine.values import Sym
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from tests.harness.machine.lab import EDGES

# From a linear sweep over the text of the four, 364,000 blocks.
OPERATIONS = (Path(__file__).parent / "operations.txt").read_text().split()
IS_FLOAT = re.compile(r"F\d|F0?x")
# x87 transcendental functions, and an estimate that every processor makes differently.
WITHOUT_MODEL = {"ScaleF64", "PRemF64", "PRemC3210F64", "SinF64", "AtanF64", "Yl2xp1F64", "RSqrtEst32Fx4"}
WITH_MODEL = [op for op in OPERATIONS if op.removeprefix("Iop_") not in WITHOUT_MODEL]
# Averages are missing in angr's tables.
NOT_IN_ANGR = ("Reinterp", "Avg")
INTEGER = [op for op in WITH_MODEL if not IS_FLOAT.search(op) or "Reinterp" in op]


def operands(op: str, chance: random.Random) -> list[int]:
    result = []
    for width in operation(op).argument_widths:
        lanes = [chance.choice([chance.choice(EDGES), chance.getrandbits(64)]) for _ in range(4)]
        result.append(sum(lane << 64 * i for i, lane in enumerate(lanes)) & (1 << width) - 1)
    if chance.random() < 0.3 and len(result) == 2:
        result[1] = result[0] & (1 << operation(op).argument_widths[1]) - 1
    if re.search(r"_(Shl|Shr|Sar)", op):
        # VEX leaves shifts by the width or more undefined and its translator never emits them.
        result[1] %= int(re.findall(r"(\d+)", op)[0])
    if "Perm8" in op:
        result[1] &= 0x0F0F0F0F0F0F0F0F0F0F0F0F0F0F0F0F if "x16" in op else 0x0707070707070707
    if "Perm32" in op:
        result[1] &= 0x0000000700000007_0000000700000007_0000000700000007_0000000700000007
    if re.search(r"C[lt]z\d", op) and not result[0]:
        result[0] = 1
    return result


@pytest.mark.parametrize("op", [op for op in INTEGER if not any(name in op for name in NOT_IN_ANGR)])
def test_integers_agree_with_angr(op: str) -> None:
    chance = random.Random(op)
    meaning = operation(op)
    theirs, _ = bridge.operation(op, meaning.argument_widths)
    for _ in range(12):
        arguments = operands(op, chance)
        try:
            ours = meaning.concrete(*arguments)
        except Trap:
            continue  # angr's divisions do not trap
        assert 0 <= ours < 1 << meaning.width
        assert ours == theirs(*arguments), [hex(a) for a in arguments]


@pytest.mark.parametrize("op", INTEGER)
def test_terms_agree_with_integers(op: str) -> None:
    chance = random.Random(op + "terms")
    meaning = operation(op)
    for _ in range(25):
        arguments = operands(op, chance)
        values = {f"x{i}": a for i, a in enumerate(arguments)}
        mixed = [
            Sym(t.var(f"x{i}", w), a) if i == 0 or chance.random() < 0.6 else a
            for i, (a, w) in enumerate(zip(arguments, meaning.argument_widths, strict=True))
        ]
        try:
            expected = meaning.concrete(*arguments)
        except Trap:
            continue
        result = {1: apply1, 2: apply2}.get(len(mixed), apply)(meaning, *mixed)  # type: ignore[operator]
        if isinstance(result, Sym):
            assert result.value == expected
            assert result.term.width == meaning.width
            assert evaluate(result.term, values) == expected, [hex(a) for a in arguments]
        else:
            assert result == expected


@pytest.mark.parametrize("name", sorted(WITHOUT_MODEL))
def test_what_has_no_model_is_refused_by_name(name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        operation(f"Iop_{name}").concrete(0, 0)


# ---------------------------------------------------------------------------------------------- division


@pytest.mark.parametrize("op", ["Iop_DivModU64to32", "Iop_DivModS64to32", "Iop_DivModU128to64", "Iop_DivModS128to64"])
def test_a_quotient_that_does_not_fit_traps(op: str) -> None:
    chance = random.Random(op)
    meaning = operation(op)
    wide, half = meaning.argument_widths
    is_signed = "S" in op
    trapped = 0
    for _ in range(300):
        dividend, divisor = operands(op, chance)
        if chance.random() < 0.5:
            low = dividend & (1 << half) - 1
            dividend = (t.signed(low, half) if is_signed else low) & (1 << wide) - 1
        if divisor == 0:
            continue
        condition = division_overflows(t.var("x", wide), t.var("y", half), is_signed)
        try:
            meaning.concrete(dividend, divisor)
            traps = 0
        except Trap:
            traps = 1
        trapped += traps
        assert evaluate(condition, {"x": dividend, "y": divisor}) == traps
    assert 20 < trapped < 280


@pytest.mark.parametrize("is_signed", [False, True])
def test_extended_dividends_divide_in_their_own_width(is_signed: bool) -> None:
    x, y = t.var("x", 32), t.var("y", 32)
    dividend = t.concat(t.ashr(x, t.const(31, 32)), x) if is_signed else t.zero_extend(32, x)
    divided = operation("Iop_DivModS64to32" if is_signed else "Iop_DivModU64to32").symbolic(dividend, y)
    assert t.extract(31, 0, divided) is (t.sdiv if is_signed else t.udiv)(x, y)
    overflow = division_overflows(dividend, y, is_signed)
    assert evaluate(overflow, {"x": 1 << 31, "y": (1 << 32) - 1}) == is_signed
    assert evaluate(overflow, {"x": 1 << 31, "y": 1}) == 0


# ---------------------------------------------------------------------------------------------- floating point

SINGLES = [0x00000000, 0x80000000, 0x3F800000, 0xC0490FDB, 0x7F800000, 0xFF800000, 0x7FC00001, 0x00000001, 0x7F7FFFFF]
DOUBLES = [0, 1 << 63, 0x3FF0000000000000, 0xC00921FB54442D18, 0x7FF0000000000000, 0xFFF0000000000000]
DOUBLES += [0x7FF8000000000001, 1, 0x7FEFFFFFFFFFFFFF, 0x41E0000000000000, 0x3FDFFFFFFFFFFFFF, 0x4005BF0A8B145769]
FUNCTIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARISONS = {"CmpEQ": np.equal, "CmpLT": np.less, "CmpLE": np.less_equal}


def as_float(bits: int, width: int) -> np.floating[Any]:
    return np.array([bits], dtype=f"<u{width // 8}").view(f"<f{width // 8}")[0]  # type: ignore[no-any-return]


def as_bits(value: object, width: int) -> int:
    return int(np.array([value], dtype=f"<f{width // 8}").view(f"<u{width // 8}")[0])


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("kind", [*FUNCTIONS, *COMPARISONS])
def test_lanes_compute_as_the_processor_does(kind: str, width: int) -> None:
    """NumPy computes with the processor's own SSE instructions."""
    lowest = operation(f"Iop_{kind}{width}F0x{128 // width}")
    edges = SINGLES if width == 32 else DOUBLES
    high = 0x1234 << width
    with np.errstate(all="ignore"):
        for a in edges:
            for b in edges:
                x, y = as_float(a, width), as_float(b, width)
                if kind in COMPARISONS:
                    expected = (1 << width) - 1 if COMPARISONS[kind](x, y) else 0
                else:
                    expected = as_bits(FUNCTIONS[kind](x, y), width)
                assert lowest.concrete(high | a, b) == high | expected, (hex(a), hex(b))


def test_minimum_and_maximum_take_the_second_where_neither_is_greater() -> None:
    lowest, nan = operation("Iop_Min64F0x2"), DOUBLES[6]
    assert lowest.concrete(0, 1 << 63) == 1 << 63
    assert lowest.concrete(nan, 5) == 5
    assert lowest.concrete(5, nan) == nan


@pytest.mark.parametrize("value", [0, 1, -1, 2**24 + 1, 2**53 + 1, -(2**62) - 2**38 - 1, 2**63 - 1, 0x4000004000000001])
def test_integers_are_rounded_once(value: int) -> None:
    bits = value & (1 << 64) - 1
    assert operation("Iop_I64StoF64").concrete(0, bits) == as_bits(np.int64(value).astype(np.float64), 64)
    assert operation("Iop_I64StoF32").concrete(0, bits) == as_bits(np.int64(value).astype(np.float32), 32)


@pytest.mark.parametrize(
    ("number", "mode", "expected"),
    [
        (2.5, 0, 2),
        (3.5, 0, 4),
        (-2.5, 1, -3),
        (-2.5, 2, -2),
        (-2.7, 3, -2),
        (1e300, 0, -(2**63)),
        (math.nan, 3, -(2**63)),
    ],
)
def test_conversion_to_integers(number: float, mode: int, expected: int) -> None:
    assert operation("Iop_F64toI64S").concrete(mode, as_bits(number, 64)) == expected & (1 << 64) - 1


def test_narrowing_overflows_to_infinity() -> None:
    assert operation("Iop_F64toF32").concrete(0, as_bits(-1e300, 64)) == 0xFF800000


def test_floating_point_on_inputs_is_refused() -> None:
    with pytest.raises(Unsupported, match="floating point on input values"):
        apply(operation("Iop_Add64F0x2"), Sym(t.var("x", 128), 0), 0)
    with pytest.raises(Unsupported, match="rounding mode"):
        operation("Iop_AddF64").concrete(3, 0, 0)
