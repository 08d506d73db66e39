"""Short branches on inputs become one value; all others stay branches."""

from __future__ import annotations

import pytest

from harness.machine.values import Sym, concrete
from soft.solve.evaluate import evaluate
from tests.harness.machine.lab import CODE
from tests.harness.machine.test_machine import DATA, Called, machine, register, run, symbol

# mov rbx, 0x10000; test edi, 1
_TEST = "48 c7 c3 00 00 01 00  f7 c7 01 00 00 00"
_MERGED = {
    "a store": _TEST + "75 05  c6 03 7f 90 90  0f 05",  # jne; mov byte [rbx], 0x7f; nop; nop
    "a store through a register": _TEST + "75 06  be ff 00 00 00 90  40 88 33 0f 05",  # mov esi, 255 | mov [rbx], sil
    "both sides": _TEST + "75 05  c6 03 01 eb 03  c6 03 02  0f 05",  # mov byte [rbx], 1; jmp +3 | mov byte [rbx], 2
    "a change in place": _TEST + "75 03  80 0b f0  0f 05",  # or byte [rbx], 0xf0
}
_DECIDED = {
    "a call of the kernel": _TEST + "75 02  0f 05  0f 05",
    "a store where nothing is": _TEST + "75 08  c6 04 25 08 00 00 00 00  0f 05",  # mov byte [8], 0
    "a choice of pointers": _TEST + "48 89 d8  75 04  48 83 c0 08  c6 00 01 0f 05",  # mov rax, rbx; add rax, 8; [rax]
    "an address that is an input": _TEST + "75 03  c6 07 01  0f 05",  # mov byte [rdi], 1
}


@pytest.mark.parametrize("code", _MERGED.values(), ids=_MERGED)
@pytest.mark.parametrize("value", [0, 1])
def test_a_short_branch_is_one_value(code: str, value: int) -> None:
    m = machine(code)
    recorder = symbol(m, "rdi", value)
    with pytest.raises(Called):
        run(m)
    assert recorder.conditions == []
    merged = m.memory.load1(DATA)
    assert isinstance(merged, Sym)
    for other in (0, 1):
        alone = machine(code)
        symbol(alone, "rdi", other)
        with pytest.raises(Called):
            run(alone)
        assert evaluate(merged.term, {"rdi": other}) == concrete(alone.memory.load1(DATA))
    assert merged.value == evaluate(merged.term, {"rdi": value})


@pytest.mark.parametrize("code", _DECIDED.values(), ids=_DECIDED)
def test_what_is_more_than_a_value_is_decided(code: str) -> None:
    m = machine(code)
    recorder = symbol(m, "rdi", DATA + 1)
    with pytest.raises(Called):
        run(m)
    assert len(recorder.conditions) >= 1


def test_what_no_side_changes_stays() -> None:
    m = machine(_MERGED["a store"])
    symbol(m, "rdi", 1)
    with pytest.raises(Called):
        run(m, at=CODE)
    assert register(m, "rbx") == DATA
    assert m.memory.load1(DATA + 1) == 0
