"""tests/harness/agents/ticks.c: agents that tick every 10 ms, over waits of up to a minute."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import pytest

from harness.exploration import Exploration
from harness.explorer import Progress
from harness.kernel import idle
from harness.path import Job
from harness.run import Outcome, Runner
from soft.bundle.check import check
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.bundle.show import summary
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.solve.solver import Solver
from soft.trace import Message, Trace, evaluate_trace
from tests.harness.kernel import lab

_NUMBERS = {experiment.name: experiment.number for experiment in lab.experiments("ticks")}
MINUTE = 60_000
SECONDS, WAIT = "m0.data.seconds", "w1.ms"


@functools.cache
def scenario(experiment: str, most: int = MINUTE) -> Scenario:
    text = f"""
name = "ticking"
summary = "x"
ports = 1
[[step]]
send = "echo_request"
data = ["{_NUMBERS[experiment]:02x}", {{ name = "seconds", bits = 8, value = {{ symbolic = true, default = 7 }} }}]
[[step]]
wait = "symbolic"
range_ms = [0, {most}]
[[step]]
send = "echo_request"
data = "ff616263"
"""
    return parse(text, "ticking.toml")


def explore(experiment: str, directory: Path, most: int = MINUTE) -> tuple[Bundle, Progress]:
    manifest, progress = Exploration(lab.snapshot("ticks"), scenario(experiment, most), directory, "ticks").run()
    assert manifest.complete, manifest.reasons
    return read(directory), progress


def marks(bundle: Bundle) -> set[str]:
    return {mark for path in bundle.paths for mark in path.marks}


def said(trace: Trace, step: int = 1) -> int:
    """How often the agent said something during the wait."""
    return sum(isinstance(event, Message) and event.step == step for event in trace)


@lab.each("ticks")
def test_as_natively(experiment: lab.Experiment) -> None:
    lab.compare(experiment)


# A minute has 6,000 ticks. The paths are the few ticks that are looked at, and those around something that happens.
@pytest.mark.parametrize(
    ("experiment", "paths", "outputs"),
    [
        ("empty", 4, 1),
        ("busy_with_itself", 12, 1),
        ("once_at_the_thousandth", 10, 2),
        ("when_asked", 16, 2),
        ("when_asked_in_seconds", 12, 2),
        ("timerfd", 12, 2),
        ("alarm_clock", 12, 2),
        ("select_with_what_is_left", 8, 1),
        ("every_second_in_timeval", 12, 1),
    ],
)
def test_a_minute_costs_few_paths_and_blocks(experiment: str, paths: int, outputs: int, tmp_path: Path) -> None:
    bundle, progress = explore(experiment, tmp_path)
    assert len(bundle.paths) <= paths
    assert len(bundle.traces) == outputs
    assert progress.blocks < 1000 * paths
    assert marks(bundle) == set()
    verdict = check(bundle, partition=True, solver=Solver("z3"))
    assert verdict.sound
    assert verdict.disjoint
    assert verdict.covered


def test_a_tick_that_counts_is_not_skipped(tmp_path: Path) -> None:
    bundle, _ = explore("every_hundredth", tmp_path, most=5000)
    assert marks(bundle) == set()
    for path in bundle.paths:
        # The hundredth tick is at 1000 ms.
        assert said(bundle.traces[path.trace]) == path.witness[WAIT] // 1000
    assert {said(trace) for trace in bundle.traces} == {0, 1, 2, 3, 4, 5}


def test_a_timer_of_its_own_in_a_tick_is_not_late(tmp_path: Path) -> None:
    bundle, _ = explore("every_five_seconds", tmp_path, most=22_000)
    assert marks(bundle) == set()
    # Due every 5003 ms, seen at the next tick: at 5010, 10010, 15010 and 20020 ms.
    for path in bundle.paths:
        assert said(bundle.traces[path.trace]) == sum(path.witness[WAIT] >= t for t in (5010, 10010, 15010, 20020))


def test_when_something_happens_depends_on_the_input(tmp_path: Path) -> None:
    bundle, _ = explore("when_asked", tmp_path)
    for path in bundle.paths:
        seconds, wait = path.witness[SECONDS], path.witness[WAIT]
        # It looks for the first time after 10 ms.
        assert said(bundle.traces[path.trace]) == (wait >= max(1000 * seconds, 10))


def run(experiment: str, wait: int, seconds: int) -> Outcome:
    text = scenario(experiment).text.replace('"symbolic"\nrange_ms', f"{wait}\n# range_ms")
    concrete = parse(text, "ticking.toml")
    outcome = Runner(lab.snapshot("ticks"), concrete).run(Job({SECONDS: seconds}))
    assert outcome.unsupported is None
    return outcome


@pytest.mark.parametrize("experiment", sorted(set(_NUMBERS) - {"gambling"}))
def test_skipped_or_not_is_the_same(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # One tick a second has to be followed for longer than a hundred.
    wait = 50_478 if experiment == "every_second_in_timeval" else 5_478
    skipping = run(experiment, wait, 3)
    monkeypatch.setattr(idle.Idle, "tick", lambda self, due, deadline: idle.Move(due, deadline))
    ticking = run(experiment, wait, 3)
    values = {SECONDS: 3}
    assert evaluate_trace(skipping.trace, values) == evaluate_trace(ticking.trace, values)
    assert 3 * skipping.blocks < ticking.blocks
    assert skipping.marks == ticking.marks == ()


def test_what_cannot_be_proved_idle_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(idle, "_MOST_TICKS", 30)
    monkeypatch.setattr(idle, "_MOST_FOLLOWED", 30)
    bundle, progress = explore("gambling", tmp_path)
    assert len(bundle.paths) == 32
    assert progress.marks == Counter(mark for path in bundle.paths for mark in path.marks)
    assert any(line.startswith(f"marked {idle.MARK}: ") for line in summary(bundle))
    assert progress.blocks < 32 * 2000
    for path in bundle.paths:
        assert (idle.MARK in path.marks) == (path.witness[WAIT] >= 310)


def test_what_cannot_be_proved_idle_is_followed(tmp_path: Path) -> None:
    bundle, _ = explore("gambling", tmp_path, most=3000)
    assert len(bundle.paths) >= 300
    assert idle.MARK not in marks(bundle)
