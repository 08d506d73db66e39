"""One run of a frozen agent under one input: from the freeze to the end of the scenario, and what that path is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from harness.feasible import Feasibility
from harness.frozen import Snapshot
from harness.kernel.endings import Crashed, Flooded, Quiet
from harness.kernel.kernel import Kernel
from harness.kernel.outside import Plan
from harness.library import install
from harness.machine.compiler import REGISTER_SLOTS, REGISTERS
from harness.machine.ends import BlockLimit, Fault, Trap, Unsupported
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value
from harness.path import Job, Path
from harness.pieces import Pieces
from soft.openflow.normalise import normalise
from soft.scenarios.model import Scenario
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.trace import Crash, Event, Flood, Hang, Trace

# A run of Open vSwitch has up to 25,000 blocks, sweeping a big empty table 100,000; beyond this it hangs.
MOST_BLOCKS = 3_000_000
_GENERAL = (
    "r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rbp", "rbx", "rcx", "rdx", "rsi", "rdi", "rsp", "rax",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found: its path, the inputs that leave it, and what could not be followed."""

    witness: Mapping[str, int]
    conditions: tuple[Term, ...]
    trace: Trace
    alternatives: tuple[Job, ...]
    blocks: int
    marks: tuple[str, ...] = ()
    unsupported: str | None = None
    """The path ended in something without a model: it has no trace."""
    given_up: tuple[str, ...] = field(default=())
    """Alternatives that were not followed, and why."""


class Runner:
    """Runs one snapshot through one scenario, again and again. It keeps compiled blocks and answered questions."""

    def __init__(self, snapshot: Snapshot, scenario: Scenario, solver: str = "z3") -> None:
        self.snapshot = snapshot
        self.scenario = scenario
        self.pieces = Pieces(scenario)
        self.feasibility = Feasibility(self.pieces.widths, map(self.pieces.inside, scenario.domain), solver)
        self.machine = Machine(snapshot.page)
        self._plan = Plan(scenario, self.pieces.inside)
        self._registers, self._entry = initial_registers(snapshot)
        self._kernel: Kernel | None = None
        install(self.machine, snapshot, lambda: self.kernel)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the run that is under way."""
        assert self._kernel is not None
        return self._kernel

    def run(self, job: Job) -> Outcome:
        machine, pieces = self.machine, self.pieces
        job = replace(job, values=pieces.split(job.values))
        witness = pieces.join(job.values)
        machine.reset(self._registers)
        path = Path(self.feasibility, job, machine.memory, pieces.outside)
        machine.decisions = path
        kernel = self._kernel = Kernel(self.snapshot, machine, self._plan, witness, path.branch)
        machine.clock = lambda: 0
        ending: list[Event] = []
        unsupported: str | None = None
        try:
            self._execute(machine, kernel)
        except Quiet:
            pass
        except Crashed as crash:
            ending.append(Crash(max(kernel.outside.step, 0), crash.reason))
        except Flooded:
            ending.append(Flood(max(kernel.outside.step, 0)))
        except (BlockLimit, RecursionError):
            ending.append(Hang(max(kernel.outside.step, 0)))
        except Unsupported as error:
            unsupported = str(error)

        kernel.idle.check(kernel, ended=True)

        def choose(term: Term) -> int:
            return path.pin(Sym(term, evaluate(term, job.values)))

        trace: Trace = ()
        if unsupported is None:
            trace = normalise([*kernel.outside.all_events(choose), *ending], self.scenario.openflow)
            trace = pieces.outside_trace(trace)
        alternatives = tuple(path.alternatives())
        return Outcome(
            witness=witness,
            conditions=tuple(map(pieces.outside, path.conditions())) if unsupported is None else (),
            trace=trace,
            alternatives=alternatives,
            blocks=machine.executed,
            marks=tuple({**kernel.marks, **path.marks}),
            unsupported=unsupported,
            given_up=tuple(path.given_up),
        )

    def _execute(self, machine: Machine, kernel: Kernel) -> NoReturn:
        """Run until something ends it. A signal of the processor's does, unless the agent handles it."""
        address = self._entry
        while True:
            try:
                machine.run(address, kernel.special, MOST_BLOCKS - machine.executed)
            except Fault:
                address = kernel.fault("SIGSEGV")
            except Trap as trap:
                address = kernel.fault(trap.signal)


def initial_registers(snapshot: Snapshot) -> tuple[list[Value], int]:
    """The registers with which the blocked system call is made again, and where that is."""
    thread = snapshot.thread
    saved = thread.registers
    registers: list[Value] = [0] * REGISTER_SLOTS
    for name in _GENERAL:
        registers[REGISTERS[name]] = saved[name]
    registers[REGISTERS["fs"]] = saved["fs_base"]
    registers[REGISTERS["gs"]] = saved["gs_base"]
    registers[REGISTERS["d"]] = 1
    registers[REGISTERS["cc_dep1"]] = saved["eflags"] & 0x8D5
    for index, value in enumerate(thread.xmm):
        slot = REGISTERS[f"ymm{index}"]
        registers[slot], registers[slot + 1] = value & (1 << 64) - 1, value >> 64
    if thread.in_syscall is None:
        return registers, saved["rip"]
    registers[REGISTERS["rax"]] = thread.in_syscall
    return registers, saved["rip"] - 2
