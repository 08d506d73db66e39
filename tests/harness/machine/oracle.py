"""angr's stock engine as an oracle: one block from the same start."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from harness.machine.bridge import to_claripy
from harness.machine.compiler import REGISTER_SLOTS, REGISTERS
from harness.machine.memory import PAGE
from harness.machine.values import term_of
from soft.solve.terms import Term
from tests.harness.machine.lab import End, Start

_IP = REGISTERS["rip"]


@cache
def _project() -> Any:
    import angr

    logging.getLogger("angr").setLevel(logging.CRITICAL)
    return angr.load_shellcode(b"\xc3", "AMD64")


def successors(
    code: bytes, address: int, start: Start, end: End, symbols: dict[int, Any] | None = None, given: Any = ()
) -> Any:
    """angr's successors of the block; memory is given where our own run looked, so that a look elsewhere shows.

    `symbols` maps register slots to claripy expressions that stand there in place of the numbers; `given` is what is
    known of these.
    """
    import angr

    zeros = {angr.options.ZERO_FILL_UNCONSTRAINED_MEMORY, angr.options.ZERO_FILL_UNCONSTRAINED_REGISTERS}
    state = _project().factory.blank_state(addr=address, add_options=zeros)
    for slot in range(REGISTER_SLOTS - 2):
        value = (symbols or {}).get(slot, start.registers[slot])
        if slot != _IP:
            state.registers.store(8 * slot, value, size=8, endness="Iend_LE")
    state.add_constraints(*given)
    for page in end.pages:
        state.memory.store(page * PAGE, start.page(page))
    return _project().factory.successors(state, addr=address, insn_bytes=code[:400], num_inst=99, opt_level=1)


def end_of(code: bytes, address: int, start: Start, ours: End) -> tuple[object, list[int], dict[int, int]]:
    """angr's end in the form of `End.concrete()`."""
    found = successors(code, address, start, ours)
    (state,) = found.flat_successors or found.unconstrained_successors
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


def differing_registers(
    code: bytes, address: int, start: Start, ours: tuple[End, dict[str, int], list[Term]]
) -> list[int] | None:
    """The registers whose terms differ from angr's for some input that takes our path; None if angr cannot tell."""
    import angr
    import claripy

    end, values, conditions = ours
    names = {slot: f"r{slot}" for slot in range(REGISTER_SLOTS) if f"r{slot}" in values}
    symbols = {slot: claripy.BVS(name, 64, explicit_name=True) for slot, name in names.items()}
    given = [to_claripy(condition) for condition in conditions]
    here = [symbols[slot] == values[name] for slot, name in names.items()]
    try:
        found = successors(code, address, start, end, symbols, given)
        # angr gives up here too where its solver does: on a busy machine a query may run out of time.
        states = [s for s in found.flat_successors if s.solver.satisfiable(extra_constraints=here)]
    except angr.errors.SimError:
        return None
    if len(states) != 1 or states[0].addr != end.next:
        return None if not states else [-1]
    (state,) = states
    solver = claripy.Solver(timeout=2000)
    solver.add(given)
    differing = []
    for slot in range(REGISTER_SLOTS - 2):
        mine = end.registers[slot]
        theirs = state.registers.load(8 * slot, 8, endness="Iend_LE")
        if slot == _IP or (isinstance(mine, int) and not theirs.symbolic and theirs.concrete_value == mine):
            continue
        try:
            if solver.satisfiable(extra_constraints=[to_claripy(term_of(mine, 64)) != theirs]):
                differing.append(slot)
        except claripy.errors.ClaripySolverInterruptError:
            return None
    return differing
