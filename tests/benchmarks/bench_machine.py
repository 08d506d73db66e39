"""Blocks a second: the compiled machine against angr's stock engine, on the same code.

    python -m tests.benchmarks.bench_machine

prints one JSON object a line for each: the workload (hashing, sorting, look-ups, checksums and text in C, built by the
system's compiler), blocks, seconds, blocks a second; and what it costs to compile blocks of real binaries.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from harness.machine.compiler import REGISTER_SLOTS, REGISTERS, lift
from harness.machine.machine import Machine
from harness.machine.memory import PAGE, PageSource
from harness.machine.values import Value

SOURCE = Path(__file__).with_name("machine_workload.c")
BASE, DATA, STACK, BACK = 0x400000, 0x10000000, 0x20000000, 0x30000000
# As a call leaves it: 8 more than a multiple of 16.
STACK_TOP = STACK + 16 * PAGE - 72


class Done(Exception):
    """The function returned."""


class Workload:
    """A shared object in memory, and the address of its function `work`."""

    def __init__(self, level: str) -> None:
        with tempfile.TemporaryDirectory() as place:
            built = Path(place) / "workload.so"
            command = ["cc", level, "-fPIC", "-shared", "-nostdlib", "-fno-builtin", "-o", str(built), str(SOURCE)]
            subprocess.run(command, check=True)
            self.image = built.read_bytes()
            with built.open("rb") as file:
                elf = ELFFile(file)
                self.segments = [
                    (s["p_vaddr"], s.data(), s["p_flags"]) for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"
                ]
                (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("work")
                self.entry = BASE + symbol["st_value"]

    def source(self) -> PageSource:
        pages: dict[int, tuple[bytes, str]] = {}
        for address, data, bits in self.segments:
            for page in range(address // PAGE, (address + len(data) - 1) // PAGE + 1):
                whole = bytearray(PAGE)
                low = max(address, page * PAGE)
                part = data[low - address : (page + 1) * PAGE - address]
                whole[low - page * PAGE : low - page * PAGE + len(part)] = part
                pages[BASE // PAGE + page] = (bytes(whole), "r-x" if bits & 1 else "rw-")
        for start in (DATA, STACK):
            pages.update({start // PAGE + i: (bytes(PAGE), "rw-") for i in range(16)})
        return pages.get

    def run(self, machine: Machine, rounds: int) -> Value:
        """work(DATA, rounds) from a fresh start."""
        registers: list[Value] = [0] * REGISTER_SLOTS
        registers[REGISTERS["rsp"]], registers[REGISTERS["rdi"]] = STACK_TOP, DATA
        registers[REGISTERS["rsi"]], registers[REGISTERS["d"]] = rounds, 1
        machine.reset(registers)
        machine.memory.store8(STACK_TOP, BACK)

        def done() -> Value:
            raise Done

        machine.hook(BACK, done)
        with contextlib.suppress(Done):
            machine.run(self.entry, _no_system_calls, 10**9)
        return machine.registers[REGISTERS["rax"]]


def _no_system_calls(address: int, kind: str) -> int:
    raise AssertionError(f"{kind} at {address:#x}")


def ours(level: str, rounds: int) -> dict[str, Any]:
    workload = Workload(level)
    machine = Machine(workload.source())
    workload.run(machine, 2)  # compiles
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        workload.run(machine, rounds)
        best = max(best, machine.executed / (time.process_time() - start))
    return {"engine": "soft", "workload": level, "blocks": machine.executed, "blocks_per_second": round(best)}


def stock(level: str, blocks: int) -> dict[str, Any]:
    import logging

    import angr

    logging.getLogger("angr").setLevel(logging.CRITICAL)
    workload = Workload(level)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "workload.so"
        file.write_bytes(workload.image)
        project = angr.Project(str(file), auto_load_libs=False, main_opts={"base_addr": BASE})
        zeros = {angr.options.ZERO_FILL_UNCONSTRAINED_MEMORY, angr.options.ZERO_FILL_UNCONSTRAINED_REGISTERS}
        state = project.factory.call_state(workload.entry, DATA, 1000, ret_addr=BACK, add_options=zeros)
        start = time.process_time()
        for _ in range(blocks):
            (state,) = project.factory.successors(state).flat_successors
        seconds = time.process_time() - start
    return {"engine": "angr", "workload": level, "blocks": blocks, "blocks_per_second": round(blocks / seconds)}


def compiling(count: int) -> dict[str, Any]:
    """What a block costs when it is first met, and how much of that is lifting."""
    from tests.harness.machine import lab

    sample = list(lab.blocks(1, count))
    machines = [Machine(lab.Start(0).source(code, address)) for _, address, code in sample]
    start = time.process_time()
    for _, address, code in sample:
        lift(code, address)
    lifting = time.process_time() - start
    start = time.process_time()
    for machine, (_, address, _code) in zip(machines, sample, strict=True):
        machine.prepare(address)
    seconds = time.process_time() - start
    each = 1e6 / count
    return {"blocks": count, "microseconds_to_compile": round(seconds * each), "of_that_lifting": round(lifting * each)}


def main() -> None:
    quick = "--quick" in sys.argv
    for level in ("-O0", "-O2"):
        print(json.dumps(ours(level, 20 if quick else 100)), flush=True)
    print(json.dumps(compiling(100 if quick else 500)), flush=True)
    if not quick:
        print(json.dumps(stock("-O2", 300)), flush=True)


if __name__ == "__main__":
    main()
