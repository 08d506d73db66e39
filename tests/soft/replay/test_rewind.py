"""A live agent is put back to an earlier moment, or it is said that this cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from soft.launch.agent import Agent, start
from soft.replay import rewind as module
from soft.replay.rewind import mark, rewind
from soft.replay.runner import opening, play
from soft.trace import Close, Crash, Trace
from tests.soft.replay import lab


@pytest.fixture
def agent() -> Iterator[Agent]:
    target = lab.target()
    with start(target.profile, target.binary, 0) as started:
        opening(started, lab.scenario())
        yield started


def give(agent: Agent, order: str) -> Trace:
    return play(agent, lab.scenario().bind(lab.values(order)))


def counted(number: int) -> Trace:
    return lab.reply(0, bytes([number])), lab.reply(1, b"\7\0")


def test_without_a_rewind_state_shows(agent: Agent) -> None:
    assert [give(agent, "n") for _ in range(3)] == [counted(1), counted(2), counted(3)]


def test_a_rewound_agent_has_forgotten(agent: Agent) -> None:
    give(agent, "n")
    moment = mark(agent)
    assert moment is not None
    for _ in range(20):
        assert give(agent, "n") == counted(2)
        assert give(agent, "n") == counted(3)
        assert rewind(agent, moment)


def test_a_rewound_agent_still_dies_of_its_own_signals(agent: Agent) -> None:
    moment = mark(agent)
    assert moment is not None
    give(agent, "n")
    assert rewind(agent, moment)
    assert give(agent, "c") == (Crash(0, "SIGABRT"),)
    assert not rewind(agent, moment)


def test_an_agent_that_took_memory_is_not_rewound(agent: Agent) -> None:
    moment = mark(agent)
    assert moment is not None
    give(agent, "m")
    assert not rewind(agent, moment)


def test_an_agent_that_closed_its_channel_is_not_rewound(agent: Agent) -> None:
    moment = mark(agent)
    assert moment is not None
    assert give(agent, "x") == (Close(0),)
    assert not rewind(agent, moment)


def test_an_agent_that_does_not_read_is_not_rewound(agent: Agent) -> None:
    moment = mark(agent)
    assert moment is not None
    assert give(agent, "s") == ()
    assert not rewind(agent, moment)


def test_a_moment_gets_too_old(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = mark(agent)
    assert moment is not None
    assert rewind(agent, moment)
    monkeypatch.setattr(module, "_MOST_AGE", 0.0)
    assert not rewind(agent, moment)


def test_an_agent_with_threads_has_no_moments() -> None:
    target = lab.target("threads")
    with start(target.profile, target.binary, 0) as agent:
        opening(agent, lab.scenario())
        assert mark(agent) is None
