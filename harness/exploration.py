"""A whole exploration: from a frozen agent and a scenario to a bundle on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath

from harness.explorer import Limits, Progress, explore
from harness.frozen import Snapshot
from harness.kernel.threads import may_run
from harness.path import Job
from harness.resume import frontier
from harness.run import Runner
from harness.workers import Alone, Crew, Forked
from soft.bundle import files
from soft.bundle.model import Manifest
from soft.bundle.writer import BundleWriter
from soft.errors import SoftError
from soft.openflow.normalise import RULES
from soft.scenarios.model import Scenario

_THREADS = "The agent's {count} threads take turns, each until it waits: what else a race may do is not looked for."
_FROZEN_THREADS = "{count} of its threads waited for nothing that has a model: what they would do does not happen."
_RELAYED = "Between the controller and the process explored is another one, which is taken to pass on all messages."


class Exploration:
    """One call of `soft explore`. `run` leaves a finished bundle, whatever ends it."""

    def __init__(
        self,
        snapshot: Snapshot,
        scenario: Scenario,
        directory: FilePath,
        label: str,
        *,
        jobs: int = 1,
        limits: Limits | None = None,
        resume: bool = False,
        replace: bool = False,
        engine: str = "compiled",
        solver: str = "z3",
    ) -> None:
        self._snapshot = snapshot
        self._scenario = scenario
        self._jobs = jobs
        self._limits = limits or Limits()
        self._solver = solver
        self._engine = engine
        self._not_resumed: list[str] = []
        if not resume and not replace and (directory / files.JOURNAL).exists():
            raise SoftError(
                f"{directory}: an unfinished exploration is there. --resume goes on with it, --replace begins anew."
            )
        self._writer = BundleWriter(
            directory,
            scenario,
            label,
            normalisation=tuple(RULES),
            limits=self._manifest_limits(),
            resume=resume,
            replace=not resume,
        )

    def run(self, watch: Callable[[Progress], None] = lambda progress: None) -> tuple[Manifest, Progress]:
        begin = time.monotonic()
        crew = self._crew()
        try:
            progress = explore(crew, self._writer, self._start(), self._limits, watch)
        except BaseException:
            self._writer.close()  # whoever watched has had enough, and may begin anew
            raise
        seconds = time.monotonic() - begin
        reasons = [*progress.reasons(), *self._not_resumed]
        manifest = self._writer.finish(not reasons, reasons, self._statistics(progress, seconds))
        return manifest, progress

    def _crew(self) -> Crew:
        make = self._make_runner
        return Alone(make) if self._jobs == 1 else Forked(make, self._jobs)

    def _make_runner(self) -> Runner:
        if self._engine == "angr":
            from harness.oracle import StockRunner

            return StockRunner(self._snapshot, self._scenario, self._solver)
        return Runner(self._snapshot, self._scenario, self._solver)

    def _start(self) -> Iterable[Job]:
        if self._writer.recovered is not None:
            runner = self._make_runner()
            return frontier(self._writer.recovered, runner.feasibility, runner.pieces, self._cannot_resume)
        return [Job(self._scenario.defaults)]

    def _cannot_resume(self) -> None:
        self._not_resumed[:] = ["Not followed: what the solver could not tell when the exploration was resumed."]

    def _manifest_limits(self) -> tuple[str, ...]:
        threads = self._snapshot.threads
        frozen = sum(1 for thread in threads if thread.tid != self._snapshot.main and not may_run(thread))
        limits = [_THREADS.format(count=len(threads))] if len(threads) - frozen > 1 else []
        limits += [_FROZEN_THREADS.format(count=frozen)] if frozen else []
        if self._snapshot.control.detail.get("relayed"):
            limits.append(_RELAYED)
        return (*limits, *self._snapshot.stubs)

    def _statistics(self, progress: Progress, seconds: float) -> Mapping[str, int | float]:
        busy = max(progress.seconds, 1e-9)
        return {
            "seconds": round(seconds, 3),
            "paths_per_second": round(progress.paths / busy, 1),
            "blocks": progress.blocks,
            "blocks_per_second": round(progress.blocks / busy),
            "queries": progress.queries,
            "kept": progress.kept,
            "coverage": round(self._coverage(progress.covered), 4),
            "covered_blocks": len(progress.covered),
            "jobs": self._jobs,
        }

    def _coverage(self, covered: Mapping[int, int]) -> float:
        """The share of the agent's own code (not that of its libraries) that ran."""
        own = self._snapshot.own_code
        ran: set[int] = set()
        for region in own:
            for address, size in covered.items():
                if region.start <= address < region.end:
                    ran.update(range(address, min(address + size, region.end)))
        total = sum(region.end - region.start for region in own)
        return len(ran) / total if total else 0.0
