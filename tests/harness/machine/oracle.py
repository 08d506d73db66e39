"""angr's stock engine as an oracle: one block from the same start."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from harness.machine.compiler import REGISTER_SLOTS, REGISTERS
from harness.machine.memory import PAGE
from tests.harness.machine.lab import End, Start

_IP = REGISTERS["rip"]
_MASK64 = (1 << 64) - 1


@cache
def _project() -> Any:
    import angr

    logging.getLogger("angr").setLevel(logging.CRITICAL)
    return angr.load_shellcode(b"\xc3", "AMD64")


def successor(code: bytes, address: int, start: Start, end: End, symbols: dict[int, Any] | None = None) -> Any:
    """angr's successors of the block; memory is given where our own run looked, so that a look elsewhere shows.

    `symbols` maps register slots to claripy expressions that stand there in place of the numbers.
    """
    import angr

    zeros = {angr.options.ZERO_FILL_UNCONSTRAINED_MEMORY, angr.options.ZERO_FILL_UNCONSTRAINED_REGISTERS}
    state = _project().factory.blank_state(addr=address, add_options=zeros)
    for slot in range(REGISTER_SLOTS - 2):
        value = (symbols or {}).get(slot, start.registers[slot])
        if slot != _IP:
            state.registers.store(8 * slot, value, size=8, endness="Iend_LE")
    for page in end.pages:
        state.memory.store(page * PAGE, start.page(page))
    return _project().factory.successors(state, addr=address, insn_bytes=code[:400], num_inst=99, opt_level=1)


def end_of(successors: Any, ours: End) -> tuple[object, list[int], dict[int, int]]:
    """angr's end in the form of `End.concrete()`."""
    (state,) = successors.flat_successors or successors.unconstrained_successors
    registers = []
    for slot in range(REGISTER_SLOTS):
        value = state.registers.load(8 * slot, 8, endness="Iend_LE") if slot < REGISTER_SLOTS - 2 else None
        registers.append(state.solver.eval(value) if value is not None and slot != _IP else 0)
    memory = {}
    for address in ours.memory:
        memory[address] = state.solver.eval(state.memory.load(address, 1))
    kind = state.history.jumpkind
    plain = kind in ("Ijk_Boring", "Ijk_Call", "Ijk_Ret")
    return (state.addr if plain else (state.addr, kind)), registers, memory
