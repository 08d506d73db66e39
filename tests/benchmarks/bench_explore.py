"""What exploring costs: blocks a second against angr's stock engine, and how time and memory grow with paths.

    python -m tests.benchmarks.bench_explore [--quick]

prints one JSON object a line. `engine`: both engines from the same snapshot of the reference switch, in one run; angr
steps with its own engine, memory and default options from moments of a real run, as far as the next system call.
`growth`: explorations of `flow_mod` that stop after 10^2, 10^3 and 10^4 paths, each in a process of its own.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.exploration import Exploration
from harness.explorer import Limits
from harness.frozen import Snapshot
from harness.machine.compiler import REGISTER_SLOTS, REGISTERS, Block
from harness.machine.machine import Machine
from harness.machine.memory import PAGE
from harness.machine.values import concrete
from harness.path import Job
from harness.run import Runner
from harness.snapshot import freeze
from soft.launch.find import find
from soft.scenarios.loader import load
from tests.agents.conftest import make
from tests.agents.lab import BUILD

AGENT, SCENARIO = "reference", "flow_mod"


def frozen(scenario: str) -> Snapshot:
    return freeze(find(str(BUILD / AGENT)), ports=load(scenario).ports, handshake=True, version=1)


# ------------------------------------------------------------------------------------------------ engines


class Moment:
    """Where a run was before a block: enough to go on from there in another engine."""

    def __init__(self, address: int, machine: Machine) -> None:
        self.address = address
        self.registers = [concrete(value) for value in machine.registers]
        self.written = {page: bytes(content) for page, content in machine.memory.written.items()}


class Recorder(Machine):
    """A machine that remembers every so many blocks where it is."""

    def __init__(self, source: Any, every: int) -> None:
        super().__init__(source)
        self.moments: list[Moment] = []
        self._every, self._count = every, 0

    def _compile(self, address: int) -> Block:
        block = super()._compile(address)

        def recorded() -> Any:
            self._count += 1
            if self._count % self._every == 0:
                self.moments.append(Moment(address, self))
            return block()

        self.blocks[address] = recorded
        return recorded


class Counter(Machine):
    """A machine that counts over all runs."""

    total = 0

    def run(self, address: Any, special: Any, most_blocks: int) -> None:
        before = self.executed
        try:
            super().run(address, special, most_blocks)
        finally:
            self.total += self.executed - before


class Counting(Runner):
    def make_machine(self, snapshot: Snapshot) -> Machine:
        return Counter(snapshot.page)


class Recording(Runner):
    def make_machine(self, snapshot: Snapshot) -> Machine:
        return Recorder(snapshot.page, every=37)


def compiled(snapshot: Snapshot, name: str, seconds: float) -> dict[str, Any]:
    """Whole runs of one input, everything included: kernel, symbolic values, conditions, other inputs to try."""
    scenario = load(name)
    runner = Counting(snapshot, scenario)
    machine = runner.machine
    assert isinstance(machine, Counter)
    runner.run(Job(scenario.defaults))  # compiles
    machine.total, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        runner.run(Job(scenario.defaults))
    rate = machine.total / (time.process_time() - begin)
    return {"engine": "soft", "runs": name, "blocks_per_second": round(rate)}


def stock(snapshot: Snapshot, most: int) -> dict[str, Any]:
    """angr's own engine over the code of the same concrete run."""
    logging.getLogger("angr").setLevel(logging.CRITICAL)
    import angr

    scenario = load("concrete")
    runner = Recording(snapshot, scenario)
    recorder = runner.machine
    assert isinstance(recorder, Recorder)
    runner.run(Job(scenario.defaults))
    pages = set(recorder.memory._readable)  # everything that the run has looked at
    project = angr.load_shellcode(b"\xc3", "AMD64")
    blocks, seconds = 0, 0.0
    for moment in recorder.moments:
        state = _state(project, snapshot, moment, pages)
        for _ in range(20):
            if blocks >= most or state.history.jumpkind.startswith("Ijk_Sys"):
                break
            code = snapshot.read(state.addr, 400)
            if code is None:
                break
            begin = time.process_time()
            found = project.factory.successors(state, insn_bytes=code, opt_level=1)
            seconds += time.process_time() - begin
            blocks += 1
            if len(found.flat_successors) != 1:
                break
            (state,) = found.flat_successors
    return {"engine": "angr", "runs": "concrete", "blocks": blocks, "blocks_per_second": round(blocks / seconds)}


def _state(project: Any, snapshot: Snapshot, moment: Moment, pages: set[int]) -> Any:
    import angr

    zeros = {angr.options.ZERO_FILL_UNCONSTRAINED_MEMORY, angr.options.ZERO_FILL_UNCONSTRAINED_REGISTERS}
    state = project.factory.blank_state(addr=moment.address, add_options=zeros)
    for slot in range(REGISTER_SLOTS - 2):
        if slot != REGISTERS["rip"]:
            state.registers.store(8 * slot, moment.registers[slot], size=8, endness="Iend_LE")
    for page in pages:
        found = moment.written.get(page) or (snapshot.page(page) or (bytes(PAGE), ""))[0]
        state.memory.store(page * PAGE, found)
    return state


# ------------------------------------------------------------------------------------------------ growth


def growth(snapshot: Snapshot, paths: int) -> dict[str, Any]:
    """One exploration of so many paths, in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_explore, args=(snapshot, paths, theirs))
    process.start()
    result: dict[str, Any] = ours.recv()
    process.join()
    return result


def _explore(snapshot: Snapshot, paths: int, connection: Connection) -> None:
    before = _megabytes()
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "bundle"
        exploration = Exploration(snapshot, load(SCENARIO), bundle, AGENT, limits=Limits(paths=paths))
        begin = time.process_time()
        manifest, progress = exploration.run()
        seconds = time.process_time() - begin
    connection.send(
        {
            "growth": SCENARIO,
            "paths": manifest.counts.paths,
            "seconds": round(seconds, 1),
            "paths_per_second": round(manifest.counts.paths / seconds, 1),
            "blocks_per_second": round(progress.blocks / seconds),
            "queries": progress.queries,
            "megabytes": round(_megabytes()),
            "of_that_before": round(before),
        }
    )


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measures(quick: bool) -> Iterator[dict[str, Any]]:
    snapshot = frozen(SCENARIO)
    yield compiled(snapshot, SCENARIO, 1 if quick else 5)
    ours = compiled(snapshot, "concrete", 1 if quick else 5)
    yield ours
    theirs = stock(snapshot, 100 if quick else 500)
    yield theirs
    yield {"times_faster": round(ours["blocks_per_second"] / theirs["blocks_per_second"])}
    for paths in (100, 1000) if quick else (100, 1000, 10000):
        yield growth(snapshot, paths)


def main() -> None:
    os.environ["SOFT_CACHE"] = "off"
    make("all")
    for measure in measures("--quick" in sys.argv):
        print(json.dumps(measure), flush=True)


if __name__ == "__main__":
    main()
