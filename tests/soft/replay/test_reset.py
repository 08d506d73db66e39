"""A switch is put back over its control channel, and has to prove it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from soft.launch.agent import Agent, start
from soft.replay.reset import Reset
from soft.replay.runner import opening
from tests.soft.replay import lab


@contextmanager
def running(*arguments: str) -> Iterator[Agent]:
    target = lab.target(*arguments)
    with start(target.profile, target.binary, 0) as agent:
        opening(agent, lab.scenario())
        yield agent


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 1, kind, 8 + len(body), 5) + body


def flow_mod(command: int = 0) -> bytes:
    return message(14, bytes(40) + struct.pack("!QHHHHIHH", 0, command, 0, 0, 0, 0, 0, 0))


def ask(agent: Agent, request: bytes) -> bytes:
    agent.send(request)
    return bytes(agent.collect(1.0).control)


def test_rules_and_configuration_are_as_at_first() -> None:
    with running("threads") as agent:
        reset = Reset.of(agent, "1.0")
        assert reset is not None
        assert reset.config == bytes.fromhex("00000080")
        agent.send(flow_mod() + message(9, bytes.fromhex("00010040")))
        assert ask(agent, message(7))[8:] == bytes.fromhex("00010040")
        assert reset.apply(agent)
        assert ask(agent, message(7))[8:] == bytes.fromhex("00000080")


def test_a_switch_that_keeps_its_rules_is_found_out() -> None:
    with running("stubborn") as agent:
        reset = Reset.of(agent, "1.0")
        assert reset is not None
        assert reset.apply(agent)
        agent.send(flow_mod())
        assert not reset.apply(agent)


def test_a_switch_with_rules_has_no_state_to_come_back_to() -> None:
    with running() as agent:
        agent.send(flow_mod())
        assert Reset.of(agent, "1.0") is None


@pytest.mark.parametrize("order", [b"c", b"x"])
def test_a_switch_that_is_gone_is_not_reset(order: bytes) -> None:
    with running("threads") as agent:
        reset = Reset.of(agent, "1.0")
        assert reset is not None
        agent.send(message(2, order))
        agent.collect(1.0)
        assert not reset.apply(agent)


def test_another_version_is_not_reset() -> None:
    with running() as agent:
        assert Reset.of(agent, "1.3") is None
