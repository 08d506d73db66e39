"""Crews: every job is reported once, whatever happens to the processes that do them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.path import Job
from harness.run import Outcome
from harness.workers import Alone, Crew, Forked


class Numbers:
    """A runner whose jobs have a number, and that dies of some of them."""

    def __init__(self, deadly: Callable[[int], bool] = lambda number: False) -> None:
        self.feasibility = SimpleNamespace(queries=0, kept=0)
        self.machine = SimpleNamespace(
            covered=lambda: dict.fromkeys(range(self.feasibility.queries), 4), keep=lambda: None
        )
        self._deadly = deadly

    def run(self, job: Job) -> Outcome:
        number = job.values["n"]
        if self._deadly(number):
            os.kill(os.getpid(), signal.SIGKILL)
        self.feasibility.queries += 1
        return Outcome({"n": number * number}, (), (), (), 1)


def work(crew: Crew, count: int) -> dict[int, int | None]:
    """Give a crew so many jobs: number → result, None for those that it gave up."""
    results: dict[int, int | None] = {}
    left = list(range(count))
    while left or crew.busy():
        while left and crew.room():
            crew.submit(Job({"n": left.pop()}))
        for report in crew.collect(0.2):
            number = report.job.values["n"]
            assert number not in results
            results[number] = None if report.outcome is None else report.outcome.witness["n"]
    crew.close()
    return results


SQUARES: dict[int, int | None] = {n: n * n for n in range(60)}


def crew_of(make: Any, processes: int) -> Crew:
    return Forked(make, processes)


def test_alone() -> None:
    assert work(Alone(Numbers), 60) == SQUARES  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [1, 3])
def test_forked(processes: int) -> None:
    assert work(crew_of(Numbers, processes), 60) == SQUARES
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_now_and_then() -> None:
    died: list[int] = []

    def make() -> Numbers:
        """In the worker: the first worker dies of its fifth job, all others live."""
        mortal = not died
        calls: list[int] = []

        def deadly(number: int) -> bool:
            calls.append(number)
            return mortal and len(calls) == 5

        return Numbers(deadly)

    crew = crew_of(make, 2)
    died.append(1)  # workers that are forked from here on
    assert work(crew, 60) == SQUARES


def test_a_deadly_job_is_given_up_and_all_others_are_done() -> None:
    results = work(crew_of(lambda: Numbers(lambda number: number == 17), 2), 60)
    assert results == SQUARES | {17: None}


def test_what_a_worker_did_is_counted_by_job() -> None:
    crew = Alone(Numbers)  # type: ignore[arg-type]
    for number in range(3):
        crew.submit(Job({"n": number}))
    reports = [crew.collect(0)[0] for _ in range(3)]
    assert [report.queries for report in reports] == [1, 1, 1]
    assert [report.covered for report in reports] == [{0: 4}, {1: 4}, {2: 4}]
