"""The search, with a crew that answers from a table: what is kept, when it stops, and what it says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.explorer import Limits, Progress, explore
from harness.path import Job
from harness.run import Outcome
from harness.workers import Report
from soft.bundle.writer import BundleWriter
from soft.solve import terms as t
from soft.trace import Crash, Trace
from tests.harness.programs import A, scenario


class Table:
    """A crew for a tree: job n leads to 2n and 2n + 1, as long as they are below a bound."""

    def __init__(self, bound: int, unsupported: Callable[[int], str | None] = lambda number: None) -> None:
        self.done: list[int] = []
        self.closed = False
        self._bound = bound
        self._jobs: deque[Job] = deque()
        self._unsupported = unsupported

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def room(self) -> bool:
        return not self._jobs

    def busy(self) -> bool:
        return bool(self._jobs)

    def collect(self, timeout: float) -> list[Report]:
        job = self._jobs.popleft()
        number = job.values["n"]
        self.done.append(number)
        if number == 13:
            return [Report(job, None, 1)]
        children = tuple(Job({"n": child}) for child in (2 * number, 2 * number + 1) if child < self._bound)
        trace: Trace = (Crash(0, f"exit {number}"),) if number % 2 else ()
        conditions = (t.eq(A, t.const(number, 8)),)
        why = self._unsupported(number)
        given_up = ("the solver reached its time limit",) if number == 4 else ()
        outcome = Outcome(scenario().defaults, conditions, trace, children, 10, (), why, given_up)
        return [Report(job, outcome, 1, 2, {number: 4})]

    def close(self) -> None:
        self.closed = True


def search(
    directory: Path,
    crew: Table,
    limits: Limits | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> tuple[Progress, BundleWriter]:
    writer = BundleWriter(directory, scenario(), "table")
    progress = explore(crew, writer, [Job({"n": 1})], limits or Limits(), watch)
    assert crew.closed
    writer.close()
    return progress, writer


def test_everything_is_done_once(tmp_path: Path) -> None:
    crew = Table(12)
    progress, writer = search(tmp_path, crew)
    assert sorted(crew.done) == list(range(1, 12))
    assert (progress.paths, writer.paths, progress.crashes, progress.outputs) == (11, 11, 6, 7)
    assert (progress.blocks, progress.queries, progress.kept) == (110, 11, 22)
    assert progress.covered == dict.fromkeys(range(1, 12), 4)
    assert progress.given_up == {"the solver reached its time limit": 1}


def test_it_goes_deep_and_now_and_then_takes_the_oldest(tmp_path: Path) -> None:
    crew = Table(64)
    search(tmp_path, crew)
    assert crew.done[:4] == [1, 3, 7, 2]


def test_what_has_no_model_is_named_and_its_alternatives_are_followed(tmp_path: Path) -> None:
    crew = Table(12, lambda number: {3: "the system call 999", 6: "the system call 999", 7: "x"}.get(number))
    progress, writer = search(tmp_path, crew)
    assert sorted(crew.done) == list(range(1, 12))
    assert writer.paths == 8
    assert progress.reasons() == [
        "No model for the system call 999 (2 paths).",
        "No model for x (1 path).",
        "Not followed: the solver reached its time limit (1 times).",
    ]


def test_a_run_that_ends_its_workers_is_a_reason(tmp_path: Path) -> None:
    progress, writer = search(tmp_path, Table(14))
    assert writer.paths == 12
    assert "Not followed: a run that ended its worker (1 times)." in progress.reasons()


def test_limits(tmp_path: Path) -> None:
    progress, writer = search(tmp_path / "paths", Table(64), Limits(paths=5))
    assert (writer.paths, progress.stopped) == (5, "The limit of 5 paths was reached.")
    progress, _ = search(tmp_path / "seconds", Table(64), Limits(seconds=0))
    assert progress.stopped == "The time limit of 0 s was reached."
    progress, _ = search(tmp_path / "neither", Table(12), Limits(paths=11, seconds=1000))
    assert progress.stopped == ""


def test_an_interruption_keeps_what_is_there(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.paths == 6:
            raise KeyboardInterrupt

    progress, writer = search(tmp_path, Table(64), watch=interrupt)
    assert (writer.paths, progress.stopped) == (6, "The user stopped it.")


def test_any_other_error_is_not_hidden(tmp_path: Path) -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError("a mistake")

    crew = Table(64)
    with pytest.raises(RuntimeError, match="a mistake"):
        search(tmp_path, crew, watch=fail)
    assert crew.closed
