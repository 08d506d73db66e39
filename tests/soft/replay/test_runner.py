"""A scenario on a live agent: every kind of event, in its step."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.agent import start
from soft.replay.runner import Run, opening, play, run
from soft.scenarios.loader import parse
from soft.scenarios.model import Probe
from soft.trace import Close, Crash, Flood, Hang, Message, Packet, Payload, Trace
from tests.soft.launch.lab import processes_of, target


def echo(order: str, xid: int) -> str:
    return f'[[step]]\nsend = "echo_request"\nxid = {xid}\ndata = "{order.encode().hex()}"\n'


PROBE = '[[step]]\nprobe = 1\npacket = "eth"\n'


def play_text(*steps: str, handshake: bool = True, **options: str) -> Run:
    head = f'name = "live"\nsummary = "x"\nopenflow = "1.0"\nhandshake = {str(handshake).lower()}\n'
    scenario = parse(head + "".join(steps), "live.toml")
    return run(target(**options), scenario, {}, patience=1.0)


def reply(order: bytes, xid: int) -> Payload:
    return Payload.of(struct.pack("!BBHI", 1, 3, 8 + len(order), xid) + order)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Every run has its files in one place, which is empty afterwards, and no process of it lives."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_messages_and_packets_belong_to_their_steps() -> None:
    done = play_text(echo("one", 1), PROBE, echo("two", 2))
    probe = done.steps[1]
    assert isinstance(probe, Probe)
    expected: Trace = (
        Message(0, reply(b"one", 1)),
        Packet(1, 2, probe.payload),
        Message(2, reply(b"two", 2)),
    )
    assert done.trace == expected
    assert sorted(map(str, done.raw)) == sorted(map(str, expected))
    assert len(done.steps) == 3


def test_an_agent_that_sleeps_over_its_answer_needs_a_settle_time() -> None:
    assert play_text(echo("late", 1), echo("next", 2), extra="settle_ms = 250").trace == (
        Message(0, reply(b"late", 1)),
        Message(1, reply(b"next", 2)),
    )


def test_an_answer_in_two_writes_is_one_message_and_a_fragment_is_kept() -> None:
    fragment = reply(b"split", 1).slice(0, 9)
    assert play_text(echo("split", 1)).trace == (Message(0, reply(b"split", 1)), Message(0, fragment))


@pytest.mark.parametrize(("order", "reason"), [("crash", "SIGSEGV"), ("exit", "exit 3")])
def test_the_end_of_the_process_is_an_event_and_the_last(order: str, reason: str) -> None:
    trace = play_text(echo("before", 1), echo(order, 2), echo("after", 3)).trace
    assert trace[0] == Message(0, reply(b"before", 1))
    assert trace[-1] == Crash(1, reason)
    assert not any(isinstance(event, Close) for event in trace)


def test_a_closed_control_channel_is_an_event_and_the_run_goes_on() -> None:
    done = play_text(echo("close", 1), echo("unheard", 2))
    assert done.trace == (Message(0, reply(b"close", 1)), Close(0))


def test_an_agent_that_does_not_come_to_rest_hangs() -> None:
    assert play_text(echo("hang", 1), PROBE).trace == (Hang(0),)


def test_an_agent_that_sends_without_end_floods() -> None:
    done = play_text(echo("flood", 1), PROBE)
    assert done.trace == (Flood(0),)
    assert any(isinstance(event, Message) for event in done.raw)


def test_what_an_agent_says_before_the_first_step_counts_only_without_handshake() -> None:
    done = play_text(echo("one", 7), handshake=False)
    assert done.trace == (Message(0, Payload.of(bytes.fromhex("0100000800000000"))), Message(0, reply(b"one", 7)))


def test_a_child_that_left_the_session_is_ended_too() -> None:
    assert len(play_text(echo("child", 1)).trace) == 1


def test_one_agent_can_play_several_inputs() -> None:
    scenario = parse(f'name = "live"\nsummary = "x"\nopenflow = "1.0"\n{echo("one", 1)}', "live.toml")
    chosen = target()
    with start(chosen.profile, chosen.binary, scenario.ports) as agent:
        assert opening(agent, scenario).quiet
        for _ in range(3):
            assert play(agent, scenario.bind({})) == (Message(0, reply(b"one", 1)),)


def test_time_passes_in_a_wait() -> None:
    assert play_text(echo("one", 1), "[[step]]\nwait = 30\n", echo("two", 2)).trace == (
        Message(0, reply(b"one", 1)),
        Message(2, reply(b"two", 2)),
    )


def test_a_probe_into_a_port_that_the_profile_does_not_give() -> None:
    with pytest.raises(SoftError, match="probes port 1, which the agent's launch profile does not give"):
        play_text(PROBE, ports="none")
