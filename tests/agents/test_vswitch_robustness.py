"""vswitch under bad input, bad peers and memory checkers."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.vswitch_lab import (
    BAD_LEN,
    CONTROLLER,
    DELETE,
    ECHO_REPLY,
    ECHO_REQUEST,
    FEATURES_REQUEST,
    FLOOD,
    GET_CONFIG_REQUEST,
    HELLO,
    MODIFY,
    NORMAL,
    PATIENCE,
    PORT_MOD,
    QUEUE_GET_CONFIG_REQUEST,
    ROOT,
    SEND_FLOW_REM,
    SET_CONFIG,
    SOURCES,
    TABLE,
    VENDOR,
    Controller,
    Lab,
    Message,
    enqueue,
    flow_mod,
    flow_stats_request,
    match,
    output,
    packet_out,
    running,
    set_dl_src,
    set_nw_dst,
    set_nw_tos,
    set_tp_src,
    set_vlan_pcp,
    set_vlan_vid,
    stats_request,
    strip_vlan,
)

FRAME = bytes.fromhex("0200000000bb0200000000aa0800") + bytes.fromhex(
    "4500002c000100004006f976" "0a000001" "0a000002" "03e80050" "0000000000000000" "50022000" "0000" "0000"
) + b"data"  # fmt: skip
EDITS = (
    set_vlan_vid(5),
    set_vlan_pcp(1),
    set_nw_dst(1),
    set_nw_tos(4),
    set_tp_src(9),
    set_dl_src(b"abcdef"),
    strip_vlan(),
)
SEED = 20121210  # any will do; the same each time, so that a failure can be repeated


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with running(Lab(tmp_path)) as started:
        yield started


def every_message() -> list[Message]:
    """At least one valid message of each kind that a controller sends."""
    return [
        Message(ECHO_REQUEST, 1, b"data"),
        Message(VENDOR, 1, bytes(4)),
        Message(FEATURES_REQUEST, 1, b""),
        Message(GET_CONFIG_REQUEST, 1, b""),
        Message(SET_CONFIG, 1, struct.pack("!HH", 0, 64)),
        Message(PORT_MOD, 1, struct.pack("!H6sIII4x", 1, b"\x02\0\0\0\0\x01", 16, 16, 0)),
        Message(QUEUE_GET_CONFIG_REQUEST, 1, struct.pack("!Hxx", 1)),
        packet_out(FRAME, *EDITS, output(1), output(CONTROLLER, 99), output(NORMAL), output(TABLE), enqueue(2, 0)),
        packet_out(b"", output(FLOOD), buffer_id=1),
        flow_mod(match(), *EDITS, output(2), output(TABLE), priority=1, idle=1, flags=SEND_FLOW_REM),
        flow_mod(match(dl_type=0x0800, nw_src=0x0A000001), output(3), priority=2, buffer_id=2, hard=1),
        flow_mod(match(in_port=1), output(CONTROLLER, 20), output(NORMAL)),
        flow_mod(match(dl_type=0x0800), output(4), output(1), command=MODIFY),
        *[stats_request(kind) for kind in (0, 3, 99)],
        flow_stats_request(1),
        flow_stats_request(2),
        stats_request(4, struct.pack("!H6x", 0xFFFF)),
        stats_request(5, struct.pack("!HxxI", 0xFFFC, 0xFFFFFFFF)),
        flow_mod(match(in_port=1), command=DELETE),
    ]


def exercise(lab: Lab) -> None:
    """A bit of everything, with frames in between and a second controller, a second long so that flows expire."""
    controller, other = lab.controller(), lab.controller()
    for _ in range(3):
        for message in every_message():
            controller.exchange(message)
            for port in lab.ports.values():
                port.send(FRAME)
                port.send(FRAME[:20])
            controller.settle()
            lab.received()
    other.send(Message(HELLO, 1, b""))
    other.socket.close()
    lab.connect().socket.close()
    time.sleep(1.2)
    controller.exchange(flow_mod(match(in_port=4), output(1)))  # left in the table when the switch ends


class TestByteStream:
    def test_messages_may_come_in_pieces(self, lab: Lab) -> None:
        controller = lab.connect()
        stream = Message(HELLO, 1, b"").encode() + Message(ECHO_REQUEST, 2, b"abc").encode()
        for byte in stream:
            controller.socket.sendall(bytes([byte]))
            time.sleep(0.001)
        assert controller.receive() == Message(HELLO, 0, b"")
        assert controller.receive() == Message(ECHO_REPLY, 2, b"abc")

    def test_messages_may_come_together(self, lab: Lab) -> None:
        controller = lab.controller()
        controller.send(*[Message(ECHO_REQUEST, xid, bytes(xid % 50)) for xid in range(1000)])
        assert [controller.receive().xid for _ in range(1000)] == list(range(1000))

    @pytest.mark.parametrize("length", [0, 1, 7])
    def test_a_length_shorter_than_the_header_ends_the_connection(self, lab: Lab, length: int) -> None:
        controller = lab.controller()
        controller.socket.sendall(struct.pack("!BBHI", 1, ECHO_REQUEST, length, 5))
        answer = controller.receive()
        assert (answer.xid, answer.error) == (5, BAD_LEN)
        with pytest.raises(EOFError):
            controller.receive()

    def test_a_controller_that_does_not_read_holds_up_nobody(self, lab: Lab) -> None:
        lazy, other = lab.controller(), lab.controller()
        lazy.socket.settimeout(0.2)
        requests = Message(ECHO_REQUEST, 1, bytes(60000)).encode() * 500
        with pytest.raises(TimeoutError):  # the switch stops to read when too much is waiting to be sent
            lazy.socket.sendall(requests)
        assert other.answer(Message(ECHO_REQUEST, 9, b"")) == Message(ECHO_REPLY, 9, b"")

    def test_more_connections_than_it_takes(self, lab: Lab) -> None:
        connections = [lab.connect() for _ in range(80)]
        for connection in connections:
            connection.socket.close()
        assert lab.controller().exchange() == []


class TestConnectingOut:
    def accept(self, listener: socket.socket) -> Controller:
        connection, _ = listener.accept()
        return Controller(connection).handshake()

    @pytest.mark.parametrize("family", ["tcp", "unix"])
    def test_it_tries_until_there_is_a_controller_and_comes_back(self, tmp_path: Path, family: str) -> None:
        kind = socket.AF_INET if family == "tcp" else socket.AF_UNIX
        with socket.socket(kind, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0) if family == "tcp" else str(tmp_path / "controller"))
            where = f"tcp:127.0.0.1:{listener.getsockname()[1]}" if family == "tcp" else f"unix:{tmp_path}/controller"
            listener.settimeout(PATIENCE)
            process = subprocess.Popen([str(ROOT / "agents/build/vswitch"), f"--connect={where}"])
            try:
                time.sleep(0.4)  # it is refused meanwhile
                listener.listen()
                for _ in range(2):
                    controller = self.accept(listener)
                    assert controller.exchange() == []
                    controller.socket.close()
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0


class TestCommandLine:
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "either --connect or --listen"),
            (["--listen=tcp:127.0.0.1:0", "--connect=tcp:127.0.0.1:1"], "either --connect or --listen"),
            (["--listen=udp:1"], "tcp:HOST:PORT or unix:PATH"),
            (["--listen=tcp:127.0.0.1"], "HOST:PORT"),
            (["--listen=unix:x", "--port=1"], "N=unix:OWN,PEER"),
            (["--listen=unix:x", "--port=0=eth0"], "a port is a number"),
            (["--listen=unix:x", "--port=1=no-such-interface"], "No such device"),
            (["--listen=unix:x", "--port=1=unix:y"], "two paths"),
            (["--listen=unix:x", "--port=300=eth0"], "above the maximum"),
            (["--listen=unix:x", "--dpid=xyz"], "--dpid"),
            (["--listen=unix:x", "extra"], "unexpected argument 'extra'"),
        ],
    )
    def test_mistakes_are_explained(self, arguments: list[str], complaint: str) -> None:
        binary = str(ROOT / "agents/build/vswitch")
        result = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 2
        assert complaint in result.stderr

    def test_nothing_is_left_behind(self, tmp_path: Path) -> None:
        with running(Lab(tmp_path)) as lab:
            lab.controller().exchange()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lab1", "lab2", "lab3", "lab4"]


@pytest.fixture(scope="session")
def sanitised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The switch, built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    binary = tmp_path_factory.mktemp("sanitised") / "vswitch"
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    subprocess.run(["gcc", *flags, *sources, "-o", str(binary)], check=True)
    return binary


class TestMemory:
    def test_valgrind_finds_nothing(self, tmp_path: Path) -> None:
        options = ["-q", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all", "--track-fds=yes"]
        command = ["valgrind", *options, "--error-exitcode=99", str(ROOT / "agents/build/vswitch")]
        lab = Lab(tmp_path, command)
        try:
            exercise(lab)
        finally:
            status, complaints = lab.stop()
        assert (status, complaints) == (0, "")

    def test_sanitisers_find_nothing_in_an_ordinary_life(self, tmp_path: Path, sanitised: Path) -> None:
        with running(Lab(tmp_path, [str(sanitised)])) as lab:
            exercise(lab)

    def test_random_bytes(self, tmp_path: Path, sanitised: Path) -> None:
        chance = random.Random(SEED)
        with running(Lab(tmp_path, [str(sanitised)])) as lab:
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                controller = lab.connect()
                stream = Message(HELLO, 0, b"").encode() * chance.randrange(2) + chance.randbytes(
                    chance.randrange(3000)
                )
                shout(controller, stream)
            assert lab.controller().exchange() == []

    def test_mutated_messages(self, tmp_path: Path, sanitised: Path) -> None:
        chance = random.Random(SEED)
        messages = [message.encode() for message in every_message()]
        with running(Lab(tmp_path, [str(sanitised)])) as lab:
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline:
                controller = lab.connect()
                stream = b"".join(mutate(chance.choice(messages), chance) for _ in range(300))
                shout(controller, Message(HELLO, 0, b"").encode() + stream)
                for port in lab.ports.values():
                    port.send(mutate(FRAME, chance)[: chance.randrange(80)])
                lab.received()
            lab.controller().exchange()  # which may bring news of flows that expire, and an answer in any case


def mutate(original: bytes, chance: random.Random) -> bytes:
    """The same with up to three bytes changed, mostly to values that are known to hurt."""
    changed = bytearray(original)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(len(changed))] = chance.choice([0, 1, 4, 7, 8, 16, 0x7F, 0xFF, chance.randrange(256)])
    if len(changed) < 0x10000 and chance.random() < 0.8:  # keep most streams in step
        changed[2:4] = struct.pack("!H", len(changed))
    return bytes(changed)


def shout(controller: Controller, stream: bytes) -> None:
    """Sends without listening until the switch has had enough or has read everything."""
    controller.socket.settimeout(0.5)
    try:
        controller.socket.sendall(stream)
        controller.socket.shutdown(socket.SHUT_WR)
        while controller.socket.recv(65536):
            pass
    except OSError:
        pass
    controller.socket.close()


def cross_interfaces(directory: Path) -> None:
    """Runs inside a network namespace of its own: frames between two veth pairs, tags and link state included."""
    for number in (1, 2):
        subprocess.run(
            ["ip", "link", "add", f"sw{number}", "type", "veth", "peer", "name", f"host{number}"], check=True
        )
        for name in (f"sw{number}", f"host{number}"):
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text(
                "1"
            )  # or the kernel sends frames of its own
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
    hosts = []
    for number in (1, 2):
        host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        host.bind((f"host{number}", 0))
        host.settimeout(PATIENCE)
        host.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        hosts.append(host)
    arguments = ["--port=11=sw1", "--port=12=sw2"]
    with running(Lab(directory, arguments=arguments)) as lab:
        controller = lab.controller()
        controller.exchange(flow_mod(match(in_port=11), output(12)))
        hosts[0].send(FRAME)
        assert hosts[1].recv(2000) == FRAME
        controller.exchange(flow_mod(match(dl_vlan=9), strip_vlan(), output(12), priority=200))
        hosts[0].send(FRAME[:12] + bytes.fromhex("81000009") + FRAME[12:])
        assert hosts[1].recv(2000) == FRAME
        subprocess.run(["ip", "link", "set", "host1", "down"], check=True)
        status = controller.receive()
        assert struct.unpack_from("!H6s16sII", status.body, 8)[::2] == (11, b"sw1".ljust(16, b"\0"), 1)


def test_ports_on_network_interfaces(tmp_path: Path) -> None:
    code = "import pathlib, sys; from tests.agents import test_vswitch_robustness as tests; "
    code += "tests.cross_interfaces(pathlib.Path(sys.argv[1]))"
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", code, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
