"""An example as a capture that Wireshark dissects: what is sent, and what one agent is predicted to answer.

The control channel is a TCP conversation on port 6653 between a controller and the switch that connects to it; each
port of the switch is an interface of its own. Comments say which step a packet belongs to. The addresses are those
reserved for documentation; the hello and features messages before the first step stand for any handshake.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from soft.crosscheck.model import Behaviour, EventRecord, Finding
from soft.launch.handshake import FEATURES_REPLY, FEATURES_REQUEST, FEATURES_XID, HEADER, HELLO, HELLO_XID
from soft.openflow.layout import layout_of
from soft.report.scenes import Scene, step_words

PORT = 6653
_SWITCH_PORT = 49152
# What fits into one Ethernet frame.
_SEGMENT = 1448
_CONTROLLER, _SWITCH = ("02:00:00:00:ff:01", "192.0.2.254"), ("02:00:00:00:ff:02", "192.0.2.1")
# A stranger's findings may wait for longer than a capture can say.
_LONGEST_WAIT = 86_400_000
_IN, _OUT = 1, 2  # directions as pcapng counts them, seen from the switch


class _Frame(bytes):
    """A frame on one of the wires. scapy's writer looks for these attributes."""

    time: float
    sniffed_on: str
    direction: int
    comments: list[bytes] | None


@dataclass(slots=True)
class _Conversation:
    """A TCP conversation: keeps the sequence numbers of both ends."""

    seconds: float = 1.0
    controller: int = 1000
    switch: int = 5000
    frames: list[_Frame] = field(default_factory=list)

    def open(self) -> None:
        self._segment(False, "S", b"", "")
        self.switch += 1
        self._segment(True, "SA", b"", "")
        self.controller += 1
        self._segment(False, "A", b"", "")

    def send(self, from_controller: bool, data: bytes, comment: str) -> None:
        """One message, in as many segments as it takes; then its acknowledgement."""
        for start in range(0, len(data), _SEGMENT):
            part = data[start : start + _SEGMENT]
            self._segment(from_controller, "PA", part, comment if start == 0 else "")
            if from_controller:
                self.controller += len(part)
            else:
                self.switch += len(part)
        self._segment(not from_controller, "A", b"", "")

    def end(self, flags: str, comment: str) -> None:
        """The switch goes away."""
        self._segment(False, flags, b"", comment)
        if "F" in flags:
            self.switch += 1
            self._segment(True, "A", b"", "")

    def frame(self, port: int, data: bytes, direction: int, comment: str) -> None:
        self._add(f"port {port}", data, direction, comment)

    def _segment(self, from_controller: bool, flags: str, data: bytes, comment: str) -> None:
        numbers = (self.controller, self.switch) if from_controller else (self.switch, self.controller)
        frame = _segment(from_controller, flags, numbers[0], numbers[1] if "A" in flags else 0, data)
        self._add("control", frame, _IN if from_controller else _OUT, comment)

    def _add(self, interface: str, data: bytes, direction: int, comment: str) -> None:
        frame = _Frame(data)
        # scapy cuts off below a microsecond, and a float may be just short of one.
        frame.time = self.seconds + 1e-7
        frame.sniffed_on = interface
        frame.direction = direction
        frame.comments = [comment.encode()] if comment else None
        self.frames.append(frame)
        self.seconds += 0.001


# A segment takes scapy a millisecond, and most are the same for all agents and findings.
@lru_cache(maxsize=512)
def _segment(from_controller: bool, flags: str, sequence: int, acknowledged: int, data: bytes) -> bytes:
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether

    source, target = (_CONTROLLER, _SWITCH) if from_controller else (_SWITCH, _CONTROLLER)
    ports = (PORT, _SWITCH_PORT) if from_controller else (_SWITCH_PORT, PORT)
    packet = (
        Ether(src=source[0], dst=target[0])
        / IP(src=source[1], dst=target[1], flags="DF")
        / TCP(sport=ports[0], dport=ports[1], flags=flags, seq=sequence, ack=acknowledged)
    )
    return bytes(packet / data if data else packet)


def capture(finding: Finding, behaviour: Behaviour, scene: Scene) -> bytes:
    """The bytes of a pcapng file."""
    from scapy.data import DLT_EN10MB
    from scapy.utils import PcapNgWriter

    # scapy writes to named files only.
    with tempfile.TemporaryDirectory(prefix="soft-") as directory:
        path = Path(directory) / "capture"
        writer = PcapNgWriter(str(path))
        writer.linktype = DLT_EN10MB
        for frame in _frames(finding, behaviour, scene):
            writer.write(frame)
        writer.close()
        return path.read_bytes()


def _frames(finding: Finding, behaviour: Behaviour, scene: Scene) -> list[_Frame]:
    talk = _Conversation()
    talk.open()
    version = layout_of(scene.record.openflow).version if scene.scenario is not None else 1
    if scene.handshake:
        for from_controller, data in _handshake(version):
            talk.send(from_controller, data, "handshake")
    for number, step in enumerate(finding.example.steps):
        words = f"step {step.id}: {step_words(scene, step)[0]}"
        data = bytes.fromhex(step.hex)
        if step.kind == "send":
            talk.send(True, data, words)
        elif step.kind == "probe":
            talk.frame(step.port or 0, data, _IN, words)
        else:
            talk.seconds += min(max(step.milliseconds or 0, 0), _LONGEST_WAIT) / 1000
        for event in behaviour.events:
            if event.step == number:
                _answer(talk, event, f"{behaviour.agent}, step {step.id}: {''.join(event.words[:1])}")
        talk.seconds += 0.1
    return talk.frames


def _answer(talk: _Conversation, event: EventRecord, comment: str) -> None:
    data = bytes.fromhex(event.hex or "")
    if event.kind == "message":
        talk.send(False, data, comment)
    elif event.kind == "packet":
        talk.frame(event.port or 0, data, _OUT, comment)
    elif event.kind == "close":
        talk.end("FA", comment)
    elif event.kind == "crash":
        talk.end("RA", comment)


def _handshake(version: int) -> Iterator[tuple[bool, bytes]]:
    yield False, HEADER.pack(version, HELLO, HEADER.size, HELLO_XID)
    yield True, HEADER.pack(version, HELLO, HEADER.size, HELLO_XID)
    yield True, HEADER.pack(version, FEATURES_REQUEST, HEADER.size, FEATURES_XID)
    # A switch without ports: who it is does not matter here. OpenFlow 1.0 and 1.3 have replies of one size.
    body = (1).to_bytes(8, "big") + (256).to_bytes(4, "big") + bytes([1]) + bytes(11)
    yield False, HEADER.pack(version, FEATURES_REPLY, HEADER.size + len(body), FEATURES_XID) + body
