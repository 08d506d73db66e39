"""A running agent and its controller meet again."""

from __future__ import annotations

import pytest

from soft.launch.agent import start
from tests.soft.launch.lab import PYTHON, profile

ECHO = bytes.fromhex("0102000a00000009") + b"hi"
REPLY = bytes.fromhex("0103000a00000009") + b"hi"
LEAVE = bytes.fromhex("0102000d00000009") + b"leave"
CRASH = bytes.fromhex("0102000d00000009") + b"crash"
FRAME = bytes.fromhex("020000000a02020000000a0188b5") + bytes(range(46))


@pytest.mark.parametrize(
    ("connection", "commands"), [("connect", '["sh", "-c", "echo {controller} >again"]'), ("listen", "")]
)
@pytest.mark.parametrize("address", ["unix", "tcp"])
def test_an_agent_that_has_left_is_met_again(connection: str, commands: str, address: str) -> None:
    chosen = profile(connection=connection, address=address, extra=f"reconnect = [{commands}]")
    with start(chosen, PYTHON, 2) as agent:
        agent.handshake()
        pid = agent.pid
        for _ in range(2):
            agent.send(LEAVE)
            assert agent.collect(2).closed
            assert agent.reconnect()
            agent.send(ECHO)
            assert agent.collect(2).control == REPLY
            agent.ports[1].send(FRAME)
            assert agent.collect(2).packets == [(2, FRAME)]
        assert agent.pid == pid


def test_an_agent_is_not_met_again_if_its_profile_does_not_say_how_or_it_has_ended() -> None:
    with start(profile(), PYTHON, 1) as agent:
        agent.handshake()
        assert not agent.reconnect()
    with start(profile(connection="listen", extra="reconnect = []"), PYTHON, 1) as agent:
        agent.handshake()
        agent.send(CRASH)
        assert agent.collect(2).ended == "SIGSEGV"
        assert not agent.reconnect()


def test_a_reconnect_that_fails_is_no_error() -> None:
    chosen = profile(extra='reconnect = [["false"]]')
    with start(chosen, PYTHON, 1) as agent:
        agent.handshake()
        assert not agent.reconnect()
