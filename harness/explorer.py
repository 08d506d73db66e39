"""The search: run an input, keep its path, and run what leaves that path, until nothing is left."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harness.path import Job
from harness.workers import Crew, Report
from soft.bundle.writer import BundleWriter, NoRoom
from soft.trace import Crash

# The solver and the machine are asked for news this often, so that a time limit is kept and a bar moves.
_TICK = 0.2
# The search takes the newest job, which keeps the frontier small; every so many jobs it takes the oldest, so that a
# search that is cut short has seen something of every part.
_OLDEST_EVERY = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop early."""

    seconds: float | None = None
    paths: int | None = None


@dataclass(slots=True)
class Progress:
    """How far an exploration is, for whoever watches."""

    paths: int = 0
    frontier: int = 0
    crashes: int = 0
    outputs: int = 0
    blocks: int = 0
    queries: int = 0
    kept: int = 0
    seconds: float = 0.0
    covered: dict[int, int] = field(default_factory=dict)
    """The addresses of blocks that ran, and how many bytes each has."""
    unsupported: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    given_up: Counter[str] = field(default_factory=Counter)
    hints: Counter[str] = field(default_factory=Counter)
    """What the person who explores should know about paths without a model; in no bundle."""
    stubs: Counter[str] = field(default_factory=Counter)
    """Lines for the profile, each with the number of runs that it would have saved; in no bundle."""
    stopped: str = ""
    """Why the search ended before it was done; empty if it was not stopped."""

    def reasons(self) -> list[str]:
        """Why the bundle is partial; nothing if it is complete."""
        found = [self.stopped] if self.stopped else []
        found += [f"No model for {name} ({_paths(count)})." for name, count in self.unsupported.most_common(50)]
        found += [f"Not followed: {why} ({count} times)." for why, count in self.given_up.most_common(50)]
        return found


def _paths(count: int) -> str:
    return "1 path" if count == 1 else f"{count} paths"


def explore(
    crew: Crew,
    writer: BundleWriter,
    start: Iterable[Job],
    limits: Limits,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Search from the given jobs. Every finished path is in the writer when this returns, however it returns."""
    with _stopped_by_the_user():
        return _search(crew, writer, start, limits, watch)


@contextlib.contextmanager
def _stopped_by_the_user() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here, whatever a library has made of it: claripy leaves a handler of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _search(
    crew: Crew,
    writer: BundleWriter,
    start: Iterable[Job],
    limits: Limits,
    watch: Callable[[Progress], None],
) -> Progress:
    progress = Progress(paths=writer.paths)
    frontier: list[Job] = []
    begin = time.monotonic()
    taken = 0
    try:
        frontier.extend(start)  # may take its time: what is left of an interrupted search is worked out here
        while frontier or crew.busy():
            while frontier and crew.room():
                taken += 1
                crew.submit(frontier.pop(0 if taken % _OLDEST_EVERY == 0 else -1))
            for report in crew.collect(_TICK):
                _keep(report, writer, progress)
                if report.outcome is not None:
                    frontier.extend(report.outcome.alternatives)
            progress.frontier = len(frontier)
            progress.outputs = writer.outputs
            progress.seconds = time.monotonic() - begin
            watch(progress)
            if limits.paths is not None and progress.paths >= limits.paths and (frontier or crew.busy()):
                progress.stopped = f"The limit of {limits.paths} paths was reached."
                break
            if limits.seconds is not None and progress.seconds >= limits.seconds and (frontier or crew.busy()):
                progress.stopped = f"The time limit of {limits.seconds:g} s was reached."
                break
    except NoRoom:
        progress.stopped = writer.full
    except KeyboardInterrupt:
        progress.stopped = "The user stopped it."
    finally:
        progress.seconds = time.monotonic() - begin
        crew.close()
    return progress


def _keep(report: Report, writer: BundleWriter, progress: Progress) -> None:
    progress.queries += report.queries
    progress.kept += report.kept
    progress.covered.update(report.covered)
    outcome = report.outcome
    if outcome is None:
        progress.given_up["a run that ended its worker"] += 1
        return
    progress.blocks += outcome.blocks
    progress.given_up.update(outcome.given_up)
    progress.hints.update(outcome.hints)
    if outcome.stub is not None:
        progress.stubs[outcome.stub] += 1
    if outcome.unsupported is not None:
        progress.unsupported[outcome.unsupported] += 1
        return
    if writer.add_path(outcome.conditions, outcome.trace, outcome.witness, outcome.marks):
        progress.paths += 1
        progress.marks.update(outcome.marks)
        if any(isinstance(event, Crash) for event in outcome.trace):
            progress.crashes += 1
