"""Kinds of behaviour: what makes two ways of differing one, how serious they are, and how they read."""

from __future__ import annotations

import pytest

from soft.crosscheck.behaviour import clauses, first_difference, severity, way_of
from soft.crosscheck.model import Difference
from soft.trace import Close, Crash, Message, Packet, Payload, Trace
from tests.soft.crosscheck.agents import CRASH, SILENT, error, forward, scenario

PACKET_IN: Trace = (Message(0, Payload.of(bytes.fromhex("010a001400000000ffffffff000200010100aabb"))),)
ECHO: Trace = (Message(0, Payload.of(bytes.fromhex("0103000800000001"))),)
FLOOD: Trace = tuple(Packet(0, port, Payload.of(b"\2" * 14)) for port in (1, 2, 3))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (CRASH, SILENT, "crash"),
        ((Close(0),), error(2, 4), "crash"),
        ((*forward(1), Crash(0, "SIGSEGV")), CRASH, "forwarding"),
        (forward(1), SILENT, "forwarding"),
        (forward(1), forward(2), "forwarding"),
        (PACKET_IN, error(2, 4), "forwarding"),
        (error(2, 4), SILENT, "lost error"),
        (error(2, 4), ECHO, "lost error"),
        (ECHO, SILENT, "lost message"),
        (error(2, 4), error(2, 5), "different error"),
        (forward(1, b"\1"), forward(1, b"\2"), "content"),
    ],
)
def test_severity(left: Trace, right: Trace, expected: str) -> None:
    assert severity(left, right) == severity(right, left) == expected


def test_what_follows_from_the_cause_makes_no_other_way() -> None:
    assert way_of(error(2, 4), SILENT) == way_of(error(2, 5), SILENT) == way_of(error(2, 4), forward(1))
    assert way_of(forward(1), SILENT) == way_of(FLOOD, SILENT) == way_of(PACKET_IN, SILENT)
    assert way_of(CRASH, error(2, 4)) == way_of(CRASH, forward(1))
    assert way_of((*forward(1), *CRASH), forward(1)) == way_of(CRASH, SILENT)


def test_what_differs_in_kind_is_another_way() -> None:
    ways = [
        way_of(error(2, 4), error(2, 5)),
        way_of(error(2, 4), SILENT),
        way_of(SILENT, error(2, 4)),
        way_of(forward(1), SILENT),
        way_of(forward(1), forward(2)),
        way_of(forward(1), forward(1, b"\1")),
        way_of(forward(1, b"\1"), forward(1, b"\2")),
        way_of(CRASH, SILENT),
    ]
    assert len(set(ways)) == len(ways)


def test_clauses() -> None:
    scene = scenario()
    assert clauses(forward(2), SILENT, scene) == ("forwards the packet to port 2", "is silent")
    assert clauses(FLOOD, PACKET_IN, scene) == (
        "forwards the packet to ports 1, 2 and 3",
        "sends the packet to the controller (action)",
    )
    both = (*forward(1), Close(0))
    assert clauses(forward(1), both, scene) == ("does nothing more", "closes the connection")


ETHERNET = bytes.fromhex("0200000000010200000000028100")


def packet_in(*, buffer_id: str = "ffffffff", quoted: bytes = b"") -> Trace:
    size = (18 + len(quoted)).to_bytes(2, "big").hex()
    return (Message(0, Payload.of(bytes.fromhex(f"010a{size}00000000{buffer_id}003c00010000") + quoted)),)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (
            packet_in(),
            packet_in(buffer_id="00000000"),
            (
                "sends the packet to the controller (no_match), unbuffered",
                "sends the packet to the controller (no_match), buffered",
            ),
        ),
        (
            packet_in(),
            packet_in(quoted=b"\1"),
            (
                "sends the packet to the controller (no_match), quoting nothing of it",
                "sends the packet to the controller (no_match), quoting 1 byte of it",
            ),
        ),
        (
            packet_in(quoted=ETHERNET),
            packet_in(quoted=ETHERNET.replace(b"\1", b"\3")),
            (
                "sends the packet to the controller (no_match) as "
                "Ethernet type 0x8100, 02:00:00:00:00:02 → 02:00:00:00:00:01, 14 bytes",
                "sends the packet to the controller (no_match) as "
                "Ethernet type 0x8100, 02:00:00:00:00:02 → 02:00:00:00:00:03, 14 bytes",
            ),
        ),
        (
            (Message(0, Payload.of(bytes.fromhex("0108000c0000000100000080"))),),
            (Message(0, Payload.of(bytes.fromhex("0108000c0000000100000000"))),),
            ("sends get_config_reply with miss_send_len 128", "sends get_config_reply with miss_send_len 0"),
        ),
        (
            (Message(0, Payload.of(bytes.fromhex("0103000a00000001aabb"))),),
            (Message(0, Payload.of(bytes.fromhex("0103000a00000001aacc"))),),
            ("sends echo_reply with bb from byte 9 on", "sends echo_reply with cc from byte 9 on"),
        ),
    ],
)
def test_where_the_same_message_differs(left: Trace, right: Trace, expected: tuple[str, str]) -> None:
    assert clauses(left, right, scenario()) == expected


def test_the_first_difference() -> None:
    assert first_difference(forward(1, b"\1"), forward(1, b"\2")) == Difference(0, 12)
    assert first_difference(forward(1), (*forward(1), Close(0))) == Difference(1)
    assert first_difference(forward(1), forward(2)) == Difference(0)
