"""Frames in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.openflow.decode_packet import describe_packet
from soft.scenarios.loader import parse
from soft.scenarios.model import Probe
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Payload

pieces = st.binary(min_size=1, max_size=20) | st.sampled_from([t.var("x", 16), t.var("y", 48)])


def sent(step: str) -> Payload:
    """The frame that a scenario sends."""
    scenario = parse(f'name = "x"\nsummary = "x"\nopenflow = "1.0"\n[[step]]\n{step}\n', "x.toml")
    (only,) = scenario.steps
    assert isinstance(only, Probe)
    return only.payload


@pytest.mark.parametrize(
    ("packet", "line"),
    [
        ('"tcp"', "TCP 10.0.0.1:1025 → 10.0.0.2:80, 60 bytes"),
        ('{ kind = "tcp", tp_dst = "symbolic" }', "TCP 10.0.0.1:1025 → 10.0.0.2:p0.tp_dst, 60 bytes"),
        ('{ kind = "tcp", nw_tos = 4 }', "TCP 10.0.0.1:1025 → 10.0.0.2:80, TOS 4, 60 bytes"),
        ('{ kind = "vlan_tcp", dl_vlan = 5, dl_vlan_pcp = 0 }', "TCP 10.0.0.1:1025 → 10.0.0.2:80, VLAN 5, 64 bytes"),
        ('"udp"', "UDP 10.0.0.1:"),
        ('"icmp"', "ICMP 10.0.0.1 → 10.0.0.2, type 8 code 0, 60 bytes"),
        ('"arp"', "ARP request 10.0.0.1 → 10.0.0.2"),
        ('"eth"', "Ethernet type 0x88b5, 60 bytes"),
        ('{ kind = "eth", dl_src = "02:00:00:00:00:99" }', "02:00:00:00:00:99 → 02:00:00:00:0a:02"),
    ],
)
def test_packets(packet: str, line: str) -> None:
    assert line in describe_packet(sent(f"probe = 1\npacket = {packet}"))


def test_odd_frames() -> None:
    assert describe_packet(Payload.of(b"short")) == "frame fragment, 5 bytes"
    assert describe_packet(Payload.of(bytes(60))).startswith("802.3 frame, length field 0, ")
    assert "IP version 6" in describe_packet(Payload.of(bytes(12) + b"\x08\0" + b"\x65" + bytes(40)))


@given(st.lists(pieces, max_size=12))
def test_any_frame_has_one_line(pieces: list[bytes | Term]) -> None:
    assert "\n" not in describe_packet(Payload(tuple(pieces)))
