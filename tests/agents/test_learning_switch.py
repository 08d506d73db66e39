"""A real controller drives each switch: os-ken's learning switch gets packets across."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.lab import ROOT, Lab, Port, binary, free_tcp_port, running

ONE, TWO = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
REST = bytes.fromhex("88b5") + bytes(range(46))
BROADCAST = b"\xff" * 6 + bytes.fromhex("020000000003") + REST
STARTING = 60.0  # seconds that a Python controller may take on a busy machine


@pytest.fixture
def lab(tmp_path: Path, agent: str) -> Iterator[Lab]:
    """The switch, connected out to a controller that runs the application."""
    port = free_tcp_port()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.agents.learning_switch", str(port)], cwd=ROOT, stderr=subprocess.DEVNULL
    ) as controller:
        try:
            with running(Lab(tmp_path, [binary(agent)], control=f"--connect=tcp:127.0.0.1:{port}")) as started:
                yield started
        finally:
            controller.kill()


def wait_until_connected(lab: Lab) -> None:
    """Broadcasts from port 3 until one comes out at port 4: before, there is nobody to flood it."""
    for _ in range(int(STARTING / 0.2)):
        with contextlib.suppress(OSError):  # no port yet, or no controller
            lab.ports[3].send(BROADCAST)
            lab.ports[4].next(0.2)
            return
        time.sleep(0.02)
    pytest.fail("the controller never answered")


def next_frame(port: Port) -> bytes:
    """The next frame that is not one of the broadcasts, of which some may come late."""
    while (frame := port.next()) == BROADCAST:
        pass
    return frame


def test_a_packet_crosses(lab: Lab) -> None:
    wait_until_connected(lab)
    question, answer = TWO + ONE + REST, ONE + TWO + REST
    lab.ports[1].send(question)
    assert next_frame(lab.ports[2]) == question  # flooded
    assert next_frame(lab.ports[3]) == question
    lab.ports[2].send(answer)
    assert next_frame(lab.ports[1]) == answer
    for _ in range(3):  # not flooded any more: the controller has learnt, and soon there is a flow
        lab.ports[1].send(question)
        assert next_frame(lab.ports[2]) == question
    assert set(lab.received().get(3, [])) <= {BROADCAST}
