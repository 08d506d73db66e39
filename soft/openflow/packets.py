"""The packets that scenarios send into ports: one frame of each kind, byte for byte, with correct checksums.

All go from host 10.0.0.1 (02:00:00:00:0a:01) to host 10.0.0.2 (02:00:00:00:0a:02): addresses that no switch port has.
Every frame has 60 bytes, the least that Ethernet allows, so that no device pads it; vlan_tcp has 64, and 60 without its
tag. A checksum is right for the values that the scenario gives; where a field is symbolic, its default takes part in
the checksum, because a checksum that follows the field would be a puzzle for the solver and changes nothing that a
switch looks at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soft.openflow.layout import Element, Field, Pad, size_of
from soft.openflow.openflow10 import ETHERNET_TYPES, IP_PROTOCOLS

SOURCE_MAC = 0x020000000A01
DESTINATION_MAC = 0x020000000A02
SOURCE_IP = 0x0A000001
DESTINATION_IP = 0x0A000002
LOCAL_EXPERIMENT = 0x88B5  # the Ethernet type that IEEE 802 sets aside for experiments: no switch parses what follows


@dataclass(frozen=True, slots=True)
class Checksum:
    """An Internet checksum at byte `at`, over the bytes from `start` to `stop`, perhaps with a pseudo header."""

    at: int
    start: int
    stop: int
    ip_header: int | None = None  # where the IP header starts whose addresses and protocol the pseudo header takes


@dataclass(frozen=True, slots=True)
class Frame:
    """One kind of packet: its elements in order, and the checksums to fill in, in order."""

    summary: str
    elements: tuple[Element, ...]
    checksums: tuple[Checksum, ...] = ()


def _ethernet(dl_type: int, vlan: bool = False) -> tuple[Element, ...]:
    tag: tuple[Element, ...] = ()
    if vlan:
        tag = (Pad(16, 0x8100), Field("dl_vlan_pcp", 3, default=3), Pad(1), Field("dl_vlan", 12, default=100))
    return (
        Field("dl_dst", 48, "mac", DESTINATION_MAC),
        Field("dl_src", 48, "mac", SOURCE_MAC),
        *tag,
        Field("dl_type", 16, default=dl_type, names=ETHERNET_TYPES),
    )


def _ipv4(protocol: int, payload: int) -> tuple[Element, ...]:
    return (
        Pad(8, 0x45),
        Field("nw_tos", 8),
        Pad(16, 20 + payload),
        Pad(16, 1),  # identification
        Field("nw_frag", 16),  # flags and fragment offset
        Field("nw_ttl", 8, default=64),
        Field("nw_proto", 8, default=protocol, names=IP_PROTOCOLS),
        Pad(16),  # checksum
        Field("nw_src", 32, "ipv4", SOURCE_IP),
        Field("nw_dst", 32, "ipv4", DESTINATION_IP),
    )


def _text(text: bytes) -> Pad:
    return Pad(8 * len(text), int.from_bytes(text, "big"))


_TCP = (
    Field("tp_src", 16, default=1025),
    Field("tp_dst", 16, default=80),
    Pad(32, 1),  # sequence number
    Pad(32),
    Pad(8, 0x50),
    Field("tcp_flags", 8, default=0x02),
    Pad(16, 8192),  # window
    Pad(16),  # checksum
    Pad(16),
    _text(b"probe\n"),
)
_UDP = (
    Field("tp_src", 16, default=1025),
    Field("tp_dst", 16, default=53),
    Pad(16, 26),
    Pad(16),  # checksum
    _text(b"a probe by udp...\n"),
)
_ICMP = (
    Field("icmp_type", 8, default=8),
    Field("icmp_code", 8),
    Pad(16),  # checksum
    Pad(16, 1),
    Pad(16, 1),
    _text(b"a probe by icmp..\n"),
)
_ARP = (
    Pad(16, 1),
    Pad(16, 0x0800),
    Pad(8, 6),
    Pad(8, 4),
    Field("arp_op", 16, default=1),
    Field("arp_sha", 48, "mac", SOURCE_MAC),
    Field("nw_src", 32, "ipv4", SOURCE_IP),
    Field("arp_tha", 48, "mac"),
    Field("nw_dst", 32, "ipv4", DESTINATION_IP),
    Pad(144),
)


def _with_ip(summary: str, protocol: int, above: tuple[Element, ...], checksum: int, vlan: bool = False) -> Frame:
    """A frame with an IPv4 packet: `checksum` is where the upper protocol has its own."""
    start = 18 if vlan else 14
    stop = start + 20 + size_of(above)
    pseudo = None if protocol == 1 else start
    return Frame(
        summary,
        (*_ethernet(0x0800, vlan), *_ipv4(protocol, size_of(above)), *above),
        (Checksum(start + 10, start, start + 20), Checksum(start + 20 + checksum, start + 20, stop, pseudo)),
    )


FRAMES: Mapping[str, Frame] = {
    "tcp": _with_ip("TCP SYN, port 1025 to 80", 6, _TCP, 16),
    "udp": _with_ip("UDP, port 1025 to 53", 17, _UDP, 6),
    "icmp": _with_ip("ICMP echo request", 1, _ICMP, 2),
    "arp": Frame("ARP request", (*_ethernet(0x0806), *_ARP)),
    "eth": Frame("Ethernet only, type 0x88b5, 46 zero bytes", (*_ethernet(LOCAL_EXPERIMENT), Pad(368))),
    "vlan_tcp": _with_ip("TCP SYN in VLAN 100 with priority 3", 6, _TCP, 16, vlan=True),
}


def fill_checksums(frame: Frame, data: bytes) -> bytes:
    """The frame with its checksums (zero before) filled in."""
    buffer = bytearray(data)
    for checksum in frame.checksums:
        covered = bytes(buffer[checksum.start : checksum.stop])
        if checksum.ip_header is not None:
            ip = checksum.ip_header
            pseudo = bytes(buffer[ip + 12 : ip + 20]) + bytes([0, buffer[ip + 9]]) + len(covered).to_bytes(2, "big")
            covered = pseudo + covered
        value = internet_checksum(covered)
        if value == 0 and checksum.ip_header is not None and buffer[checksum.ip_header + 9] == 17:
            value = 0xFFFF  # in UDP zero means "no checksum"
        buffer[checksum.at : checksum.at + 2] = value.to_bytes(2, "big")
    return bytes(buffer)


def internet_checksum(data: bytes) -> int:
    """RFC 1071: the complement of the one's complement sum of 16-bit words."""
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
