"""A frame in one line: protocol, addresses, tags."""

from __future__ import annotations

from soft.openflow.decode_value import Value, number_at, show_size, show_value
from soft.openflow.layout import Field
from soft.openflow.packets import DESTINATION_MAC, SOURCE_MAC
from soft.solve.terms import Term
from soft.trace import Payload

_ETHERNET, _TAG, _IPV4_HEADER = 14, 4, 20
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP"}


def describe_packet(payload: Payload) -> str:
    """A frame in one line. Addresses that every scenario's packets have, and zeros, are left out."""
    size = show_size(payload)
    if payload.size < _ETHERNET:
        return f"frame fragment, {size}"
    at = 12
    tags: list[str] = []
    while number_at(payload, 8 * at, 16) == 0x8100 and payload.size >= at + _TAG + 2:
        tags.append(_vlan(payload, at))
        at += _TAG
    kind = number_at(payload, 8 * at, 16)
    parts = [_network(payload, kind, at + 2), *tags, *_hardware(payload), size]
    return ", ".join(parts)


def _vlan(payload: Payload, at: int) -> str:
    priority, vid = number_at(payload, 8 * at + 16, 3), number_at(payload, 8 * at + 20, 12)
    return f"VLAN {show_value(vid)}" + (f" priority {show_value(priority)}" if priority != 0 else "")


def _hardware(payload: Payload) -> list[str]:
    destination, source = number_at(payload, 0, 48), number_at(payload, 48, 48)
    if (source, destination) == (SOURCE_MAC, DESTINATION_MAC):
        return []
    mac = Field("", 48, "mac")
    return [f"{show_value(source, mac)} → {show_value(destination, mac)}"]


def _network(payload: Payload, kind: Value, at: int) -> str:
    if kind == 0x0800 and payload.size >= at + _IPV4_HEADER:
        return _ipv4(payload, at)
    if kind == 0x0806 and payload.size >= at + 28:
        operation = {1: "request", 2: "reply"}
        code = number_at(payload, 8 * at + 48, 16)
        what = operation.get(code, show_value(code)) if isinstance(code, int) else show_value(code)
        return f"ARP {what} {_address(payload, at + 14)} → {_address(payload, at + 24)}"
    if isinstance(kind, int) and kind < 0x0600:
        return f"802.3 frame, length field {kind}"
    return f"Ethernet type {show_value(kind) if isinstance(kind, Term) else hex(kind)}"


def _address(payload: Payload, at: int) -> str:
    value = number_at(payload, 8 * at, 32)
    return show_value(value, Field("", 32, "ipv4"))


def _ipv4(payload: Payload, at: int) -> str:
    version, words = number_at(payload, 8 * at, 4), number_at(payload, 8 * at + 4, 4)
    protocol, tos = number_at(payload, 8 * (at + 9), 8), number_at(payload, 8 * (at + 1), 8)
    notes = f", TOS {show_value(tos)}" if tos != 0 else ""
    if version != 4 or not isinstance(words, int):
        return f"IP version {show_value(version)}{notes}"
    name = f"IP protocol {show_value(protocol)}"
    if isinstance(protocol, int):
        name = _PROTOCOLS.get(protocol, name)
    source, destination = _address(payload, at + 12), _address(payload, at + 16)
    behind = at + 4 * words
    if name in ("TCP", "UDP") and payload.size >= behind + 4:
        ports = number_at(payload, 8 * behind, 16), number_at(payload, 8 * behind + 16, 16)
        source, destination = f"{source}:{show_value(ports[0])}", f"{destination}:{show_value(ports[1])}"
    if name == "ICMP" and payload.size >= behind + 2:
        kind, code = number_at(payload, 8 * behind, 8), number_at(payload, 8 * behind + 8, 8)
        notes += f", type {show_value(kind)} code {show_value(code)}"
    return f"{name} {source} → {destination}{notes}"
