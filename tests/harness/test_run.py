"""One run: what came out of it, compared with the live agent under the same input."""

from __future__ import annotations

import pytest

from harness import run as module
from harness.path import Job
from harness.run import Outcome, Runner
from soft.replay.runner import run
from soft.trace import Flood, Hang, Message, evaluate_trace
from tests.harness import toy
from tests.harness.kernel import lab


def runner(experiment: str) -> Runner:
    return Runner(lab.snapshot("symbolic"), toy.scenario(experiment))


def with_bytes(made: Runner, *data: int) -> Outcome:
    return made.run(Job(dict(zip(made.scenario.variable_names, data, strict=False)) | _rest(made, data)))


def _rest(made: Runner, data: tuple[int, ...]) -> dict[str, int]:
    return dict.fromkeys(made.scenario.variable_names[len(data) :], 0)


def test_a_run_knows_nothing_of_the_one_before() -> None:
    made = runner("branches")
    first = with_bytes(made, 200, 50, 7)
    with_bytes(made, 1, 1, 1)
    again = with_bytes(made, 200, 50, 7)
    assert (again.conditions, again.trace, again.alternatives) == (first.conditions, first.trace, first.alternatives)


@pytest.mark.parametrize("size", [0, 1, 9, 15])
def test_copies_of_symbolic_size(size: int) -> None:
    made = runner("copies")
    outcome = with_bytes(made, 0xF0 | size, 0x78)
    assert outcome.conditions == ()  # one path for all sizes
    native = run(lab.target("symbolic"), made.scenario, outcome.witness).trace
    assert evaluate_trace(outcome.trace, outcome.witness) == native


def test_one_path_predicts_all_of_its_inputs() -> None:
    made = runner("copies")
    outcome = with_bytes(made, 0)
    for size, byte in ((3, 1), (15, 255), (8, 0)):
        values = {**outcome.witness, **dict(zip(made.scenario.variable_names, (size, byte), strict=False))}
        native = run(lab.target("symbolic"), made.scenario, values).trace
        assert evaluate_trace(outcome.trace, values) == native


def test_a_loop_without_an_end_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BLOCKS", 20_000)
    made = runner("never_ends")
    outcome = with_bytes(made, 1)
    assert outcome.trace == (Hang(0),)
    assert run(lab.target("symbolic"), made.scenario, outcome.witness, patience=0.3).trace == outcome.trace
    assert not any(isinstance(event, Hang) for event in with_bytes(made, 3).trace)


def test_words_without_an_end_are_a_flood() -> None:
    made = runner("never_ends")
    outcome = with_bytes(made, 2)
    assert outcome.trace == (Flood(0),)
    assert run(lab.target("symbolic"), made.scenario, outcome.witness).trace == outcome.trace


def test_our_own_recursion_is_not_the_agent_s_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner("branches")

    def too_deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(made.machine, "run", too_deep)
    assert with_bytes(made, 1).unsupported == "a term that is nested too deeply"


def test_alternatives_leave_the_path() -> None:
    made = runner("branches")
    outcome = with_bytes(made, 200, 50)
    assert outcome.alternatives
    for job in outcome.alternatives:
        other = made.run(job)
        assert other.conditions != outcome.conditions
        assert isinstance(other.trace[0], Message)
