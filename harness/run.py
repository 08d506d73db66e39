"""One run of a frozen agent under one input: from the freeze to the end of the scenario, and what that path is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from harness.advice import Advisor
from harness.checkpoints import Checkpoint, Checkpoints
from harness.feasible import Feasibility
from harness.frozen import Snapshot
from harness.kernel.endings import Crashed, Flooded, Quiet, Unproved
from harness.kernel.kernel import Kernel
from harness.kernel.outside import Plan
from harness.kernel.threads import registers_of
from harness.library import install
from harness.machine.cache import program_cache
from harness.machine.ends import BlockLimit, Fault, Trap, Unsupported
from harness.machine.machine import Machine
from harness.machine.values import Sym
from harness.marks import UNSTABLE
from harness.path import Job, Path
from harness.pieces import Pieces
from harness.places import explain
from harness.unwritten import Unwritten
from soft.openflow.normalise import normalise
from soft.scenarios.model import Scenario, Wait
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.trace import Crash, Event, Flood, Hang, Trace, evaluate_trace, map_terms

# The first runs, and one in so many later on, are repeated on integers whatever they depend on, as long as that is no
# more than a part of the work: a run that goes on from a checkpoint is much shorter than the whole of it.
_FIRST_REPEATED = 16
_REPEATED = 16
_MOST_REPEATED = 1 / 8
# Blocks that a run has executed since it began, or since the last checkpoint, for another one to be worth it: ten
# milliseconds of them. Time itself would make two explorations differ.
_WORTH_KEEPING = 2000
# A run of Open vSwitch has up to 25,000 blocks, sweeping a big empty table 100,000; beyond this it hangs.
MOST_BLOCKS = 3_000_000


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
    hints: tuple[str, ...] = ()
    """For the person who explores, never for a bundle: places in the code, names of functions and files."""
    stub: str | None = None
    """The line of a profile that would have made this run needless (harness.advice)."""


class Runner:
    """Runs one snapshot through one scenario, again and again. It keeps compiled blocks and answered questions."""

    def __init__(self, snapshot: Snapshot, scenario: Scenario, solver: str = "z3") -> None:
        self.snapshot = snapshot
        self.scenario = scenario
        self.pieces = Pieces(scenario)
        self.feasibility = Feasibility(self.pieces.widths, map(self.pieces.inside, scenario.domain), solver)
        self.machine = self.make_machine(snapshot)
        self._plan = Plan(scenario, self.pieces.inside)
        self._concrete_plan = Plan(scenario, None)
        self._unwritten = Unwritten(snapshot)
        self._waits = any(isinstance(step, Wait) for step in scenario.steps)
        self._runs = 0
        self._not_repeated = 0
        self._blocks = self._blocks_repeated = 0
        self._checkpoints = Checkpoints()
        self._registers, self._entry = registers_of(snapshot.thread)
        self._kernel: Kernel | None = None
        install(self.machine, snapshot, lambda: self.kernel)
        self._advisor = Advisor(self)
        self._hints: tuple[str, ...] = ()

    def make_machine(self, snapshot: Snapshot) -> Machine:
        """What executes the agent's code."""
        return Machine(snapshot.page, program_cache(region.content or b"" for region in snapshot.own_code))

    @property
    def kernel(self) -> Kernel:
        """The kernel of the run that is under way."""
        assert self._kernel is not None
        return self._kernel

    @functools.cached_property
    def _proves(self) -> bool:
        """Whether idle ticks are proved alike (harness.kernel.idle), and not followed one by one.

        That is tried with the longest waits that there are. What is proved of ticks is not for bytes that were never
        written: where they are proved, each run is repeated instead with other such bytes.
        """
        if not self._waits:
            return False
        values = dict(self.scenario.defaults)
        for step in self.scenario.steps:
            if isinstance(step, Wait) and not isinstance(step.milliseconds, int):
                values |= {name: self._plan.longest(step) for name in step.milliseconds.variables}
        path = Path(self.feasibility, Job(self.pieces.split(values)), self.machine.memory)
        self._begin(path)
        kernel = self._kernel = Kernel(self.snapshot, self.machine, self._plan, values, path.branch)
        kernel.idle.gives_up = _give_up
        try:
            self._follow(kernel)
        except Unproved:
            return False
        return True

    def run(self, job: Job) -> Outcome:
        job = replace(job, values=self.pieces.split(job.values))
        outcome = self._run(job, tracks=not self._proves)
        if outcome.unsupported is not None and self.machine.memory.has_read_unwritten:
            # It may have met something that has a model for integers only: these bytes are some, if need be.
            outcome = self._run(job, tracks=False)
        return replace(outcome, stub=self._advisor.stub_for(job))

    def _run(self, job: Job, tracks: bool) -> Outcome:
        pieces = self.pieces
        witness = pieces.join(job.values)
        path = Path(self.feasibility, job, self.machine.memory, pieces.outside, self._unwritten)
        # Where these bytes are integers after all, checkpoints are not of the same run.
        start = self._checkpoints.find(job.values) if tracks is not self._proves else None
        if start is None:
            self._begin(path, self._unwritten.place if tracks else range(0))
            kernel = Kernel(self.snapshot, self.machine, self._plan, witness, path.branch, self._proves)
        else:
            kernel = start.resume(self.machine, path, witness, self._unwritten.known)
        self._kernel = kernel
        kernel.at_call = self._keeper(kernel, path, start) if tracks is not self._proves else _keep_nothing
        ending, unsupported = self._follow(kernel, self._entry if start is None else start.address)
        blocks, hints = self.machine.executed - (start.executed if start is not None else 0), self._hints
        self._blocks += blocks

        def choose(term: Term) -> int:
            term = path.written(term)
            return path.pin(Sym(term, evaluate(term, job.values)))

        trace: Trace = ()
        if unsupported is None:
            inside = normalise([*kernel.outside.all_events(choose), *ending], self.scenario.openflow)
            trace = map_terms(map_terms(inside, path.written), pieces.outside)
        alternatives = tuple(path.alternatives())
        self._checkpoints.settle(path.decisions, [job.bound - (not job.taken) for job in alternatives])
        conditions: tuple[Term, ...] = ()
        marks = {**kernel.marks, **path.marks}
        if unsupported is None:
            conditions = tuple(map(pieces.outside, path.conditions()))
            self._runs += 1
            if not tracks or path.needs_written or kernel.has_random_numbers or self._is_sample(witness):
                verdict = self._repeat(witness, trace)
                if verdict == UNSTABLE:
                    marks[UNSTABLE] = None
                else:
                    unsupported = verdict
        return Outcome(
            witness=witness,
            conditions=conditions,
            trace=trace,
            alternatives=alternatives,
            blocks=blocks,
            marks=tuple(marks),
            unsupported=unsupported,
            given_up=tuple(path.given_up),
            hints=hints,
        )

    def _is_sample(self, witness: Mapping[str, int]) -> bool:
        """Whether a run that has no need to be repeated is. Without an input there are no terms to be checked."""
        if not witness:
            return False
        self._not_repeated += 1
        if self._runs > _FIRST_REPEATED and self._not_repeated < _REPEATED:
            return False
        most = 1.0 if self._runs <= _FIRST_REPEATED else _MOST_REPEATED
        if self._blocks_repeated > most * self._blocks:
            return False
        self._not_repeated = 0
        return True

    def _keeper(self, kernel: Kernel, path: Path, start: Checkpoint | None) -> Callable[[int], None]:
        """Keeps checkpoints of a run that has begun at one, or at the freeze."""
        machine = self.machine
        latest, since = start, machine.executed

        def keep(address: int) -> None:
            nonlocal latest, since
            if machine.executed - since < _WORTH_KEEPING:
                return
            if kernel.is_general and not kernel.marks and not path.marks:
                latest = Checkpoint.of(kernel, path, address, latest)
                self._checkpoints.add(latest)
            since = machine.executed

        return keep

    @property
    def entry(self) -> int:
        """Where a run begins."""
        return self._entry

    def begin_again(self, path: Path, job: Job) -> Kernel:
        """Everything as at the beginning of a run, for somebody else to follow."""
        self._begin(path)
        self._kernel = Kernel(
            self.snapshot, self.machine, self._plan, self.pieces.join(job.values), path.branch, self._proves
        )
        return self._kernel

    def _begin(self, decisions: Path | None, unwritten: range = range(0)) -> None:
        self.machine.reset(self._registers, unwritten)
        self.machine.decisions = decisions
        self.machine.clock = lambda: 0

    def _follow(self, kernel: Kernel, address: int | None = None) -> tuple[list[Event], str | None]:
        """Run to the end, from the freeze or from an address.

        Gives how it ended, if that can be seen from outside, and what had no model.
        """
        step = kernel.outside
        self._hints = ()
        try:
            self._execute(self.machine, kernel, self._entry if address is None else address)
        except Quiet:
            return [], None
        except Crashed as crash:
            return [Crash(max(step.step, 0), crash.reason)], None
        except Flooded:
            return [Flood(max(step.step, 0))], None
        except BlockLimit:
            return [Hang(max(step.step, 0))], None
        except Unsupported as error:
            self._hints = (explain(self.snapshot, error, self.machine),)
            return [], str(error)
        except RecursionError:
            return [], "a term that is nested too deeply"  # ours, not the agent's
        finally:
            kernel.idle.stop()

    def _repeat(self, witness: Mapping[str, int], trace: Trace) -> str | None:
        """Run the witness again on plain integers, with other bytes where the stack was never written.

        This decides where the path seems to depend on those, and checks a part of all runs besides. The path is
        UNSTABLE if it does depend on them. Terms that are not what the integers are would be a mistake of the model:
        then the path is not kept, and the result says so.
        """
        predicted = normalise(evaluate_trace(trace, witness), self.scenario.openflow)
        if self._concrete(witness, disturbed=True) == predicted:
            return None
        if self._concrete(witness, disturbed=False) == predicted:
            return UNSTABLE
        return "a run whose terms disagree with its values"

    def _concrete(self, witness: Mapping[str, int], disturbed: bool) -> Trace | None:
        self._begin(None)
        if disturbed:
            self.machine.memory.write(self._unwritten.place.start, self._unwritten.others)
        kernel = self._kernel = Kernel(
            self.snapshot, self.machine, self._concrete_plan, witness, _no_branch, self._proves
        )
        kernel.is_disturbed = disturbed
        ending, unsupported = self._follow(kernel)
        self._blocks_repeated += self.machine.executed
        if unsupported is not None:
            return None
        return normalise([*kernel.outside.all_events(_no_choice), *ending], self.scenario.openflow)

    def _execute(self, machine: Machine, kernel: Kernel, address: int) -> NoReturn:
        """Run until something ends it. A signal of the processor's does, unless the agent handles it."""
        while True:
            try:
                machine.run(address, kernel.arrive, MOST_BLOCKS - machine.own)
            except Fault:
                address = kernel.fault("SIGSEGV")
            except Trap as trap:
                address = kernel.fault(trap.signal)


def _give_up() -> NoReturn:
    raise Unproved


def _keep_nothing(address: int) -> None:
    """For runs that are not like the others."""


def _no_branch(condition: Term, holds: bool) -> None:
    raise AssertionError("a run on integers has no conditions")


def _no_choice(term: Term) -> int:
    raise AssertionError("a run on integers has no terms")
