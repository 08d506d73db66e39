"""An agent from its start to its end: every way to meet it, and what is said when it does not come up."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soft.errors import SoftError
from soft.launch.agent import MAX_PORTS, start
from tests.soft.launch.lab import PYTHON, processes_of, profile

ECHO = bytes.fromhex("0102000a00000009") + b"hi"
REPLY = bytes.fromhex("0103000a00000009") + b"hi"
FRAME = bytes.fromhex("020000000a02020000000a0188b5") + bytes(range(46))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    descriptors = len(os.listdir("/proc/self/fd"))
    yield
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("connection", ["connect", "listen"])
@pytest.mark.parametrize("address", ["unix", "tcp"])
@pytest.mark.parametrize("ports", ["unix-datagram", "veth", "tap"])
def test_every_way_to_meet(connection: str, address: str, ports: str) -> None:
    with start(profile(connection=connection, address=address, ports=ports), PYTHON, 2) as agent:
        assert agent.handshake()[1] == 6
        agent.send(ECHO)
        assert agent.collect(2).control == REPLY
        agent.ports[1].send(FRAME)
        burst = agent.collect(2)
        assert burst.packets == [(2, FRAME)]
        assert burst.quiet


def test_ports_as_open_vswitch_has_them() -> None:
    with start(profile(ports="ovs-dummy"), PYTHON, 3) as agent:
        agent.handshake()
        for number in (1, 2, 3):
            agent.ports[number].send(FRAME)
            assert agent.collect(2).packets == [(number % 3 + 1, FRAME)]


def test_echo_requests_of_the_agent_are_answered_in_the_handshake() -> None:
    with start(profile(greet="echo"), PYTHON, 1) as agent:
        assert agent.handshake()[1] == 6


def test_an_agent_that_oversleeps_its_controller_is_nudged() -> None:
    with start(profile(greet="drowsy", extra='nudge = "bell"'), PYTHON, 1, nudging=True) as agent:
        assert agent.handshake()[1] == 6
        agent.send(ECHO)
        assert agent.collect(2).control == REPLY


def test_a_fixed_tcp_port_in_a_namespace_of_its_own() -> None:
    chosen = profile(address="tcp:6633", extra="namespace = true")
    with start(chosen, PYTHON, 1) as first, start(chosen, PYTHON, 1) as second:
        first.handshake()
        second.handshake()


@pytest.mark.parametrize(
    ("greet", "sentence"),
    [
        ("die", r"ended \(exit 1\) before it came to connect to its controller\. Its last words: .*no licence found"),
        ("mute", "sent no hello in OpenFlow 1.0 within 400 ms"),
        ("refuse", "refused the handshake with error type 1, code 5"),
        ("old", "speaks OpenFlow version 0x00, not OpenFlow 1.0"),
    ],
)
def test_an_agent_that_does_not_come_up(greet: str, sentence: str) -> None:
    chosen = profile(greet=greet, extra="start_timeout_ms = 400")
    with pytest.raises(SoftError, match=sentence), start(chosen, PYTHON, 1) as agent:
        agent.handshake()


def test_an_agent_that_never_connects() -> None:
    chosen = profile(extra="start_timeout_ms = 200")
    silent = msgspec.structs.replace(chosen, command=("{binary}", "-c", "import time; time.sleep(60)"))
    with (
        pytest.raises(SoftError, match=r"did not connect to its controller at unix:.* within 200 ms"),
        start(silent, PYTHON, 1) as agent,
    ):
        agent.handshake()


def test_a_command_that_does_not_exist() -> None:
    broken = msgspec.structs.replace(profile(), command=("no-such-command",))
    with pytest.raises(SoftError, match="`no-such-command` was not found"), start(broken, PYTHON, 1):
        pass


def test_too_many_ports() -> None:
    with pytest.raises(SoftError, match=f"0 to {MAX_PORTS} ports"), start(profile(), PYTHON, MAX_PORTS + 1):
        pass


def test_interfaces_without_a_namespace_are_refused() -> None:
    chosen = profile(ports="veth", extra="namespace = false")
    with pytest.raises(SoftError, match="need a network namespace"), start(chosen, PYTHON, 1):
        pass


def test_an_error_of_ours_leaves_nothing_either() -> None:
    def fail() -> None:
        with start(profile(), PYTHON, 2) as agent:
            agent.handshake()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_how_it_ended_and_whose_process_it_is() -> None:
    with start(profile(), PYTHON, 1) as agent:
        agent.handshake()
        assert agent.ended() is None
        assert agent.pid in processes_of(agent.directory)
        assert "the fake agent starts" in agent.last_words()
        agent.send(bytes.fromhex("0102000d00000001") + b"crash")
        assert agent.collect(2).ended == "SIGSEGV"
        assert agent.ended() == "SIGSEGV"


def test_a_workdir_of_the_callers_stays(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    with start(profile(extra='files = { "etc/conf" = "{dir} {{dir}}" }'), PYTHON, 1, own) as agent:
        agent.handshake()
        assert (own / "etc" / "conf").read_text() == f"{own} {{dir}}"
    for path in sorted(own.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    own.rmdir()


def test_something_may_happen_before_main() -> None:
    seen: list[str] = []

    def look(pid: int) -> None:
        seen.append(Path(f"/proc/{pid}/comm").read_text().strip())

    with start(profile(), PYTHON, 1, before_main=look, environment={"EXTRA": "1"}) as agent:
        agent.handshake()
        assert seen == [PYTHON.name[:15]]
        assert b"EXTRA=1" in Path(f"/proc/{agent.pid}/environ").read_bytes()


def test_agents_run_side_by_side_in_threads() -> None:
    results: list[bytes] = []

    def work() -> None:
        with start(profile(), PYTHON, 1) as agent:
            agent.handshake()
            agent.send(ECHO)
            results.append(bytes(agent.collect(5).control))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [REPLY] * 4
