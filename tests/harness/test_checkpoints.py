"""harness/checkpoints.py: a run that goes on from a checkpoint is the run that began at the freeze."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from unittest import mock

import pytest

from harness import run
from harness.checkpoints import Checkpoint, Checkpoints
from harness.frozen import Snapshot
from harness.path import Job
from harness.run import Outcome, Runner
from soft.scenarios.model import Scenario
from soft.solve.evaluate import evaluate
from tests.harness.kernel import lab, test_idle

FAMILIES = sorted(source.stem for source in lab.SOURCES.glob("*.c"))


@pytest.fixture(autouse=True)
def keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_WORTH_KEEPING", 0.0)
    monkeypatch.setattr(run, "_FIRST_REPEATED", 0)


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two runs found the same; how long they took is another matter."""
    return (one.conditions, one.trace, one.alternatives, one.marks, one.unsupported, one.given_up) == (
        other.conditions,
        other.trace,
        other.alternatives,
        other.marks,
        other.unsupported,
        other.given_up,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_goes_on_from_any_of_its_calls(family: str) -> None:
    went_on = 0
    for experiment in lab.experiments(family):
        runner, job = lab.runner(family, experiment.kind), Job(experiment.values)
        kept: list[Checkpoint] = []
        with (
            mock.patch.object(Checkpoints, "find", return_value=None),
            mock.patch.object(Checkpoints, "add", lambda self, checkpoint, kept=kept: kept.append(checkpoint)),
        ):
            whole = runner.run(job)
        for checkpoint in kept[:: len(kept) // 20 + 1]:
            with (
                mock.patch.object(Checkpoints, "find", return_value=checkpoint),
                mock.patch.object(Checkpoints, "add", autospec=True),
            ):
                rest = runner.run(job)
            assert same(rest, whole), f"{experiment.name}, block {checkpoint.executed}"
            assert rest.blocks == whole.blocks - checkpoint.executed
            went_on += 1
    assert went_on >= len(lab.experiments(family))


def outcomes(snapshot: Snapshot, scenario: Scenario, most: int) -> Iterator[Outcome]:
    runner, frontier = Runner(snapshot, scenario), [Job(scenario.defaults)]
    for _ in range(most):
        if not frontier:
            return
        outcome = runner.run(frontier.pop())
        yield outcome
        frontier += outcome.alternatives


# The first one decides on terms, the second one proves ticks alike, the third one is followed tick by tick.
@pytest.mark.parametrize("experiment", ["when_asked", "every_five_seconds", "gambling"])
def test_an_exploration_finds_the_same(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, scenario = lab.snapshot("ticks"), test_idle.scenario(experiment, 1000)
    with_them = list(outcomes(snapshot, scenario, 40))
    monkeypatch.setattr(Checkpoints, "add", lambda self, checkpoint: None)
    without = list(outcomes(snapshot, scenario, 40))
    assert len(with_them) == len(without)
    assert all(same(one, other) for one, other in zip(with_them, without, strict=True))
    assert sum(each.blocks for each in with_them) < sum(each.blocks for each in without)


def toys() -> tuple[Runner, list[Checkpoint], list[Mapping[str, int]]]:
    """Checkpoints of some paths, and the inputs that lead there."""
    runner = Runner(lab.snapshot("ticks"), test_idle.scenario("gambling", 100))
    kept: list[Checkpoint] = []
    with mock.patch.object(Checkpoints, "add", lambda self, checkpoint: kept.append(checkpoint)):
        frontier = [Job(runner.scenario.defaults)]
        for _ in range(5):
            frontier += runner.run(frontier.pop()).alternatives
    return runner, kept, [checkpoint.values for checkpoint in kept]


def test_the_last_one_that_an_input_leads_to_is_found() -> None:
    _, kept, inputs = toys()
    checkpoints = Checkpoints()
    for checkpoint in kept:
        checkpoints.add(checkpoint)
    for values in inputs:
        found = checkpoints.find(values)
        assert found is not None
        conditions = [decision.condition for decision in found.path.decisions]
        assert all(evaluate(condition, values) for condition in conditions)
        leading = [each for each in kept if all(evaluate(d.condition, values) for d in each.path.decisions)]
        assert len(conditions) == max(len(each.path.decisions) for each in leading)


def test_they_take_no_more_than_they_may() -> None:
    _, kept, inputs = toys()
    most = 200_000 + 3 * max(sum(size for _, size in checkpoint.memory.parts()) for checkpoint in kept)
    checkpoints = Checkpoints(most)
    for checkpoint in kept:
        checkpoints.add(checkpoint)
        assert 0 < checkpoints.size <= most
    assert any(checkpoints.find(values) is kept[-1] for values in inputs)


def test_nothing_is_found_where_nothing_is() -> None:
    assert Checkpoints().find({"x": 1}) is None
