"""A switch on cables, as a device: in both directions of connecting, with TLS, and with everything that goes wrong."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.find import find
from soft.replay.device import Device, DevicePlan, parse_address, parse_interfaces
from soft.replay.device_stage import DeviceStage
from soft.replay.runner import run
from soft.replay.tls import TlsFiles
from soft.scenarios.loader import load, parse
from soft.scenarios.model import Scenario
from soft.trace import Close, Crash, Message, Packet, Trace
from tests.agents.conftest import make
from tests.agents.lab import BUILD
from tests.soft.replay import cable

REFERENCE = BUILD / "reference"
INTERFACES = {number: cable.interface(number) for number in cable.PORTS}

# A packet out of two ports, then one that no rule matches, then a rule and one that it matches.
SCENARIO = parse(
    """\
name = "cable"
summary = "Packets in and out"
[[step]]
send = "packet_out"
buffer_id = "none"
in_port = "none"
actions = [{ type = "output", port = { in = [1, 2, 3, 4] } }, { type = "output", port = 3 }]
data = { packet = "tcp" }
[[step]]
probe = 1
packet = "tcp"
[[step]]
send = "flow_mod"
buffer_id = "none"
actions = [{ type = "output", port = 4 }]
[[step]]
probe = 2
packet = "eth"
""",
    "cable.toml",
)
BARE = parse(
    'name = "bare"\nsummary = "x"\nhandshake = false\n'
    '[[step]]\nsend = "hello"\n[[step]]\nsend = "echo_request"\nxid = 9\n',
    "bare.toml",
)


@pytest.fixture(scope="module", autouse=True)
def lab() -> Iterator[None]:
    make("all")
    with cable.cables():
        yield


def plan(**changes: object) -> DevicePlan:
    settings: dict[str, object] = {
        "direction": "connect", "host": cable.THEIRS, "tcp_port": cable.TCP_PORT, "interfaces": INTERFACES,
        "settle": 0.15, "patience": 5.0,
    }  # fmt: skip
    return DevicePlan(**{**settings, **changes})  # type: ignore[arg-type]


@contextlib.contextmanager
def device(**changes: object) -> Iterator[Device]:
    opened = Device(plan(**changes))
    try:
        yield opened
    finally:
        opened.close()


def natively(scenario: Scenario, values: dict[str, int]) -> Trace:
    return run(find(str(REFERENCE)), scenario, values).trace


def play(wires: Device, scenario: Scenario = SCENARIO, **values: int) -> Trace:
    with DeviceStage(wires, scenario) as stage:
        return stage.fresh({f"m0.actions.0.{name}": value for name, value in values.items()})


def check_all_ports(wires: Device) -> None:
    """The same as with a process of ours, one input after the other: rules of one are gone in the next."""
    for port in (1, 2):
        seen = play(wires, port=port)
        assert seen == natively(SCENARIO, {"m0.actions.0.port": port})
        assert {event.port for event in seen if isinstance(event, Packet) and event.step == 0} == {port, 3}
        assert [event.port for event in seen if isinstance(event, Packet) and event.step == 3] == [4]
        assert any(isinstance(event, Message) and event.step == 1 for event in seen)


def test_we_connect_to_a_switch_that_listens() -> None:
    with cable.listening(REFERENCE), device() as wires:
        check_all_ports(wires)


def test_a_switch_connects_to_us() -> None:
    with device(direction="listen", host=cable.OURS) as wires, cable.connecting(REFERENCE):
        check_all_ports(wires)


def test_a_scenario_that_begins_before_the_handshake() -> None:
    with cable.listening(REFERENCE), device() as wires:
        for _ in range(2):
            assert play(wires, BARE) == natively(BARE, {})


def test_we_connect_with_tls(tmp_path: Path) -> None:
    proxy = cable.TlsProxy(tmp_path)
    with cable.listening(REFERENCE), proxy.serve() as port:
        for authority in (None, proxy.certificate):
            with device(host="127.0.0.1", tcp_port=port, tls=TlsFiles(authority=authority)) as wires:
                assert play(wires, port=2) == natively(SCENARIO, {"m0.actions.0.port": 2})
        other, _ = cable.certificate(tmp_path, "other")
        with (
            device(host="127.0.0.1", tcp_port=port, tls=TlsFiles(authority=other)) as wires,
            pytest.raises(SoftError, match=r"TLS handshake with the switch failed.*verify"),
        ):
            play(wires, port=2)


def test_a_switch_connects_to_us_with_tls(tmp_path: Path) -> None:
    proxy = cable.TlsProxy(tmp_path)
    ours, key = cable.certificate(tmp_path, "controller")
    files = TlsFiles(ours, key, proxy.certificate)
    with (
        cable.listening(REFERENCE),
        device(direction="listen", host="127.0.0.1", tcp_port=16653, tls=files) as wires,
        proxy.call(16653, authority=ours),
    ):
        assert play(wires, port=2) == natively(SCENARIO, {"m0.actions.0.port": 2})


def test_tls_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    with pytest.raises(SoftError, match="TLS files cannot be used"):
        Device(plan(tls=TlsFiles(authority=tmp_path / "text")))
    with pytest.raises(SoftError, match="needs --cert and --key"):
        Device(plan(direction="listen", host="127.0.0.1", tls=TlsFiles()))


# ---------------------------------------------------------------------------------------------- faults


def test_a_switch_that_dies_has_closed_and_one_that_comes_back_is_used() -> None:
    queues = load("queue_config")
    crash = {"m0.port": 0}
    assert isinstance(natively(queues, crash)[-1], Crash)
    with cable.listening(REFERENCE) as switch, device(patience=0.3) as wires:
        with DeviceStage(wires, queues) as stage:
            predicted = natively(queues, crash)
            assert stage.fresh(crash) == stage.visible(predicted) == (Close(0),)
        with pytest.raises(SoftError, match=f"No switch answers at tcp:{cable.THEIRS}:6653: connection refused"):
            play(wires, port=2)
        switch.start()
        assert play(wires, port=2) == natively(SCENARIO, {"m0.actions.0.port": 2})


def test_nobody_connects() -> None:
    with (
        device(direction="listen", host="127.0.0.1", patience=0.1) as wires,
        pytest.raises(SoftError, match="No switch connected"),
    ):
        play(wires, port=2)


def test_a_port_that_is_down() -> None:
    with cable.listening(REFERENCE), device() as wires:
        assert play(wires, port=2)
        cable.set_link(2, "down")
        try:
            with pytest.raises(SoftError, match=rf"^Port 2 is down \(interface {INTERFACES[2]}\)\.$"):
                play(wires, port=2)
        finally:
            cable.set_link(2, "up")
        assert play(wires, port=2) == natively(SCENARIO, {"m0.actions.0.port": 2})


@contextlib.contextmanager
def impostor(words: bytes) -> Iterator[int]:
    """Somebody who says the same to everybody, and reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    connection.sendall(words)
                    held.append(connection)

        held: list[socket.socket] = []
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()


HELLO = struct.pack("!BBHI", 1, 0, 8, 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (HELLO[:5], "sent no hello in OpenFlow 1.0 within 0.4 s"),
        (HELLO, "sent no features reply in OpenFlow 1.0 within 0.4 s"),
        (b"SSH-2.0-OpenSSH\r\n", "does not speak|speaks OpenFlow|sent no"),
        (struct.pack("!BBHI", 1, 1, 12, 1) + bytes(4), "refused the handshake"),
    ],
)
def test_who_does_not_shake_hands(words: bytes, sentence: str) -> None:
    with (
        impostor(words) as port,
        device(host="127.0.0.1", tcp_port=port, patience=0.4) as wires,
        pytest.raises(SoftError, match=sentence),
    ):
        play(wires, port=2)


# ---------------------------------------------------------------------------------------------- what a user writes


def test_addresses() -> None:
    assert parse_address("tcp:192.0.2.1:6653", host_needed=True) == ("192.0.2.1", 6653)
    assert parse_address("tcp:[2001:db8::1]:6653", host_needed=True) == ("2001:db8::1", 6653)
    assert parse_address("tcp:switch.example:1", host_needed=True) == ("switch.example", 1)
    assert parse_address("tcp:6653", host_needed=False) == ("", 6653)
    assert parse_address("tcp:127.0.0.1:6653", host_needed=False) == ("127.0.0.1", 6653)


@pytest.mark.parametrize("text", ["", "tcp", "6653", "tcp:", "tcp:x", "udp:h:1", "tcp:h:0", "tcp:h:65536", "tcp:6653"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(SoftError, match="is not of the form tcp:HOST:PORT"):
        parse_address(text, host_needed=True)


def test_interfaces() -> None:
    assert parse_interfaces(("1=lo", f"2={INTERFACES[1]}")) == {1: "lo", 2: INTERFACES[1]}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("1",), "not of the form N=INTERFACE"),
        (("x=lo",), "not of the form N=INTERFACE"),
        (("1=",), "not of the form N=INTERFACE"),
        (("1=lo", "1=lo"), "Port 1 is there twice"),
        (("1=nosuch0",), "There is no interface nosuch0 for port 1"),
    ],
)
def test_no_interfaces(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SoftError, match=sentence):
        parse_interfaces(settings)
