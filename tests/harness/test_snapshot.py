"""Freezing live agents: which thread will run, what is read of the process, and that it goes on unharmed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.frozen import PAGE, Snapshot
from harness.snapshot import capture, freeze
from soft.errors import SoftError
from soft.launch.agent import Agent, start
from soft.launch.find import Target
from soft.launch.process import snapshot_environment
from tests.harness.small_agent import ECHO_REPLY, ECHO_REQUEST, MARK, build, target

CALLS = {"read": 0, "poll": 7, "select": 270, "nanosleep": 230, "recvfrom": 45, "epoll_wait": 232, "ppoll": 271}


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("agent"))


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Neither a file nor a process of an agent is there afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert os.listdir(tmp_path) == []
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).stdout == b""


@contextlib.contextmanager
def running(agent: Target, ports: int = 2) -> Iterator[Agent]:
    with start(agent.profile, agent.binary, ports, environment=snapshot_environment()) as started:
        started.handshake()
        yield started


def answers(agent: Agent) -> bool:
    agent.send(ECHO_REQUEST)
    return bytes(agent.collect(2.0).control) == ECHO_REPLY


def marked(snapshot: Snapshot) -> list[str]:
    return [
        region.name
        for region in snapshot.regions
        if region.content is not None and MARK in region.content and "w" in region.permissions
    ]


@pytest.mark.parametrize(
    ("way", "call"),
    [
        ("read", "recvfrom"),
        ("poll", "poll"),
        ("ppoll", "ppoll"),
        ("select", "select"),
        ("epoll", "epoll_wait"),
        ("sleep", "nanosleep"),
    ],
)
def test_an_agent_is_frozen_in_its_wait_and_goes_on(binary: Path, way: str, call: str) -> None:
    with running(target(binary, way)) as agent:
        snapshot = capture(agent)
        assert answers(agent)
    assert snapshot.thread.in_syscall == CALLS[call]
    assert snapshot.thread.registers["orig_rax"] == CALLS[call]
    assert snapshot.read(snapshot.thread.registers["rip"] - 2, 2) == b"\x0f\x05"
    assert (snapshot.main, snapshot.ports, snapshot.port_framing) == (snapshot.pid, 2, "datagram")


def test_the_thread_that_serves_the_controller_is_found_among_others(binary: Path) -> None:
    with running(target(binary, "threads")) as agent:
        snapshot = capture(agent)
        assert answers(agent)
    assert snapshot.thread.name == "server"
    assert snapshot.main != snapshot.pid
    assert len(snapshot.threads) == 4
    assert all(thread.in_syscall is not None for thread in snapshot.threads)
    assert len({thread.registers["fs_base"] for thread in snapshot.threads}) == 4


def test_an_agent_that_never_sleeps_is_stopped_when_it_looks(binary: Path) -> None:
    with running(target(binary, "busy", sleeps=False, settle_ms=20)) as agent:
        snapshot = capture(agent)
        assert answers(agent)
    assert snapshot.thread.in_syscall in (CALLS["poll"], CALLS["recvfrom"])
    assert snapshot.read(snapshot.thread.registers["rip"] - 2, 2) == b"\x0f\x05"
    assert snapshot.signals.actions[signal.SIGALRM].handler


def test_a_poll_that_was_interrupted_before_is_a_poll_again(binary: Path) -> None:
    with running(target(binary, "poll")) as agent:
        capture(agent)
        again = capture(agent)
    assert (again.thread.in_syscall, again.thread.registers["orig_rax"]) == (CALLS["poll"], CALLS["poll"])


def test_memory(binary: Path) -> None:
    with running(target(binary, "poll")) as agent:
        snapshot = capture(agent)
    assert marked(snapshot) == [str(binary)]
    for region in snapshot.regions:
        found = snapshot.page(region.start // PAGE)
        if region.content is None:
            assert found is None
        else:
            assert len(region.content) == region.end - region.start
            assert found == (region.content[:PAGE], region.permissions[:3].replace("-", ""))
    assert snapshot.page(0) is None
    assert {region.name for region in snapshot.regions if region.content is None} >= {"[vvar]", "[vsyscall]"}
    heap = next(region for region in snapshot.regions if region.name == "[heap]")
    assert heap.start < snapshot.brk <= heap.end


def test_the_stack_may_grow_as_far_as_the_process_may(binary: Path) -> None:
    with running(target(binary, "poll")) as agent:
        snapshot = capture(agent)
    stack = next(region for region in snapshot.regions if region.name == "[stack]")
    assert stack.end - stack.start == 8 << 20  # the limit that processes have by default
    assert snapshot.page(stack.start // PAGE) == (bytes(PAGE), "rw")
    assert snapshot.page(stack.start // PAGE - 1) is None


def test_signals_and_clocks(binary: Path) -> None:
    with running(target(binary, "ppoll")) as agent:
        snapshot = capture(agent)
    signals = snapshot.signals
    # ppoll has emptied the mask for as long as it waits; what counts is the one outside of it.
    assert signals.blocked == 1 << signal.SIGUSR1 - 1
    assert signals.ignored >> signal.SIGPIPE - 1 & 1
    assert signals.alarm_interval_ns == 7_000_000_000
    assert 900_000_000_000 < signals.alarm_ns <= 1_000_000_000_000
    handler = signals.actions[signal.SIGALRM].handler
    region = snapshot.region_at(handler)
    assert region is not None
    assert (region.name, region.permissions) == (str(binary), "r-xp")
    assert snapshot.boottime_ns >= snapshot.monotonic_ns > 0


def test_floating_point_registers(binary: Path) -> None:
    with running(target(binary, "poll")) as agent:
        snapshot = capture(agent)
    assert (snapshot.thread.mxcsr & 0xFFC0, snapshot.thread.fcw) == (0x1F80, 0x37F)  # as every process begins
    assert len(snapshot.thread.xmm) == 16


@pytest.mark.usefixtures("nothing_left")
def test_freeze(binary: Path) -> None:
    snapshot = freeze(target(binary, "epoll"), ports=3)
    assert (snapshot.label, snapshot.ports, snapshot.handshake, snapshot.sent_before) == ("small_agent", 3, True, b"")
    assert sorted(each.port for each in snapshot.descriptors.values() if each.port is not None) == [1, 2, 3]


@pytest.mark.usefixtures("nothing_left")
def test_freeze_before_the_handshake_keeps_what_the_agent_has_said(binary: Path) -> None:
    snapshot = freeze(target(binary, "poll"), ports=0, handshake=False)
    assert snapshot.sent_before == b"\x01\x00\x00\x08hell"
    assert not snapshot.handshake


@pytest.mark.usefixtures("nothing_left")
def test_with_interfaces_as_ports_and_tcp(binary: Path) -> None:
    snapshot = freeze(target(binary, "epoll", address="tcp", ports="veth"), ports=2)
    ports = {each.port: each for each in snapshot.descriptors.values() if each.kind == "port"}
    assert set(ports) == {1, 2}
    assert not ports[1].stream
    assert (snapshot.port_framing, snapshot.control.stream) == ("packet", True)


@pytest.mark.usefixtures("nothing_left")
def test_open_vswitch() -> None:
    """A production switch: many threads, dummy ports, stripped, from the distribution."""
    from soft.launch.find import find

    snapshot = freeze(find("ovs-vswitchd"), ports=2)
    assert snapshot.main == snapshot.pid
    assert len(snapshot.threads) > 3
    assert sorted(each.port for each in snapshot.descriptors.values() if each.port is not None) == [1, 2]
    assert snapshot.port_framing == "length-prefixed"


# ------------------------------------------------------------------------------------------ what can go wrong


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("exit", r"The agent ended \(exit 3\) before .* Its last words: cannot find my configuration"),
        ("idle", r"The agent did not connect to its controller at unix:.* within 300 ms\."),
        ("leave", r"The agent ended \(exit 3\) while its .* was awaited\."),
        ("openflow13", r"The agent speaks OpenFlow 1\.3, not OpenFlow 1\.0\."),
    ],
)
def test_an_agent_that_cannot_be_talked_to(binary: Path, way: str, sentence: str) -> None:
    timeout = 300 if way == "idle" else 5000
    with pytest.raises(SoftError, match=sentence):
        freeze(target(binary, way, start_timeout_ms=timeout), ports=1)


@pytest.mark.usefixtures("nothing_left")
def test_an_agent_that_leaves_without_a_handshake(binary: Path) -> None:
    with pytest.raises(SoftError, match=r"^The agent .* before its controller had said a word\."):
        freeze(target(binary, "leave"), ports=1, handshake=False)


@pytest.mark.usefixtures("nothing_left")
def test_an_agent_none_of_whose_threads_waits_for_the_controller(
    binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.snapshot._PATIENCE", 0.4)
    with pytest.raises(SoftError, match=r"None of the agent's threads \(4\) came to wait for the controller"):
        freeze(target(binary, "stuck"), ports=0)


def test_a_binary_that_is_none(binary: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(SoftError, match=r"script is not an ELF file: only a compiled agent can be explored\.$"):
        freeze(target(script, "poll"), ports=1)
    other = tmp_path / "other"
    head = bytearray(binary.read_bytes()[:64])
    head[18:20] = b"\xb7\x00"
    other.write_bytes(head)
    with pytest.raises(SoftError, match=r"not a program for 64-bit x86 \(its ELF machine number is 183\)\.$"):
        freeze(target(other, "poll"), ports=1)
    with pytest.raises(SoftError, match=r"cannot be read: No such file or directory\.$"):
        freeze(target(tmp_path / "missing", "poll"), ports=1)


@pytest.mark.usefixtures("nothing_left")
def test_no_permission_to_trace(binary: Path) -> None:
    """Another tracer holds the agent, which is how every refusal looks."""
    program = (
        "import ctypes, sys\n"
        "ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None)\n"
        "print('traced', flush=True)\n"
        "sys.stdin.read()"
    )
    with (
        running(target(binary, "poll")) as agent,
        subprocess.Popen(
            [sys.executable, "-c", program, str(agent.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as tracer,
    ):
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"traced\n"
        with pytest.raises(SoftError, match=r"^Tracing the agent \(process \d+\) is not permitted: another tracer"):
            capture(agent)
        tracer.communicate()
        # Nothing is wrong with the agent, and once it is free it can be frozen.
        assert capture(agent).thread.in_syscall == CALLS["poll"]


def test_an_agent_that_has_ended(binary: Path) -> None:
    with running(target(binary, "poll")) as agent:
        os.kill(agent.pid, signal.SIGKILL)
        agent.collect(1.0)
        with pytest.raises(SoftError, match=r"^The agent ended before it could be frozen\.$"):
            capture(agent)


def test_a_signal_that_comes_while_it_is_frozen_is_not_lost(binary: Path) -> None:
    """Asked for its handlers, the agent makes system calls for us; a signal must wait until it is free again."""
    with running(target(binary, "poll")) as agent:
        for _ in range(20):
            os.kill(agent.pid, signal.SIGALRM)
            snapshot = capture(agent)
        assert answers(agent)
        snapshot = capture(agent)
    memory = next(r.content for r in snapshot.regions if r.content and MARK in r.content and "w" in r.permissions)
    at = memory.index(MARK) + len(MARK) + 8
    alarms = ctypes.c_uint64.from_buffer_copy(memory[at : at + 8]).value
    assert 0 < alarms <= 20 * signal.SIGALRM
