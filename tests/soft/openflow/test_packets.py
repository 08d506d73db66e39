"""The probe packets: scapy reads them, and finds nothing to correct."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.openflow.packets import FRAMES, fill_checksums, internet_checksum
from soft.scenarios import loader
from soft.scenarios.model import Probe

LAYERS = {
    "tcp": ["Ethernet", "IP", "TCP", "Raw"],
    "udp": ["Ethernet", "IP", "UDP", "Raw"],
    "icmp": ["Ethernet", "IP", "ICMP", "Raw"],
    "arp": ["Ethernet", "ARP", "Padding"],
    "eth": ["Ethernet", "Raw"],
    "vlan_tcp": ["Ethernet", "802.1Q", "IP", "TCP", "Raw"],
}


def frame(packet: str) -> bytes:
    (probe,) = loader.parse(f'name = "x"\n[[step]]\nprobe = 1\npacket = {packet}\n', "test").bind({})
    assert isinstance(probe, Probe)
    data = probe.payload.concrete()
    assert data is not None
    return data


def read(data: bytes) -> Any:
    import scapy.layers.inet  # what may follow Ethernet
    from scapy.layers.l2 import Ether

    assert scapy.layers.inet
    return Ether(data)


def rebuilt(data: bytes) -> bytes:
    """The frame with lengths and checksums as scapy would have them."""
    packet = read(data)
    for layer in ("IP", "TCP", "UDP", "ICMP"):
        for field in ("chksum", "len", "ihl", "dataofs"):
            if layer in packet and field in packet[layer].fields:
                delattr(packet[layer], field)
    return bytes(packet)


def test_every_kind_is_known_here() -> None:
    assert set(LAYERS) == set(FRAMES)


@pytest.mark.parametrize("kind", FRAMES)
def test_scapy_agrees(kind: str) -> None:
    data = frame(f'"{kind}"')
    packet = read(data)
    assert [layer().name for layer in packet.layers()] == LAYERS[kind]
    assert (packet.src, packet.dst) == ("02:00:00:00:0a:01", "02:00:00:00:0a:02")
    assert rebuilt(data) == data


def test_scapy_would_see_a_wrong_checksum() -> None:
    data = bytearray(frame('"tcp"'))
    data[50] ^= 1
    assert rebuilt(bytes(data)) != bytes(data)


@pytest.mark.parametrize("kind", FRAMES)
def test_no_device_pads_them(kind: str) -> None:
    assert len(frame(f'"{kind}"')) == (64 if kind == "vlan_tcp" else 60)


def test_checksums_follow_the_values_that_a_scenario_gives() -> None:
    data = frame('{ kind = "udp", nw_src = "192.168.1.1", tp_dst = 67, nw_tos = 8 }')
    packet = read(data)
    assert (packet["IP"].src, packet["IP"].tos, packet["UDP"].dport) == ("192.168.1.1", 8, 67)
    assert rebuilt(data) == data
    assert data != frame('"udp"')


def test_a_tag_has_its_fields() -> None:
    tag = read(frame('{ kind = "vlan_tcp", dl_vlan = 4095, dl_vlan_pcp = 7 }'))["Dot1Q"]
    assert (tag.vlan, tag.prio, tag.dei) == (4095, 7, 0)


def test_a_udp_checksum_is_never_zero() -> None:
    udp = FRAMES["udp"]
    data = bytearray(frame('"udp"'))
    data[24:26] = data[40:42] = b"\0\0"
    # The source port that makes the sum of all words 0xffff.
    right = int.from_bytes(fill_checksums(udp, bytes(data))[40:42], "big")
    port = int.from_bytes(data[34:36], "big") + right
    data[34:36] = ((port & 0xFFFF) + (port >> 16)).to_bytes(2, "big")
    assert fill_checksums(udp, bytes(data))[40:42] == b"\xff\xff"


@given(st.binary(min_size=2, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_data_with_its_checksum_sums_to_zero(data: bytes) -> None:
    assert internet_checksum(data + internet_checksum(data).to_bytes(2, "big")) == 0
