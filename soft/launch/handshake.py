"""The controller's side of the OpenFlow handshake: bytes in, bytes out, no sockets."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from soft.errors import SoftError

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
HEADER = struct.Struct("!BBHI")
VERSIONS = {0x01: "1.0", 0x02: "1.1", 0x03: "1.2", 0x04: "1.3", 0x05: "1.4", 0x06: "1.5"}
# Transaction ids that stand out in a capture; no scenario uses them.
HELLO_XID, FEATURES_XID = 0xFFFFFF01, 0xFFFFFF02


def version_name(version: int) -> str:
    return f"OpenFlow {VERSIONS[version]}" if version in VERSIONS else f"OpenFlow version {version:#04x}"


@dataclass(slots=True)
class Handshake:
    """Hello both ways, echo requests answered, features asked and got. Start by sending `greeting`."""

    version: int = 0x01
    done: bool = False
    features: bytes = b""
    """The agent's features reply, once it is there."""
    _buffer: bytearray = field(default_factory=bytearray)
    _hello_seen: bool = False

    @property
    def greeting(self) -> bytes:
        """Sent at once: some agents drop a controller whose hello is late."""
        return HEADER.pack(self.version, HELLO, HEADER.size, HELLO_XID)

    @property
    def waits_for(self) -> str:
        return "features reply" if self._hello_seen else "hello"

    def receive(self, data: bytes) -> bytes:
        """What to send in return. SoftError if the agent cannot be talked to."""
        self._buffer += data
        answer = b""
        while len(self._buffer) >= HEADER.size:
            version, kind, length, xid = HEADER.unpack_from(self._buffer)
            if length < HEADER.size:
                start = bytes(self._buffer[: HEADER.size]).hex(" ")
                raise SoftError(f"The agent does not speak OpenFlow: its message {start} has length {length}.")
            if len(self._buffer) < length:
                break
            body = bytes(self._buffer[HEADER.size : length])
            message = bytes(self._buffer[:length])
            del self._buffer[:length]
            answer += self._react(version, kind, xid, body, message)
        return answer

    def _react(self, version: int, kind: int, xid: int, body: bytes, message: bytes) -> bytes:
        if kind == HELLO:
            return self._greeted(version, body)
        if version != self.version:
            raise SoftError(f"The agent speaks {version_name(version)}, not {version_name(self.version)}.")
        if kind == ECHO_REQUEST:
            return HEADER.pack(version, ECHO_REPLY, HEADER.size + len(body), xid) + body
        if kind == ERROR and len(body) >= 4:
            error, code = struct.unpack_from("!HH", body)
            if error == 0 or xid in (HELLO_XID, FEATURES_XID):
                text = body[4:].split(b"\0")[0].decode("ascii", "replace").strip()
                said = f' ("{text}")' if error == 0 and text.isprintable() and text else ""
                raise SoftError(f"The agent refused the handshake with error type {error}, code {code}{said}.")
        if kind == FEATURES_REPLY and xid == FEATURES_XID:
            self.features = message
            self.done = True
        return b""

    def _greeted(self, version: int, body: bytes) -> bytes:
        if self._hello_seen:
            return b""
        # The lower of the two versions is spoken, unless the agent's bitmap says that it does not speak it.
        if version < self.version or not _bitmap_allows(body, self.version):
            raise SoftError(f"The agent speaks {version_name(version)}, not {version_name(self.version)}.")
        self._hello_seen = True
        return HEADER.pack(self.version, FEATURES_REQUEST, HEADER.size, FEATURES_XID)


def _bitmap_allows(elements: bytes, version: int) -> bool:
    """Whether a hello's version bitmap, if it has one, contains the version."""
    while len(elements) >= 8:
        kind, length = struct.unpack_from("!HH", elements)
        if kind == 1 and length >= 8:
            return bool(struct.unpack_from("!I", elements, 4)[0] >> version & 1)
        if length < 4:
            return True
        elements = elements[(length + 7) // 8 * 8 :]
    return True
