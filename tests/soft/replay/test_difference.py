"""Where two traces part."""

from __future__ import annotations

import pytest

from soft.replay.difference import Difference, first_difference, kind_of
from soft.trace import Close, Crash, Event, Message, Packet, Payload, Trace


def message(step: int, data: bytes) -> Message:
    return Message(step, Payload.of(data))


def packet(port: int, data: bytes) -> Packet:
    return Packet(0, port, Payload.of(data))


ERROR = message(0, b"\1\1\0\4")


@pytest.mark.parametrize("trace", [(), (ERROR,), (ERROR, packet(1, b"x"), Crash(1, "SIGSEGV"))])
def test_equal_traces_do_not_part(trace: Trace) -> None:
    assert first_difference(trace, trace) is None


@pytest.mark.parametrize(
    ("expected", "seen", "event", "byte"),
    [
        ((ERROR,), (), 0, None),
        ((), (ERROR,), 0, None),
        ((ERROR, Close(0)), (ERROR, Crash(0, "exit 0")), 1, None),
        ((ERROR,), (message(0, b"\1\1\0\5"),), 0, 3),
        ((ERROR,), (message(0, b"\1\1\0\4\0"),), 0, 4),
        ((ERROR,), (message(1, b"\1\1\0\5"),), 0, None),
        ((ERROR,), (message(0, b"\1\3\0\4"),), 0, None),
        ((packet(1, b"ab"),), (packet(1, b"aa"),), 0, 1),
        ((packet(1, b"ab"),), (packet(2, b"aa"),), 0, None),
        ((packet(1, b"ab"),), (message(0, b"ab"),), 0, None),
    ],
)
def test_the_first_event_and_byte(expected: Trace, seen: Trace, event: int, byte: int | None) -> None:
    def at(trace: Trace) -> Event | None:
        return trace[event] if event < len(trace) else None

    assert first_difference(expected, seen) == Difference(event, at(expected), at(seen), byte)


def test_events_that_look_alike() -> None:
    assert kind_of(message(0, b"\1\1\0\4")) == kind_of(message(0, b"\1\1\0\7xyz"))
    assert kind_of(message(0, b"\1\1")) != kind_of(message(0, b"\1\2"))
    assert kind_of(message(0, b"\1")) != kind_of(None)
    assert kind_of(packet(1, b"a")) == kind_of(packet(1, b"b")) != kind_of(packet(2, b"a"))
    assert kind_of(Crash(0, "SIGSEGV")) != kind_of(Crash(0, "SIGABRT"))
