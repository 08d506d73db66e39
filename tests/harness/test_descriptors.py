"""Labels of descriptors, from the kernel's answers about a live agent that has one of each kind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.descriptors import descriptors_of, peer_inode
from harness.frozen import KINDS, Descriptor
from soft.errors import SoftError
from soft.launch.agent import Agent, start
from tests.harness.small_agent import build, target

PORTS = 2


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("agent"))


@pytest.fixture(scope="module")
def agent(binary: Path) -> Iterator[Agent]:
    described = target(binary, "poll")
    with start(described.profile, described.binary, PORTS) as started:
        started.handshake()
        yield started


@pytest.fixture(scope="module")
def found(agent: Agent) -> Mapping[int, Descriptor]:
    return descriptors_of(agent.pid, agent.control, [port.describe for port in agent.ports.values()])


def only(found: Mapping[int, Descriptor], kind: str) -> Descriptor:
    (one,) = [each for each in found.values() if each.kind == kind]
    return one


def test_every_descriptor_has_a_kind(agent: Agent, found: Mapping[int, Descriptor]) -> None:
    assert set(found) == set(map(int, os.listdir(f"/proc/{agent.pid}/fd")))
    assert {each.kind for each in found.values()} == KINDS


def test_the_control_channel_is_the_other_end_of_ours(agent: Agent, found: Mapping[int, Descriptor]) -> None:
    control = only(found, "control")
    assert control.link == f"socket:[{peer_inode(agent.control)}]"
    assert control.stream
    assert control.port is None


def test_ports_are_known_by_their_path(found: Mapping[int, Descriptor]) -> None:
    ports = [each for each in found.values() if each.kind == "port"]
    assert [each.port for each in ports] == [1, 2]
    assert all(each.flags & os.O_NONBLOCK and not each.stream for each in ports)
    assert only(found, "control").flags & os.O_NONBLOCK == 0


def test_what_the_kernel_tells_of_each(found: Mapping[int, Descriptor]) -> None:
    timer = only(found, "timerfd")
    assert (timer.detail["clockid"], timer.detail["it_interval"]) == (1, 3_000_000_250)
    left = timer.detail["it_value"]
    assert isinstance(left, int)
    assert 900_000_000_000 < left <= 1_000_000_000_000
    assert dict(only(found, "eventfd").detail) == {"count": 5, "semaphore": 0}
    assert only(found, "signalfd").detail["mask"] == 1 << signal.SIGUSR2 - 1
    watched = only(found, "epoll").detail["watched"]
    assert isinstance(watched, tuple)
    # epoll's data is what the agent gave, of which it used only a half for the control channel.
    by_number = {number: (events, data & 0xFFFFFFFF) for number, events, data in watched}
    assert set(by_number) == {timer.number, only(found, "control").number}
    assert by_number[timer.number][1] == 0x55667788
    assert by_number[only(found, "control").number][1] == 42
    positions = [each.detail["position"] for each in found.values() if each.kind == "file"]
    assert 11 in positions


def test_what_waits_in_a_pipe_is_seen_and_stays_there(agent: Agent, found: Mapping[int, Descriptor]) -> None:
    again = descriptors_of(agent.pid, agent.control, [])
    for each in (found, again):
        ends = {one.detail["end"]: one for one in each.values() if one.kind == "pipe"}
        assert set(ends) == {"read", "write"}
        assert ends["read"].detail["inode"] == ends["write"].detail["inode"]
        assert (ends["read"].detail["unread"], ends["read"].detail["pending"]) == (3, b"abc".hex())


def test_two_connections_to_the_same_address(tmp_path: Path) -> None:
    """Only one of them is the other end of ours."""
    program = (
        "import socket, sys\n"
        "ends = [socket.socket(socket.AF_UNIX) for _ in range(2)]\n"
        "for end in ends: end.connect(sys.argv[1])\n"
        "sys.stdin.read()"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control"))
        listener.listen(2)
        command = [sys.executable, "-c", program, str(tmp_path / "control")]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
            (first, _), (second, _) = listener.accept(), listener.accept()
            with first, second:
                controls = [only(descriptors_of(other.pid, end, []), "control") for end in (first, second)]
                assert [each.link for each in controls] == [f"socket:[{peer_inode(end)}]" for end in (first, second)]
                assert controls[0].link != controls[1].link
            other.communicate()


def test_a_process_without_the_control_channel() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with pytest.raises(SoftError, match=r"descriptors is its end of the control channel; if another process"):
            descriptors_of(other.pid, ours, [])
        other.communicate()
    with ours, pytest.raises(SoftError, match=r"^The agent ended before it could be frozen\.$"):
        descriptors_of(other.pid, socket.socketpair()[0], [])
