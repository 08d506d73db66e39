"""How long formatted text can be, against the lengths that it has."""

from __future__ import annotations

import pytest

from harness.formatting import Mute
from harness.lengths import total, varying
from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value
from harness.texts import MOST_LENGTH, Length, Texts
from soft.solve import terms as t

TEXT, STACK, LIST = 0x10000, 0x11000, 0x12000
X = t.var("x", 16)


def number(value: int, width: int = 64) -> Sym:
    return Sym(t.zero_extend(width - 16, X), value)


def machine() -> Machine:
    made = Machine(lambda page: (bytes(4096), "rw-") if 16 <= page <= 18 else None)
    made.decisions = Mute(made)
    made.registers[REGISTERS["rsp"]] = STACK
    return made


def lengths(text: str, *arguments: Value) -> list[Length] | None:
    """As printf would be called, and as vprintf would: both must say the same."""
    direct, listed = machine(), machine()
    for m in (direct, listed):
        m.memory.write(TEXT, text.encode() + b"\0")
        m.registers[REGISTERS["rdi"]] = TEXT
    for register, argument in zip(("rsi", "rdx", "rcx", "r8", "r9"), arguments, strict=False):
        direct.registers[REGISTERS[register]] = argument
    for place, argument in enumerate(arguments[5:]):
        direct.memory.store8(STACK + 8 + 8 * place, argument)
    listed.registers[REGISTERS["rsi"]] = LIST
    listed.memory.store4(LIST, 32)  # two of them in registers
    listed.memory.store8(LIST + 8, STACK)
    listed.memory.store8(LIST + 16, LIST + 100)
    for place, argument in enumerate(arguments):
        listed.memory.store8(LIST + 132 + 8 * place if place < 2 else STACK + 8 * (place - 2), argument)
    found = varying(direct, Texts(direct.memory), 0, is_list=False)
    assert found == varying(listed, Texts(listed.memory), 0, is_list=True)
    return found


@pytest.mark.parametrize("value", [0, 9, 10, 4711, 65535])
@pytest.mark.parametrize("directive", ["%d", "%u", "%x", "%04x", "%3o", "%+d", "%-7d|", "%.4u", "%hu", "%lld", "%08X"])
def test_an_integer_is_within_its_bounds(directive: str, value: int) -> None:
    found = lengths(f"a {directive}", number(value))
    assert found is not None
    (length,) = found
    python = directive.replace("%hu", "%u").replace("%lld", "%d").rstrip("|")
    assert length.here == len(python % value)
    assert length.least == min(len(python % each) for each in range(65536))
    assert length.most == max(len(python % each) for each in range(65536))


def test_zero_has_no_prefix() -> None:
    assert lengths("%#x", number(77)) == [Length(4, 1, 6)]


def test_a_negative_number_may_be_longer() -> None:
    negative = Sym(t.sign_extend(16, X), 0xFFFFFFFF)
    assert lengths("%d", Sym(t.zero_extend(32, negative.term), 0xFFFFFFFF)) == [Length(2, 1, 11)]


def test_only_what_depends_on_the_input_varies() -> None:
    assert lengths("%s %d %c%% %5.1f %*d %hhu", 0, 7, 65, 4, 5, number(300)) == [Length(2, 1, 3)]
    assert lengths("%d %d %d %d %d %d %u", 1, 2, 3, 4, 5, 6, number(77)) == [Length(2, 1, 5)]
    assert lengths("nothing %d", 3) == []


@pytest.mark.parametrize("text", ["%s", "%p", "%*d", "%'d", "%n", "%ls", "%lc"])
def test_what_is_unclear_is_said(text: str) -> None:
    assert lengths(text, number(3)) is None


def test_the_whole_is_the_sum_of_what_is_fixed_and_what_varies() -> None:
    assert total([Length(2, 1, 5), Length(3, 3, 4)], 12) == Length(12, 11, 16)
    assert total([], 12) == Length(12, 12, 12)
    assert total(None, 12) == Length(12, 0, MOST_LENGTH)
