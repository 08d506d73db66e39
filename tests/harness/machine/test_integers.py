"""The shorter texts that integer blocks are written in."""

from __future__ import annotations

import random

import pytest

from harness.machine.compiler import REGISTERS, lift
from harness.machine.ends import Trap
from harness.machine.integers import Integers, Text, simplify
from harness.machine.operations import EXPRESSION_NAMES, operation
from tests.harness.machine.test_operations import INTEGER, operands


@pytest.mark.parametrize("op", INTEGER)
def test_simplified_operations_compute_the_same(op: str) -> None:
    """Operands as names, as numbers, and as expressions that are only right modulo 2**64."""
    chance = random.Random(op + "texts")
    meaning = operation(op)
    for _ in range(40):
        arguments = operands(op, chance)
        names: dict[str, int] = {}
        texts = []
        for i, (argument, width) in enumerate(zip(arguments, meaning.argument_widths, strict=True)):
            names[f"a{i}"] = argument
            text = Text(f"a{i}", width)
            form = chance.randrange(4)
            if form == 1 and i:
                text = Text(hex(argument), argument.bit_length(), number=argument)
            elif form == 2 and width == 64:
                text = Text(f"a{i}", 64, wrapped=f"(a{i} - {1 << 64})")
            elif form == 3 and argument in (0, 1):
                text = Text(f"a{i}", 1, truth=f"a{i} == 1")
            texts.append(text)
        try:
            expected = meaning.concrete(*arguments)
        except Trap:
            continue
        result = simplify(meaning, texts)
        scope = {**EXPRESSION_NAMES, **names}
        assert eval(result.text, scope) == expected, result.text
        assert expected.bit_length() <= result.bits
        assert eval(result.wrapped, scope) % (1 << max(64, meaning.width)) == expected
        if result.truth is not None:
            assert bool(eval(result.truth, scope)) == bool(expected)


def lines(code: str) -> list[str]:
    return Integers(lift(bytes.fromhex(code), 0x1000), 0x1000).write()


def test_a_comparison_and_its_branch_are_one_condition() -> None:
    rsi, rdi = REGISTERS["rsi"], REGISTERS["rdi"]
    assert f"if r{rdi} <= r{rsi}: return 0x1005" in lines("48 39 f7 77 10")  # cmp rdi, rsi; ja


def test_an_address_below_the_frame_pointer_is_a_difference() -> None:
    assert f"v1 = load4((r{REGISTERS['rbp']} - 0x8))" in lines("8b 45 f8 c3")  # mov eax, [rbp-8]


def test_a_loaded_value_may_send_the_rest_of_the_block_elsewhere() -> None:
    text = lines("8b 45 f8 ff c0 c3")  # mov eax, [rbp-8]; inc eax
    assert any(line.startswith("if v1.__class__ is not int: return rest(0x1000, ") for line in text), text
