"""Put a switch back to its state after the handshake over its control channel, and have it prove that it is there.

All rules are deleted, configuration and ports are set to what they were; then features, configuration and rules are
asked for again and must be what they were at first. State that OpenFlow does not show is not seen.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from soft.replay.live import Live

_HEADER = struct.Struct("!BBHI")
_ERROR, _FEATURES_REQUEST, _FEATURES_REPLY, _GET_CONFIG, _CONFIG_REPLY, _SET_CONFIG = 1, 5, 6, 7, 8, 9
_FLOW_MOD, _PORT_MOD, _STATS_REQUEST, _STATS_REPLY, _BARRIER_REQUEST, _BARRIER_REPLY = 14, 15, 16, 17, 18, 19
_ECHO_REQUEST, _ECHO_REPLY = 2, 3
_VERSION = 1
# Transaction ids that no scenario uses.
_XID = 0xFFFFFE00
_PATIENCE = 2.0
_ALL_FIELDS = struct.pack("!I", (1 << 22) - 1) + bytes(36)
_DELETE, _NO_PORT, _NO_BUFFER, _ALL_TABLES, _FLOW_STATS = 3, 0xFFFF, 0xFFFFFFFF, 0xFF, 1
_FEATURES_BYTES, _PORT_BYTES = 32, 48
_PORT_CONFIG = slice(24, 28)
_EVERY_CONFIG_BIT = 0x7F


@dataclass(frozen=True, slots=True)
class Reset:
    """The way back to a state: what the switch said about itself when it was there."""

    features: bytes
    config: bytes
    patience: float = _PATIENCE
    """Seconds until a switch that is quiet must have answered; 0 where quiet is known to be more than silence."""

    @staticmethod
    def of(live: Live, openflow: str, patience: float = _PATIENCE) -> Reset | None:
        """The state that a switch is in now; None if it does not tell, has rules already, or speaks another version."""
        if openflow != "1.0":
            return None
        answer = _ask(live, [_message(_FEATURES_REQUEST), _message(_GET_CONFIG), _flow_stats()], patience)
        return Reset(answer[0], answer[1], patience) if answer is not None and not answer[2] else None

    def apply(self, live: Live) -> bool:
        """Put the switch back. False if it does not prove that it is there."""
        commands = [_delete_all(), _message(_SET_CONFIG, self.config)]
        commands += [_port_mod(port) for port in _ports(self.features)]
        questions = [_message(_FEATURES_REQUEST), _message(_GET_CONFIG), _flow_stats()]
        return _ask(live, [*commands, *questions], self.patience) == (self.features, self.config, b"")


def _ask(live: Live, requests: list[bytes], patience: float) -> tuple[bytes, bytes, bytes] | None:
    """Send, and wait for quiet behind a barrier. Bodies of the features, the configuration and the rules."""
    try:
        live.send(b"".join(requests) + _message(_BARRIER_REQUEST))
        bodies: dict[int, bytes] = {}
        buffer = b""
        deadline = time.monotonic() + patience
        while _BARRIER_REPLY not in bodies:
            burst = live.collect(_PATIENCE)
            if burst.closed or burst.ended is not None or not burst.quiet:
                return None
            # It may take us for the rest of an earlier message, and wait for more.
            if not burst.control and time.monotonic() > deadline:
                return None
            buffer += burst.control
            while len(buffer) >= _HEADER.size:
                _, kind, length, xid = _HEADER.unpack_from(buffer)
                if length < _HEADER.size or len(buffer) < length:
                    break
                body, buffer = buffer[_HEADER.size : length], buffer[length:]
                if kind == _ECHO_REQUEST:
                    live.send(_HEADER.pack(_VERSION, _ECHO_REPLY, length, xid) + body)
                elif xid == _XID and kind == _ERROR:
                    return None
                elif xid == _XID:
                    bodies[kind] = bodies.get(kind, b"") + (body[4:] if kind == _STATS_REPLY else body)
    except OSError:
        return None
    if not {_BARRIER_REPLY, _FEATURES_REPLY, _CONFIG_REPLY, _STATS_REPLY} <= bodies.keys():
        return None
    return bodies[_FEATURES_REPLY], bodies[_CONFIG_REPLY], bodies[_STATS_REPLY]


def _message(kind: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(_VERSION, kind, _HEADER.size + len(body), _XID) + body


def _delete_all() -> bytes:
    fields = struct.pack("!QHHHHIHH", 0, _DELETE, 0, 0, 0, _NO_BUFFER, _NO_PORT, 0)
    return _message(_FLOW_MOD, _ALL_FIELDS + fields)


def _flow_stats() -> bytes:
    request = struct.pack("!HH", _FLOW_STATS, 0) + _ALL_FIELDS + struct.pack("!BxH", _ALL_TABLES, _NO_PORT)
    return _message(_STATS_REQUEST, request)


def _ports(features: bytes) -> list[bytes]:
    """The descriptions of the ports in a features reply's body."""
    start = _FEATURES_BYTES - _HEADER.size
    return [features[at : at + _PORT_BYTES] for at in range(start, len(features) - _PORT_BYTES + 1, _PORT_BYTES)]


def _port_mod(port: bytes) -> bytes:
    """Set a port's configuration to what its description says."""
    number_and_address, config = port[:8], port[_PORT_CONFIG]
    return _message(_PORT_MOD, number_and_address + config + struct.pack("!II", _EVERY_CONFIG_BIT, 0) + bytes(4))
