"""The data-plane ports of an agent, seen from the cable: send a frame in, collect the frames that come out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soft.errors import SoftError

MAX_FRAME = 65535
# Until an agent that does not take a frame is given up.
_SEND_SECONDS = 1.0
_SIOCOUTQ = 0x5411
# <linux/if_packet.h>; Python has no names for these.
_SOL_PACKET = 263
_PACKET_AUXDATA = 8
_PACKET_OUTGOING = 4
_TP_STATUS_VLAN_VALID = 1 << 4
_TP_STATUS_VLAN_TPID_VALID = 1 << 6
_AUXDATA = struct.Struct("=IIIHHHH")  # status, len, snaplen, mac, net, vlan_tci, vlan_tpid


@dataclass(frozen=True, slots=True)
class PortPlan:
    """One port before anything exists: number, name and address are the same for every agent."""

    number: int
    kind: str
    directory: Path

    @property
    def name(self) -> str:
        return f"port{self.number}"

    @property
    def hardware_address(self) -> str:
        return f"02:00:00:00:00:{self.number:02x}"

    @property
    def own_path(self) -> Path:
        """The UNIX socket that the agent binds."""
        return self.directory / f"{self.name}.agent"

    @property
    def peer_path(self) -> Path:
        """The UNIX socket at our end."""
        return self.directory / f"{self.name}.soft"

    @property
    def spec(self) -> str:
        """What stands for the port on an agent's command line."""
        if self.kind == "unix-datagram":
            return f"unix:{self.own_path},{self.peer_path}"
        return f"unix:{self.peer_path}" if self.kind == "ovs-dummy" else self.name

    def placeholders(self) -> Mapping[str, str]:
        return {
            "number": str(self.number),
            "name": self.name,
            "hwaddr": self.hardware_address,
            "spec": self.spec,
            "interface": self.name,
            "own_path": str(self.own_path),
            "peer_path": str(self.peer_path),
        }


class Port(ABC):
    """One port of a running agent. Nothing here blocks for longer than a full queue takes to drain."""

    def __init__(self, plan: PortPlan) -> None:
        self.number = plan.number
        self.name = plan.name
        self.describe = plan

    @abstractmethod
    def send(self, frame: bytes) -> None:
        """Put a frame on the cable towards the agent. OSError if the port is gone."""

    @abstractmethod
    def receive(self) -> list[bytes]:
        """All frames that have come out of the agent since the last call."""

    @abstractmethod
    def fileno(self) -> int:
        """Readable when there is something to receive."""

    @abstractmethod
    def close(self) -> None: ...

    def unread(self) -> int | None:
        """Bytes that the agent has not taken from us yet; None where our end cannot know."""
        return None

    def closed(self) -> bool:
        """The agent has gone from the other end for good."""
        return False

    def attach(self, timeout: float) -> None:
        """Wait until the agent holds its end, where that takes an act of the agent."""
        del timeout


def unread_by_peer(end: socket.socket) -> int:
    """A UNIX socket's sender is charged until the receiver has read."""
    return int.from_bytes(fcntl.ioctl(end, _SIOCOUTQ, b"\0\0\0\0"), "little")


class UnixDatagramPort(Port):
    """A frame is a datagram; needs no privilege."""

    def __init__(self, plan: PortPlan) -> None:
        super().__init__(plan)
        self._agent_end = str(plan.own_path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(plan.peer_path))

    def send(self, frame: bytes) -> None:
        deadline = time.monotonic() + _SEND_SECONDS
        while True:
            try:
                self._socket.sendto(frame, self._agent_end)
                return
            except BlockingIOError:
                # The agent's queue is full (10 datagrams by default): it is slow, or it does not read.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)

    def receive(self) -> list[bytes]:
        frames: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 1000:
                frames.append(self._socket.recv(MAX_FRAME))
        return frames

    def unread(self) -> int:
        return unread_by_peer(self._socket)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


class LengthPrefixedPort(Port):
    """Open vSwitch's dummy ports: a UNIX stream to which the switch connects, two bytes of length before each frame."""

    def __init__(self, plan: PortPlan) -> None:
        super().__init__(plan)
        self._buffer = b""
        self._closed = False
        self._stream: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(plan.peer_path))
        self._listener.listen(1)

    def attach(self, timeout: float) -> None:
        self._listener.settimeout(timeout)
        try:
            self._stream, _ = self._listener.accept()
        except TimeoutError:
            raise SoftError(
                f"The agent did not connect {self.name} to its stream socket within {timeout:.1f} s."
            ) from None
        # A socket with a timeout would make recv wait for more even when it is told not to.
        self._stream.setblocking(False)

    def _connected(self) -> socket.socket:
        if self._stream is None:
            raise SoftError(f"{self.name} was used before the agent connected to it.")
        return self._stream

    def send(self, frame: bytes) -> None:
        stream = self._connected()
        left = len(frame).to_bytes(2, "big") + frame
        deadline = time.monotonic() + _SEND_SECONDS
        while left:
            try:
                left = left[stream.send(left) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)

    def receive(self) -> list[bytes]:
        stream = self._connected()
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while chunk := stream.recv(1 << 20):
                self._buffer += chunk
            self._closed = True
        frames: list[bytes] = []
        while len(self._buffer) >= 2:
            end = 2 + int.from_bytes(self._buffer[:2], "big")
            if len(self._buffer) < end:
                break
            frames.append(self._buffer[2:end])
            self._buffer = self._buffer[end:]
        return frames

    def unread(self) -> int:
        return unread_by_peer(self._connected())

    def closed(self) -> bool:
        return self._closed

    def fileno(self) -> int:
        return self._connected().fileno()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._listener.close()


class PacketSocketPort(Port):
    """Our end of a veth pair, or the interface of a tap device that the agent holds: an AF_PACKET socket, opened inside
    the agent's network namespace."""

    def __init__(self, plan: PortPlan, end: socket.socket) -> None:
        super().__init__(plan)
        self._socket = end
        self._socket.setblocking(False)
        # The kernel strips 802.1Q tags before an AF_PACKET socket sees the frame and tells them on the side.
        self._socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self) -> list[bytes]:
        frames: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 1000:
                frame, side, _, address = self._socket.recvmsg(MAX_FRAME, 256)
                if address[2] != _PACKET_OUTGOING:
                    frames.append(with_vlan_tag(frame, side))
        return frames

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def with_vlan_tag(frame: bytes, side: list[tuple[int, int, bytes]]) -> bytes:
    """The frame as it was on the cable, with the tag that the kernel took out of it."""
    for level, kind, data in side:
        if (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA) and len(data) >= _AUXDATA.size:
            status, *_, tci, tpid = _AUXDATA.unpack_from(data)
            if status & _TP_STATUS_VLAN_VALID:
                tag_type = tpid if status & _TP_STATUS_VLAN_TPID_VALID else 0x8100
                return frame[:12] + struct.pack("!HH", tag_type, tci) + frame[12:]
    return frame


class TapPort(Port):
    """The agent works on a tap interface; we hold the device behind it."""

    def __init__(self, plan: PortPlan, device: int) -> None:
        super().__init__(plan)
        self._device = device
        os.set_blocking(device, False)

    def send(self, frame: bytes) -> None:
        os.write(self._device, frame)

    def receive(self) -> list[bytes]:
        frames: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 1000:
                frames.append(os.read(self._device, MAX_FRAME))
        return frames

    def fileno(self) -> int:
        return self._device

    def close(self) -> None:
        os.close(self._device)
