"""Both switches under bad input, bad peers, load and memory checkers."""

from __future__ import annotations

import random
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.lab import (
    BAD_LEN,
    CONTROLLER,
    DELETE,
    ECHO_REPLY,
    ECHO_REQUEST,
    EMERG,
    FEATURES_REQUEST,
    FLOOD,
    GET_CONFIG_REQUEST,
    HELLO,
    MODIFY,
    NORMAL,
    PACKET_OUT,
    PATIENCE,
    PORT_MOD,
    QUEUE_GET_CONFIG_REQUEST,
    ROOT,
    SEND_FLOW_REM,
    SET_CONFIG,
    TABLE,
    VENDOR,
    Controller,
    Lab,
    Message,
    binary,
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
OUTPUT, SET_VLAN_VID, SET_VLAN_PCP = 0, 1, 2
SEED = 20121210  # any will do; the same each time, so that a failure can be repeated


def every_message(agent: str) -> list[Message]:
    """At least one valid message of each kind that a controller sends."""
    everything = [
        Message(ECHO_REQUEST, 1, b"data"),
        Message(VENDOR, 1, bytes(4)),
        Message(FEATURES_REQUEST, 1, b""),
        Message(GET_CONFIG_REQUEST, 1, b""),
        Message(SET_CONFIG, 1, struct.pack("!HH", 0, 64)),
        Message(PORT_MOD, 1, struct.pack("!H6sIII4x", 1, b"\x02\0\0\0\0\x01", 16, 16, 0)),
        Message(QUEUE_GET_CONFIG_REQUEST, 1, struct.pack("!Hxx", 1)),
        packet_out(FRAME, *EDITS, output(1), output(CONTROLLER, 99), output(NORMAL), output(TABLE), enqueue(2, 0)),
        packet_out(FRAME, *EDITS[2:], output(1), output(NORMAL), output(TABLE), output(FLOOD), enqueue(2, 0)),
        packet_out(b"", output(FLOOD), buffer_id=1),
        flow_mod(match(), *EDITS, output(2), priority=1, idle=1, flags=SEND_FLOW_REM),
        flow_mod(match(), output(2), output(TABLE), priority=0),
        flow_mod(match(), *EDITS, output(2), output(CONTROLLER, 30), flags=EMERG),
        flow_mod(match(dl_type=0x0800, nw_src=0x0A000001), output(3), priority=2, buffer_id=2, hard=1),
        flow_mod(match(in_port=1), output(CONTROLLER, 20), output(NORMAL)),
        flow_mod(match(dl_type=0x0800), output(4), output(1), command=MODIFY),
        *[stats_request(kind) for kind in (0, 3, 99)],
        flow_stats_request(1),
        flow_stats_request(2),
        stats_request(4, struct.pack("!H6x", 0xFFFF)),
        stats_request(5, struct.pack("!HxxI", 0xFFFC, 0xFFFFFFFF)),
        flow_stats_request(1, table=0xFE),
        flow_mod(match(in_port=1), command=DELETE),
    ]
    return [message for message in everything if not crashes(agent, message)]


def crashes(agent: str, message: Message) -> bool:
    """Whether it is one of the messages that end reference, as they did in the paper."""
    if agent != "reference":
        return False
    if message.type == QUEUE_GET_CONFIG_REQUEST:
        return message.body[:2] == b"\0\0"
    if message.type != PACKET_OUT or len(message.body) < 8:
        return False
    (length,) = struct.unpack_from("!H", message.body, 6)
    actions = message.body[8 : 8 + length]
    while len(actions) >= 8:
        kind, size, port = struct.unpack_from("!HHH", actions)
        if kind in (SET_VLAN_VID, SET_VLAN_PCP) or (kind, port) == (OUTPUT, CONTROLLER):
            return True
        actions = actions[max(size, 8) :]
    return False


def exercise(lab: Lab, agent: str) -> None:
    """A bit of everything, with frames in between and a second controller, a second long so that flows expire."""
    controller, other = lab.controller(), lab.controller()
    for _ in range(3):
        for message in every_message(agent):
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
        deadline = time.monotonic() + PATIENCE
        while True:  # it may take a moment to notice that there is room again
            try:
                controller = lab.controller()
            except EOFError:
                assert time.monotonic() < deadline
            else:
                break
        assert controller.exchange() == []


class TestConnectingOut:
    def accept(self, listener: socket.socket) -> Controller:
        connection, _ = listener.accept()
        return Controller(connection).handshake()

    @pytest.mark.parametrize("family", ["tcp", "unix"])
    def test_it_tries_until_there_is_a_controller_and_comes_back(
        self, tmp_path: Path, agent: str, family: str
    ) -> None:
        kind = socket.AF_INET if family == "tcp" else socket.AF_UNIX
        with socket.socket(kind, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0) if family == "tcp" else str(tmp_path / "controller"))
            where = f"tcp:127.0.0.1:{listener.getsockname()[1]}" if family == "tcp" else f"unix:{tmp_path}/controller"
            listener.settimeout(PATIENCE)
            process = subprocess.Popen([binary(agent), f"--connect={where}"])
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
            (["--listen=unix:x", "--port=0=eth0"], "from 1 to 65279"),
            (["--listen=unix:x", "--port=1=nosuchif"], "No such device"),
            (["--listen=unix:x", "--port=1=unix:y"], "two paths"),
            (["--listen=unix:x", "--port=1=eth0", "--port=1=eth1"], "given twice"),
            (["--listen=unix:x", "--dpid=xyz"], "--dpid"),
            (["--listen=unix:x", "extra"], "unexpected argument 'extra'"),
        ],
    )
    def test_mistakes_are_explained(self, agent: str, arguments: list[str], complaint: str) -> None:
        result = subprocess.run([binary(agent), *arguments], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 2
        assert complaint in result.stderr

    def test_nothing_is_left_behind(self, tmp_path: Path, agent: str) -> None:
        with running(Lab(tmp_path, [binary(agent)])) as lab:
            lab.controller().exchange()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lab1", "lab2", "lab3", "lab4"]


class TestMemory:
    def test_valgrind_finds_nothing(self, tmp_path: Path, agent: str) -> None:
        assert shutil.which("valgrind"), "valgrind is missing: install Debian's package of that name"
        options = ["-q", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all", "--track-fds=yes"]
        lab = Lab(tmp_path, ["valgrind", *options, "--error-exitcode=99", binary(agent)])
        try:
            exercise(lab, agent)
        finally:
            status, complaints = lab.stop()
        assert (status, complaints) == (0, "")

    def test_it_does_not_grow_under_load(self, lab: Lab, agent: str) -> None:
        controller = lab.controller()
        messages = [message for message in every_message(agent) if message.type != ECHO_REQUEST]

        def load(rounds: int) -> int:
            for _ in range(rounds):
                for port in lab.ports.values():
                    port.send(FRAME)
                controller.exchange(*messages)
                lab.received()
            return resident(lab.process.pid)

        warm = load(300)  # all buffers taken, the heap as large as it gets
        assert load(700) <= warm + 256 * 1024


@pytest.mark.usefixtures("sanitised_agents")
class TestSanitised:
    @pytest.fixture
    def lab(self, tmp_path: Path, agent: str) -> Iterator[Lab]:
        with running(Lab(tmp_path, [binary(f"asan/{agent}")])) as started:
            yield started

    def test_an_ordinary_life(self, lab: Lab, agent: str) -> None:
        exercise(lab, agent)

    def test_random_bytes(self, lab: Lab) -> None:
        chance = random.Random(SEED)
        for _ in range(200):
            greeting = Message(HELLO, 0, b"").encode() * chance.randrange(2)
            shout(lab.connect(), greeting + chance.randbytes(chance.randrange(3000)))
        assert lab.controller().exchange() == []

    def test_mutated_messages(self, lab: Lab, agent: str) -> None:
        chance = random.Random(SEED)
        messages = [message.encode() for message in every_message(agent)]
        for _ in range(100):
            mutants = [mutate(chance.choice(messages), chance) for _ in range(300)]
            stream = b"".join(mutant for mutant in mutants if not crashes(agent, decode(mutant)))
            shout(lab.connect(), Message(HELLO, 0, b"").encode() + stream)
            for port in lab.ports.values():
                port.send(mutate(FRAME, chance)[: chance.randrange(80)])
            lab.received()
        lab.controller().exchange()  # which may bring news of flows that expire, and an answer in any case


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def decode(stream: bytes) -> Message:
    version, kind, _, xid = struct.unpack_from("!BBHI", stream)
    return Message(kind, xid, stream[8:], version)


def mutate(original: bytes, chance: random.Random) -> bytes:
    """The same with up to three bytes changed, mostly to values that are known to hurt."""
    changed = bytearray(original)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(len(changed))] = chance.choice([0, 1, 4, 7, 8, 16, 0x7F, 0xFF, chance.randrange(256)])
    changed[2:4] = struct.pack("!H", len(changed))  # keep the stream in step
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


def cross_interfaces(agent: str, directory: Path) -> None:
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
    with running(Lab(directory, [binary(agent)], arguments)) as lab:
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


def test_ports_on_network_interfaces(tmp_path: Path, agent: str) -> None:
    code = "import pathlib, sys; from tests.agents import test_robustness as tests; "
    code += "tests.cross_interfaces(sys.argv[1], pathlib.Path(sys.argv[2]))"
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", code, agent, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
