"""Whole explorations: the known paths of a small agent, however the work is divided, interrupted and taken up again."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.explorer import Limits, Progress
from harness.machine import cache, compiler, merge
from soft.bundle import files
from soft.bundle.check import check
from soft.bundle.model import Bundle
from soft.bundle.reader import read, recover
from soft.errors import SoftError
from soft.replay.runner import run
from soft.solve.solver import Solver
from soft.trace import Close, Crash, evaluate_trace
from tests.harness import toy
from tests.harness.kernel import lab

(A, B, C) = toy.scenario("branches").variable_names


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """`branches`, explored without an interruption."""
    directory = tmp_path_factory.mktemp("whole") / "bundle"
    manifest, _ = toy.explore("branches", directory)
    assert manifest.complete
    return read(directory)


def proved(bundle: Bundle) -> bool:
    verdict = check(bundle, partition=True, solver=Solver("z3"))
    return verdict.sound and bool(verdict.disjoint) and bool(verdict.covered)


def when(paths: int, action: Callable[[], object]) -> Callable[[Progress], None]:
    """Do something once, as soon as there are so many paths."""
    done: list[object] = []

    def watch(progress: Progress) -> None:
        if progress.paths >= paths and not done:
            done.append(True)
            action()

    return watch


def test_the_paths_are_the_known_ones_and_a_partition(whole: Bundle) -> None:
    assert len(whole.paths) == len(whole.traces) == toy.BRANCHES
    assert proved(whole)


@pytest.mark.parametrize("experiment", ["tables", "lengths"])
def test_every_witness_gives_its_trace_natively(experiment: str, tmp_path: Path) -> None:
    manifest, _ = toy.explore(experiment, tmp_path)
    assert manifest.complete
    bundle = read(tmp_path)
    assert proved(bundle)
    chosen = list(bundle.paths)[:: max(1, len(bundle.paths) // 25)]
    for path in chosen:
        native = run(lab.target("symbolic"), bundle.scenario, path.witness).trace
        assert native == evaluate_trace(bundle.traces[path.trace], path.witness)


def test_a_table_of_numbers_is_one_path_and_one_of_pointers_several(tmp_path: Path) -> None:
    toy.explore("tables", tmp_path)
    # Four names, two functions, seven ways through the switch, two places to write to; the squares are one term.
    assert len(read(tmp_path).paths) == 4 * 2 * 7 * 2


def test_a_length_is_no_branch(tmp_path: Path) -> None:
    manifest, _ = toy.explore("lengths", tmp_path)
    assert manifest.counts.paths <= 8


# ------------------------------------------------------------------------------------------------ explored before


def files_of(directory: Path) -> dict[str, bytes]:
    """A bundle's files, but for what differs from time to time."""
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    manifest = json.loads(found.pop(files.MANIFEST))
    for name in ("seconds", "paths_per_second", "blocks_per_second"):
        del manifest["statistics"][name]
    return {**found, files.MANIFEST: json.dumps(manifest).encode()}


@pytest.mark.parametrize("experiment", ["branches", "tables", "lengths"])
def test_the_second_exploration_lifts_nothing_and_finds_the_same(
    experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOFT_CACHE", "off")
    toy.explore(experiment, tmp_path / "without")
    assert not (tmp_path / "cache").exists()
    monkeypatch.delenv("SOFT_CACHE")
    toy.explore(experiment, tmp_path / "first")

    def no_lifting(code: bytes, address: int) -> None:
        raise AssertionError("a block is lifted")

    for module in (compiler, merge):
        monkeypatch.setattr(module, "lift", no_lifting)
    toy.explore(experiment, tmp_path / "second")
    without, first, second = (files_of(tmp_path / name) for name in ("without", "first", "second"))
    assert without == first == second


def test_workers_share_what_was_compiled(whole: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_PATIENCE", 60)  # on a busy machine, too, one has to wait for the other
    for name in ("first", "second"):
        _, progress = toy.explore("branches", tmp_path / name, jobs=2)
        assert toy.paths(tmp_path / name) == toy.paths(whole)
        assert progress.covered
        monkeypatch.setattr(compiler, "lift", lambda code, address: os.kill(os.getpid(), signal.SIGKILL))


# ------------------------------------------------------------------------------------------------ more than one process


def test_two_processes_find_the_same_paths_as_one(whole: Bundle, tmp_path: Path) -> None:
    manifest, progress = toy.explore("branches", tmp_path, jobs=2)
    assert manifest.complete
    assert toy.paths(tmp_path) == toy.paths(whole)
    assert (tmp_path / files.PATHS).read_bytes() != b""
    assert progress.covered


def test_the_death_of_a_worker_loses_no_path(whole: Bundle, tmp_path: Path) -> None:
    exploration = toy.exploration("branches", tmp_path, jobs=2)
    deaths: list[int] = []

    def kill_one(progress: Progress) -> None:
        # Not more than twice: a job that was there at three deaths would be to blame.
        if len(deaths) < min(2, progress.paths // 8):
            victim = next(worker for worker in multiprocessing.active_children() if worker.pid not in deaths)
            deaths.append(victim.pid or 0)
            victim.kill()

    manifest, progress = exploration.run(kill_one)
    assert len(set(deaths)) == 2
    assert manifest.complete
    assert progress.given_up == {}
    assert toy.paths(tmp_path) == toy.paths(whole)
    assert multiprocessing.active_children() == []


# ------------------------------------------------------------------------------------------------ interrupted


def killed(directory: Path, paths: int, jobs: int) -> None:
    """Explore in another process, which is killed as soon as it has so many paths."""

    def explore() -> None:
        toy.exploration("branches", directory, jobs=jobs).run(when(paths, lambda: os.kill(os.getpid(), signal.SIGKILL)))

    process = multiprocessing.get_context("fork").Process(target=explore)
    lab.snapshot("symbolic")
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(("paths", "jobs"), [(1, 1), (7, 1), (20, 2), (35, 1)])
def test_a_killed_exploration_goes_on(whole: Bundle, tmp_path: Path, paths: int, jobs: int) -> None:
    killed(tmp_path, paths, jobs)
    before = recover(tmp_path)
    assert paths <= len(before.paths) < toy.BRANCHES
    assert toy.paths(before) < toy.paths(whole)
    with pytest.raises(SoftError, match=r"an unfinished exploration is there. --resume goes on with it, --replace"):
        toy.explore("branches", tmp_path)
    manifest, _ = toy.explore("branches", tmp_path, resume=True)
    assert manifest.complete
    assert toy.paths(tmp_path) == toy.paths(whole)
    assert (tmp_path / files.PATHS).read_bytes() == (Path(whole.source) / files.PATHS).read_bytes()


def test_a_torn_line_is_explored_again(whole: Bundle, tmp_path: Path) -> None:
    killed(tmp_path, 12, 1)
    journal = tmp_path / files.JOURNAL / files.PATHS
    os.truncate(journal, journal.stat().st_size - 3)
    toy.explore("branches", tmp_path, resume=True)
    assert toy.paths(tmp_path) == toy.paths(whole)


def test_replace_begins_anew(whole: Bundle, tmp_path: Path) -> None:
    killed(tmp_path, 5, 1)
    manifest, progress = toy.explore("branches", tmp_path, replace=True)
    assert manifest.complete
    assert progress.paths == toy.BRANCHES


def test_there_is_nothing_to_resume(whole: Bundle, tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="there is no exploration to continue"):
        toy.explore("branches", tmp_path / "new", resume=True)
    with pytest.raises(SoftError, match="the bundle there is complete; there is nothing to resume"):
        toy.explore("branches", Path(whole.source), resume=True)


def test_a_limit_of_paths(whole: Bundle, tmp_path: Path) -> None:
    for limit in (3, 9, 17):
        manifest, _ = toy.explore("branches", tmp_path, limits=Limits(paths=limit), resume=limit > 3)
        assert manifest.reasons == (f"The limit of {limit} paths was reached.",)
        assert len(read(tmp_path).paths) == limit
        assert toy.paths(tmp_path) < toy.paths(whole)
    assert toy.explore("branches", tmp_path, resume=True)[0].complete
    assert toy.paths(tmp_path) == toy.paths(whole)


def test_a_limit_that_is_not_reached_is_no_reason(tmp_path: Path) -> None:
    assert toy.explore("branches", tmp_path, limits=Limits(seconds=1000, paths=toy.BRANCHES))[0].complete


def test_a_limit_of_time(whole: Bundle, tmp_path: Path) -> None:
    manifest, _ = toy.explore("branches", tmp_path, limits=Limits(seconds=0))
    assert manifest.reasons == ("The time limit of 0 s was reached.",)
    assert 1 <= len(read(tmp_path).paths) < toy.BRANCHES
    assert check(read(tmp_path), partition=True, solver=Solver("z3")).sound


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_user_stops_it(whole: Bundle, tmp_path: Path, jobs: int) -> None:
    exploration = toy.exploration("branches", tmp_path, jobs=jobs)
    manifest, _ = exploration.run(when(10, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert manifest.reasons == ("The user stopped it.",)
    assert 10 <= len(read(tmp_path).paths) < toy.BRANCHES
    assert multiprocessing.active_children() == []
    assert toy.explore("branches", tmp_path, resume=True)[0].complete
    assert toy.paths(tmp_path) == toy.paths(whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that has room for the writer's reserve and a few paths."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320k", "none", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_keeps_what_was_finished(whole: Bundle, small_disk: Path, tmp_path: Path) -> None:
    manifest, _ = toy.explore("branches", small_disk / "bundle")
    assert manifest.reasons == ("The disk was full.",)
    bundle = read(small_disk / "bundle")
    assert 1 <= len(bundle.paths) < toy.BRANCHES
    assert toy.paths(bundle) < toy.paths(whole)


# ------------------------------------------------------------------------------------------------ ends


def test_every_ending_is_an_output_and_what_has_no_model_is_named(tmp_path: Path) -> None:
    manifest, progress = toy.explore("ends", tmp_path)
    bundle = read(tmp_path)
    crashes = {(crash.reason, path.witness[A]) for _, path, crash in bundle.crashes()}
    assert crashes == {
        ("SIGABRT", 1), ("SIGSEGV", 2), ("SIGFPE", 3), ("exit 0", 4), ("exit 1", 4), ("SIGFPE", 6), ("SIGSEGV", 7),
    }  # fmt: skip
    assert any(isinstance(event, Close) for trace in bundle.traces for event in trace)
    assert not manifest.complete
    assert progress.unsupported == {
        "the system call swapon": 1,
        "the instruction vpaddd": 1,
        "random numbers, which no replay can repeat": 1,
    }
    assert sorted(manifest.reasons) == [
        "No model for random numbers, which no replay can repeat (1 path).",
        "No model for the instruction vpaddd (1 path).",
        "No model for the system call swapon (1 path).",
    ]
    # Nothing is silently left out: what the paths do not cover is what has no model.
    verdict = check(bundle, partition=True, solver=Solver("z3"))
    assert verdict.sound
    assert verdict.disjoint
    for path in bundle.paths:
        assert path.witness[A] not in (8, 9, 10)


def test_crashes_happen_natively_too(tmp_path: Path) -> None:
    toy.explore("ends", tmp_path)
    bundle = read(tmp_path)
    for _, path, crash in bundle.crashes():
        native = run(lab.target("symbolic"), bundle.scenario, path.witness).trace
        assert [event for event in native if isinstance(event, Crash)] == [crash]
        assert native == evaluate_trace(bundle.traces[path.trace], path.witness)


def test_statistics(whole: Bundle) -> None:
    statistics = whole.manifest.statistics
    assert statistics["blocks"] > 100 * toy.BRANCHES
    assert 0 < statistics["coverage"] < 1
    assert {"seconds", "paths_per_second", "blocks_per_second", "queries", "kept", "jobs"} <= set(statistics)
