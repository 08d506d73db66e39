"""Inputs are played as if each had an agent of its own, whether it has or not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from soft.launch.find import find
from soft.replay.stage import AgentStage, Observation, observe
from soft.scenarios.loader import load, parse
from soft.trace import Close, Crash, Trace
from tests.soft.launch.lab import processes_of
from tests.soft.replay import lab

ONE: Trace = (lab.reply(0, b"\1"), lab.reply(1, b"\7\0"))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lab.binary()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_one_agent_plays_many_inputs_and_forgets_each() -> None:
    with AgentStage(lab.target(), lab.scenario()) as stage:
        for _ in range(10):
            assert observe(stage, lab.values("n"), ONE) == Observation(ONE, ONE, tries=0)
        assert stage.started == 1


def test_an_agent_that_crashed_is_replaced() -> None:
    crash: Trace = (Crash(0, "SIGABRT"),)
    with AgentStage(lab.target(), lab.scenario()) as stage:
        for _ in range(3):
            assert observe(stage, lab.values("c"), crash).tries == 0
            assert observe(stage, lab.values("n"), ONE).tries == 0
        assert stage.started == 4


def test_what_a_used_agent_does_wrong_a_fresh_one_may_do_right() -> None:
    # With two threads it is reset over OpenFlow, which does not know of its counter.
    with AgentStage(lab.target("threads"), lab.scenario()) as stage:
        assert observe(stage, lab.values("n"), ONE) == Observation(ONE, ONE, tries=0)
        assert observe(stage, lab.values("n"), ONE) == Observation(ONE, ONE, tries=1)


def test_a_fresh_agent_plays_on_afterwards() -> None:
    with AgentStage(lab.target(), lab.scenario()) as stage:
        assert [stage.fresh(lab.values("n")), stage.again(lab.values("n"))] == [ONE, ONE]
        assert stage.started == 1
    # With two threads the way back has to be asked for once, of an agent that is not to be fresh.
    with AgentStage(lab.target("threads"), lab.scenario()) as stage:
        assert stage.again(lab.values("a")) == stage.fresh(lab.values("a")) == stage.again(lab.values("a"))
        assert stage.started == 2


def test_a_disagreement_is_one_on_fresh_agents() -> None:
    with AgentStage(lab.target(), lab.scenario()) as stage:
        observation = observe(stage, lab.values("n"), (), tries=2)
        assert observation == Observation((), ONE, tries=2)
        assert not observation.agrees


def test_a_closed_channel_and_half_a_message_do_not_cost_a_start() -> None:
    scenario = load("short_symb")
    close: Trace = (Close(0),)
    with AgentStage(find("ovs-vswitchd"), scenario) as stage:
        for _ in range(2):
            # A length of 0 is none. One of 8 leaves two bytes of the ten in the channel.
            assert observe(stage, scenario.complete({"m0.length": 0}), close) == Observation(close, close, tries=0)
            assert observe(stage, scenario.complete({"m0.type": 3, "m0.length": 8}), ()).tries == 0
        assert stage.started == 1


def test_agents_need_not_be_kept() -> None:
    with AgentStage(lab.target(), lab.scenario(), keep_agents=False) as stage:
        assert [observe(stage, lab.values("n"), ONE).tries for _ in range(3)] == [1, 1, 1]
        assert stage.started == 3


def test_time_cannot_be_put_back() -> None:
    waiting = parse(lab.TEXT + "\n[[step]]\nwait = 5\n", "waiting.toml")
    with AgentStage(lab.target(), waiting) as stage:
        assert observe(stage, lab.values("n"), ONE).tries == 1
        assert not stage.keeps


class Moody:
    """A stage whose agents take turns in what they do."""

    def __init__(self, *traces: Trace) -> None:
        self._traces = list(traces)

    @property
    def moves_clock(self) -> bool:
        return False

    def again(self, values: Mapping[str, int]) -> Trace | None:
        return None

    def fresh(self, values: Mapping[str, int]) -> Trace:
        return self._traces.pop(0)

    def visible(self, trace: Trace) -> Trace:
        return trace


def test_an_agent_that_changes_its_mind_is_not_steady() -> None:
    other: Trace = (Crash(0, "SIGABRT"),)
    assert observe(Moody(other, ONE), {}, ONE) == Observation(ONE, ONE, tries=2, steady=False)
    assert observe(Moody(other, (), other), {}, ONE) == Observation(ONE, other, tries=3, steady=False)
    assert observe(Moody(other, other, other), {}, ONE) == Observation(ONE, other, tries=3, steady=True)
