"""What an agent sends until it is quiet: the wires alone, without an agent's process."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from soft.launch.exchange import FLOOD_PACKETS, Exchange
from soft.launch.ports import PortPlan, UnixDatagramPort
from soft.launch.quiet import Processes


@dataclass
class Wires:
    exchange: Exchange
    agent: socket.socket
    port: socket.socket
    peer: str
    process: subprocess.Popen[bytes]


@pytest.fixture
def wires(tmp_path: Path) -> Iterator[Wires]:
    """An agent's ends of the wires in our hand, beside a process that sleeps."""
    process = subprocess.Popen(["sleep", "600"])
    pidfd = os.pidfd_open(process.pid)
    ours, theirs = socket.socketpair()
    plan = PortPlan(2, "unix-datagram", tmp_path)
    port = UnixDatagramPort(plan)
    watched = Processes([process.pid])

    def ended() -> str | None:
        return None if process.poll() is None else "ended"

    with ours, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent_port:
        agent_port.bind(str(plan.own_path))
        exchange = Exchange(ours, {2: port}, watched, None, ended, pidfd, settle=0.0)
        yield Wires(exchange, theirs, agent_port, str(plan.peer_path), process)
    process.kill()
    process.wait()
    port.close()
    watched.close()
    os.close(pidfd)


def test_all_that_was_sent_is_there_and_nothing_twice(wires: Wires) -> None:
    wires.agent.sendall(b"words")
    wires.port.sendto(b"frame", wires.peer)
    burst = wires.exchange.collect(5)
    assert (bytes(burst.control), burst.packets, burst.quiet) == (b"words", [(2, b"frame")], True)
    burst = wires.exchange.collect(5)
    assert (bytes(burst.control), burst.packets, burst.quiet) == (b"", [], True)


def test_a_closed_channel_is_said_once(wires: Wires) -> None:
    wires.agent.sendall(b"last")
    wires.agent.close()
    first, second = wires.exchange.collect(5), wires.exchange.collect(5)
    assert (bytes(first.control), first.closed, first.quiet) == (b"last", True, True)
    assert (bytes(second.control), second.closed, second.quiet) == (b"", False, True)


def test_the_end_comes_after_the_last_words(wires: Wires) -> None:
    wires.agent.sendall(b"last")
    wires.process.kill()
    burst = wires.exchange.collect(5)
    assert (bytes(burst.control), burst.ended) == (b"last", "ended")


def test_too_many_packets_are_a_flood(wires: Wires) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            for _ in range(FLOOD_PACKETS + 1000):
                wires.port.sendto(b"x", wires.peer)
        finally:
            os._exit(0)
    burst = wires.exchange.collect(20, at_least=20)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert burst.flooded
    assert len(burst.packets) > FLOOD_PACKETS


def test_a_second_message_over_tcp_does_not_wait_for_an_acknowledgement(wires: Wires) -> None:
    """The kernel of an agent that speaks twice holds the second message back until we have acknowledged the first."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as ours:
        theirs, _ = listener.accept()
        pidfd = os.pidfd_open(wires.process.pid)
        exchange = Exchange(ours, {}, Processes([wires.process.pid]), None, lambda: None, pidfd, settle=0.02)
        with theirs:
            for _ in range(20):
                # A conversation, after which a kernel expects to send its acknowledgements along with answers.
                ours.sendall(b"question")
                theirs.recv(8)
                theirs.sendall(b"one")
                theirs.sendall(b"two")
                assert bytes(exchange.collect(5).control) == b"onetwo"
        os.close(pidfd)
