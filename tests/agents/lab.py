"""A running agent with its ports and controllers, and OpenFlow 1.0 messages for it, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "agents" / "build"
PATIENCE = 10.0  # seconds; far more than any answer takes, so that a loaded machine fails no example

(HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, VENDOR, FEATURES_REQUEST, FEATURES_REPLY, GET_CONFIG_REQUEST, GET_CONFIG_REPLY,
 SET_CONFIG, PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT, FLOW_MOD, PORT_MOD, STATS_REQUEST, STATS_REPLY,
 BARRIER_REQUEST, BARRIER_REPLY, QUEUE_GET_CONFIG_REQUEST, QUEUE_GET_CONFIG_REPLY) = range(22)  # fmt: skip

IN_PORT, TABLE, NORMAL, FLOOD, ALL, CONTROLLER, LOCAL, NONE = range(0xFFF8, 0x10000)
NO_BUFFER = 0xFFFFFFFF

HELLO_FAILED = (0, 0)
BAD_VERSION, BAD_TYPE, BAD_STAT, BAD_VENDOR, _, _, BAD_LEN, _, BUFFER_UNKNOWN = ((1, code) for code in range(9))
(BAD_ACTION_TYPE, BAD_ACTION_LEN, BAD_ACTION_VENDOR, _, BAD_OUT_PORT, _, _, TOO_MANY, BAD_QUEUE) = (
    (2, code) for code in range(9)
)
ALL_TABLES_FULL, OVERLAP, _, BAD_EMERG_TIMEOUT, BAD_COMMAND, _ = ((3, code) for code in range(6))
BAD_PORT, BAD_HW_ADDR = (4, 0), (4, 1)
QUEUE_BAD_PORT, QUEUE_BAD_QUEUE = (5, 0), (5, 1)

ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
SEND_FLOW_REM, CHECK_OVERLAP, EMERG = 1, 2, 4

WILDCARD_BITS = {
    "in_port": 1 << 0, "dl_vlan": 1 << 1, "dl_src": 1 << 2, "dl_dst": 1 << 3, "dl_type": 1 << 4,
    "nw_proto": 1 << 5, "tp_src": 1 << 6, "tp_dst": 1 << 7, "nw_src": 32 << 8, "nw_dst": 32 << 14,
    "dl_vlan_pcp": 1 << 20, "nw_tos": 1 << 21,
}  # fmt: skip
ALL_WILDCARDS = sum(WILDCARD_BITS.values())


def binary(name: str) -> str:
    """Where an agent of ours is built: `reference`, `modified-01`, `asan/vswitch`."""
    return str(BUILD / name)


def free_tcp_port() -> int:
    """A port of the loopback interface on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


@dataclass(frozen=True, slots=True)
class Message:
    """One OpenFlow message."""

    type: int
    xid: int
    body: bytes
    version: int = 1

    def encode(self) -> bytes:
        return struct.pack("!BBHI", self.version, self.type, 8 + len(self.body), self.xid) + self.body

    @property
    def error(self) -> tuple[int, int]:
        """Type and code of an error message."""
        assert self.type == ERROR, self
        error_type, code = struct.unpack_from("!HH", self.body)
        return error_type, code


def match(wildcards: int | None = None, /, **fields: int | bytes) -> bytes:
    """A match on exactly the named fields; `wildcards` overrides what follows from their names."""
    unknown = fields.keys() - WILDCARD_BITS.keys()
    assert not unknown, unknown
    if wildcards is None:
        wildcards = ALL_WILDCARDS & ~sum(WILDCARD_BITS[name] for name in fields)
    get = fields.get
    return struct.pack(
        "!IH6s6sHBxHBBxxIIHH", wildcards, get("in_port", 0), get("dl_src", b""), get("dl_dst", b""), get("dl_vlan", 0),
        get("dl_vlan_pcp", 0), get("dl_type", 0), get("nw_tos", 0), get("nw_proto", 0), get("nw_src", 0),
        get("nw_dst", 0), get("tp_src", 0), get("tp_dst", 0),
    )  # fmt: skip


def output(port: int, max_len: int = 0) -> bytes:
    return struct.pack("!HHHH", 0, 8, port, max_len)


def set_vlan_vid(vid: int) -> bytes:
    return struct.pack("!HHHxx", 1, 8, vid)


def set_vlan_pcp(pcp: int) -> bytes:
    return struct.pack("!HHBxxx", 2, 8, pcp)


def strip_vlan() -> bytes:
    return struct.pack("!HHxxxx", 3, 8)


def set_dl_src(address: bytes) -> bytes:
    return struct.pack("!HH6s6x", 4, 16, address)


def set_dl_dst(address: bytes) -> bytes:
    return struct.pack("!HH6s6x", 5, 16, address)


def set_nw_src(address: int) -> bytes:
    return struct.pack("!HHI", 6, 8, address)


def set_nw_dst(address: int) -> bytes:
    return struct.pack("!HHI", 7, 8, address)


def set_nw_tos(tos: int) -> bytes:
    return struct.pack("!HHBxxx", 8, 8, tos)


def set_tp_src(port: int) -> bytes:
    return struct.pack("!HHHxx", 9, 8, port)


def set_tp_dst(port: int) -> bytes:
    return struct.pack("!HHHxx", 10, 8, port)


def enqueue(port: int, queue: int) -> bytes:
    return struct.pack("!HHH6xI", 11, 16, port, queue)


def vendor_action() -> bytes:
    return struct.pack("!HHI", 0xFFFF, 8, 0x2320)


def packet_out(
    data: bytes = b"", *actions: bytes, buffer_id: int = NO_BUFFER, in_port: int = NONE, xid: int = 7
) -> Message:
    joined = b"".join(actions)
    return Message(PACKET_OUT, xid, struct.pack("!IHH", buffer_id, in_port, len(joined)) + joined + data)


def flow_mod(
    fields: bytes, *actions: bytes, command: int = ADD, priority: int = 100, cookie: int = 0, idle: int = 0,
    hard: int = 0, buffer_id: int = NO_BUFFER, out_port: int = NONE, flags: int = 0, xid: int = 7,
) -> Message:  # fmt: skip
    body = fields + struct.pack("!QHHHHIHH", cookie, command, idle, hard, priority, buffer_id, out_port, flags)
    return Message(FLOW_MOD, xid, body + b"".join(actions))


def stats_request(kind: int, body: bytes = b"", xid: int = 7) -> Message:
    return Message(STATS_REQUEST, xid, struct.pack("!HH", kind, 0) + body)


def flow_stats_request(kind: int = 1, fields: bytes | None = None, table: int = 0xFF, out_port: int = NONE) -> Message:
    return stats_request(kind, (fields or match()) + struct.pack("!BxH", table, out_port))


class Controller:
    """One control connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(PATIENCE)
        self._received = b""

    def send(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(message.encode() for message in messages))

    def receive(self) -> Message:
        """The next message; raises EOFError when the switch has closed the connection."""
        version, kind, length, xid = struct.unpack("!BBHI", self._take(8))
        return Message(kind, xid, self._take(length - 8), version)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise EOFError
            self._received += chunk
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def exchange(self, *messages: Message) -> list[Message]:
        """Sends the messages and returns everything that comes before a barrier's reply."""
        barrier = Message(BARRIER_REQUEST, 0xBA221E2, b"")
        self.send(*messages, barrier)
        answers: list[Message] = []
        while (answer := self.receive()) != Message(BARRIER_REPLY, barrier.xid, b""):
            answers.append(answer)
        return answers

    def answer(self, message: Message) -> Message:
        """The one answer to a message, which carries the message's xid."""
        (answer,) = self.exchange(message)
        assert answer.xid == message.xid
        return answer

    def error(self, message: Message) -> tuple[int, int]:
        """The error that a message provokes; it quotes 64 bytes of the message."""
        answer = self.answer(message)
        assert answer.body[4:] == message.encode()[:64]
        return answer.error

    def settle(self) -> list[Message]:
        """Everything sent until the switch has surely handled the frames injected before.

        One exchange is not enough: the request may be read in the same round of the event loop, before the frame.
        """
        return self.exchange() + self.exchange()

    def handshake(self) -> Self:
        assert self.receive() == Message(HELLO, 0, b"")
        self.send(Message(HELLO, 1, b""))
        return self

    def flows(self) -> list[bytes]:
        """Flow statistics, one entry each."""
        body = self.answer(flow_stats_request()).body[4:]
        entries = []
        while body:
            length = int.from_bytes(body[:2], "big")
            entries.append(body[:length])
            body = body[length:]
        return entries


class Port:
    """The far end of a data-plane port."""

    def __init__(self, directory: Path, number: int) -> None:
        self.agent_path = directory / f"agent{number}"
        self.own_path = directory / f"lab{number}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.own_path))
        self.option = f"--port={number}=unix:{self.agent_path},{self.own_path}"

    def send(self, frame: bytes) -> None:
        self.socket.sendto(frame, str(self.agent_path))

    def received(self) -> list[bytes]:
        """Frames that have come."""
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frames.append(self.next(0))
        return frames

    def next(self, seconds: float = PATIENCE) -> bytes:
        """The next frame; raises TimeoutError if none comes in time."""
        self.socket.settimeout(seconds)
        return self.socket.recv(65536)


class Lab:
    """An agent with four ports; it listens for controllers on a UNIX socket, unless `control` says otherwise."""

    def __init__(
        self, directory: Path, command: Sequence[str], arguments: Sequence[str] = (), control: str | None = None
    ) -> None:
        self.address = str(directory / "control")
        self.ports = {number: Port(directory, number) for number in range(1, 5)}
        self._sockets = [port.socket for port in self.ports.values()]
        options = [port.option for port in self.ports.values()]
        self.process = subprocess.Popen(
            [*command, control or f"--listen=unix:{self.address}", *options, *arguments], stderr=subprocess.PIPE
        )

    def connect(self) -> Controller:
        """A control connection on which nothing has been said."""
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._sockets.append(connection)
            try:
                connection.connect(self.address)
            except OSError:
                assert self.process.poll() is None, "the switch has ended"
                assert time.monotonic() < deadline, "the switch does not listen"
                time.sleep(0.02)
            else:
                return Controller(connection)

    def controller(self) -> Controller:
        return self.connect().handshake()

    def received(self) -> dict[int, list[bytes]]:
        """Frames that came out of each port that sent any."""
        return {number: frames for number, port in self.ports.items() if (frames := port.received())}

    def stop(self) -> tuple[int, str]:
        """Ends the switch as an operator would; its exit status, and what it had to say."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for opened in self._sockets:
            opened.close()
        return self.process.returncode, errors.decode()


@contextlib.contextmanager
def running(lab: Lab) -> Iterator[Lab]:
    """Stops the switch in the end, and insists that it ended in peace."""
    try:
        yield lab
        assert lab.process.poll() is None, "the switch has ended on its own"
    except BaseException:
        lab.stop()
        raise
    assert lab.stop() == (0, "")
