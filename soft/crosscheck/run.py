"""A whole crosscheck: every scenario that the agents share, several at a time, into one set of findings."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from soft import __version__
from soft.bundle.reader import read
from soft.crosscheck.crosscheck import SECONDS_PER_QUERY, SOLVER, condition_files, crosscheck, unique_labels
from soft.crosscheck.model import FORMAT, SEVERITIES, Agent, Findings
from soft.crosscheck.sources import Plan
from soft.crosscheck.stop import Stop

Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Task:
    """One scenario: the agents' labels and bundles."""

    bundles: tuple[tuple[str, Path], ...]
    solver: str
    timeout: float


def run(
    plan: Plan,
    *,
    solver: str = SOLVER,
    timeout: float = SECONDS_PER_QUERY,
    jobs: int = 1,
    progress: Callable[[str], object] | None = None,
    time_limit: float | None = None,
) -> tuple[Findings, Files]:
    """The findings of all scenarios of a plan, and the files that go with them.

    After the time limit, in seconds, and after Ctrl-C those that there are by then.
    """
    start = time.perf_counter()
    moment = None if time_limit is None else time.monotonic() + time_limit
    labels = unique_labels(plan.labels)
    tasks = [
        Task(tuple((labels[place], path) for place, path in sorted(bundles.items())), solver, timeout)
        for _, bundles in plan.scenarios
    ]
    stop = Stop(moment)
    with stop.on_interrupt():
        if jobs == 1 or len(tasks) == 1:
            results = [_done(task, stop, progress) for task in tasks]
        else:
            with ProcessPoolExecutor(min(jobs, len(tasks)), initializer=_begin, initargs=(moment,)) as pool:
                results = list(pool.map(_done_here, tasks))
    files: Files = {}
    for _, more in results:
        files.update(more)
    sources = {label: tuple(str(p) for t in tasks for name, p in t.bundles if name == label) for label in labels}
    return _merged([found for found, _ in results], sources, time.perf_counter() - start), files


_stop_here = Stop()
"""What ends the tasks of this process, if it is one of several."""


def _begin(moment: float | None) -> None:
    global _stop_here
    _stop_here = Stop(moment)
    signal.signal(signal.SIGINT, _stop_here.interrupted)


def _done_here(task: Task) -> tuple[Findings, Files]:
    return _done(task, _stop_here)


def _done(task: Task, stop: Stop, progress: Callable[[str], object] | None = None) -> tuple[Findings, Files]:
    labels = [label for label, _ in task.bundles]
    bundles = []
    for _, path in task.bundles:
        if progress:
            progress(f"reading {path}")
        bundles.append(read(path))
    found = crosscheck(bundles, labels, solver=task.solver, timeout=task.timeout, progress=progress, stop=stop)
    return found, condition_files(found, dict(zip(labels, bundles, strict=True)))


def _merged(parts: Sequence[Findings], sources: Mapping[str, tuple[str, ...]], seconds: float) -> Findings:
    clusters = [cluster for part in parts for cluster in part.clusters]
    # Sorting is stable: within one severity, scenario by scenario.
    clusters.sort(key=lambda cluster: SEVERITIES.index(cluster.severity))
    order = {id: place for place, cluster in enumerate(clusters) for id in cluster.findings}
    return Findings(
        format=FORMAT,
        tool=f"soft {__version__}",
        agents=tuple(Agent(label, paths) for label, paths in sources.items()),
        scenarios=tuple(scenario for part in parts for scenario in part.scenarios),
        comparisons=tuple(comparison for part in parts for comparison in part.comparisons),
        findings=tuple(sorted((f for part in parts for f in part.findings), key=lambda f: order[f.id])),
        clusters=tuple(clusters),
        seconds=seconds,
        queries=sum(part.queries for part in parts),
    )
