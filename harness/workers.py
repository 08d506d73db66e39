"""Processes that run jobs side by side. A worker may die at any time: its jobs are given to another one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from harness.path import Job
from harness.run import Outcome, Runner
from harness.transport import Channel

# So many jobs wait at a worker, so that it never waits for us.
_AHEAD = 3
# A job whose worker died this often is to blame itself.
_MOST_DEATHS = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one job: an outcome, or None if it ended its workers; and what the worker did since the last one."""

    job: Job
    outcome: Outcome | None
    queries: int = 0
    kept: int = 0
    covered: Mapping[int, int] = field(default_factory=dict)
    """The addresses of blocks that ran for the first time, and how many bytes each has."""


class Crew(Protocol):
    """Runs jobs in any order."""

    def submit(self, job: Job) -> None: ...

    def room(self) -> bool:
        """Whether another job should be submitted now."""

    def busy(self) -> bool:
        """Whether a submitted job has not been reported."""

    def collect(self, timeout: float) -> list[Report]: ...

    def close(self) -> None: ...


class Meter:
    """Turns a runner's totals into what each job added."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._queries = self._kept = 0
        self._blocks: set[int] = set()

    def report(self, job: Job) -> Report:
        machine = self._runner.machine
        try:
            outcome = self._runner.run(job)
        finally:
            machine.keep()  # now: a worker is killed when there is nothing more to do
        feasibility = self._runner.feasibility
        queries, kept = feasibility.queries - self._queries, feasibility.kept - self._kept
        self._queries, self._kept = feasibility.queries, feasibility.kept
        fresh: Mapping[int, int] = {}
        if len(machine.covered()) > len(self._blocks):
            fresh = {address: size for address, size in machine.covered().items() if address not in self._blocks}
            self._blocks.update(fresh)
        return Report(job, outcome, queries, kept, fresh)


class Alone:
    """Runs jobs in this process."""

    def __init__(self, make_runner: Callable[[], Runner]) -> None:
        self._meter = Meter(make_runner())
        self._jobs: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def room(self) -> bool:
        return not self._jobs

    def busy(self) -> bool:
        return bool(self._jobs)

    def collect(self, timeout: float) -> list[Report]:
        # The job leaves the queue when it is done: whoever interrupts a run has not lost it.
        report = self._meter.report(self._jobs[0])
        self._jobs.popleft()
        return [report]

    def close(self) -> None:
        self._jobs.clear()


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    channel: Channel
    jobs: deque[Job] = field(default_factory=deque)


class Forked:
    """Runs jobs in processes of their own, forked from this one."""

    def __init__(self, make_runner: Callable[[], Runner], count: int) -> None:
        self._make_runner = make_runner
        self._context = multiprocessing.get_context("fork")
        self._workers = [self._start() for _ in range(count)]
        self._again: deque[Job] = deque()
        self._deaths: dict[int, int] = {}
        self._lost: list[Report] = []

    def submit(self, job: Job) -> None:
        self._give(min(self._workers, key=lambda worker: len(worker.jobs)), job)

    def room(self) -> bool:
        return not self._again and any(len(worker.jobs) < _AHEAD for worker in self._workers)

    def busy(self) -> bool:
        return bool(self._again or self._lost) or any(worker.jobs for worker in self._workers)

    def collect(self, timeout: float) -> list[Report]:
        while self._again and any(len(worker.jobs) < _AHEAD for worker in self._workers):
            self.submit(self._again.popleft())
        reports, self._lost = self._lost, []
        by_connection = {worker.channel.connection: worker for worker in self._workers}
        for ready in wait(list(by_connection), 0 if reports else timeout):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                report: Report = worker.channel.receive()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            self._deaths.pop(id(worker.jobs.popleft()), None)
            reports.append(report)
        return reports

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.channel.connection.close()

    def _give(self, worker: _Worker, job: Job) -> None:
        worker.jobs.append(job)
        try:
            worker.channel.send(job)
        except OSError:
            self._bury(worker)

    def _bury(self, dead: _Worker) -> None:
        """Take another worker in, and have the dead one's jobs done again; the first of them may have killed it."""
        dead.process.kill()
        dead.process.join()
        dead.channel.connection.close()
        if dead.jobs:
            first = dead.jobs[0]
            self._deaths[id(first)] = self._deaths.get(id(first), 0) + 1
            if self._deaths[id(first)] >= _MOST_DEATHS:
                dead.jobs.popleft()
                self._lost.append(Report(first, None))
        self._again.extend(dead.jobs)
        self._workers[self._workers.index(dead)] = self._start()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._make_runner), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, Channel(ours))


def _work(connection: Connection, make_runner: Callable[[], Runner]) -> None:
    """A worker's life: jobs in, reports out, until the coordinator goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The other workers' connections must not stay open here, or nobody would notice a death; nor the bundle's journal,
    # which is locked as long as anybody has it open.
    last = max(map(int, os.listdir("/proc/self/fd")))
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, last + 1)
    channel = Channel(connection)
    meter = Meter(make_runner())
    try:
        while True:
            channel.send(meter.report(channel.receive()))
    except (EOFError, OSError):
        return
