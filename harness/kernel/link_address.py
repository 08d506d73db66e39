"""Whom a frame came from, as a packet socket tells: a struct sockaddr_ll."""

from __future__ import annotations

from collections.abc import Sequence

from harness.machine.values import Value, concrete, make, term_of
from soft.solve import terms as t

_AF_PACKET, _ARPHRD_ETHER = 17, 1
_HOST, _BROADCAST, _MULTICAST, _OTHER_HOST = 0, 1, 2, 3


def link_address(frame: Sequence[Value], interface: int, own: bytes) -> list[Value]:
    """The 20 bytes for an Ethernet frame that an interface, whose address is `own`, has received."""
    if len(frame) < 14:
        return []
    return [
        *_AF_PACKET.to_bytes(2, "little"),
        *frame[12:14],
        *interface.to_bytes(4, "little"),
        *_ARPHRD_ETHER.to_bytes(2, "little"),
        _packet_type(frame[:6], own),
        6,
        *frame[6:12],
        0,
        0,
    ]


def _packet_type(destination: Sequence[Value], own: bytes) -> Value:
    """For us, for everybody, for a group, or for somebody else."""
    address = t.concat(*[term_of(byte, 8) for byte in destination])
    is_group = t.eq(t.extract(40, 40, address), t.const(1, 1))
    to_all = t.eq(address, t.const((1 << 48) - 1, 48))
    to_us = t.eq(address, t.const(int.from_bytes(own, "big"), 48))
    kinds = [t.const(kind, 8) for kind in (_HOST, _BROADCAST, _MULTICAST, _OTHER_HOST)]
    term = t.ite(to_all, kinds[1], t.ite(is_group, kinds[2], t.ite(to_us, kinds[0], kinds[3])))
    now = bytes(map(concrete, destination))
    if now == b"\xff" * 6:
        kind = _BROADCAST
    else:
        kind = _MULTICAST if now[0] & 1 else _HOST if now == own else _OTHER_HOST
    return make(term, kind)
