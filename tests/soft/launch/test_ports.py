"""Each kind of port from the cable's side; with agents behind them in test_agent.py."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.ports import LengthPrefixedPort, PortPlan, UnixDatagramPort, with_vlan_tag

FRAME = bytes.fromhex("020000000a02020000000a0188b5") + bytes(46)


def test_names_and_addresses_are_the_same_for_every_agent(tmp_path: Path) -> None:
    plan = PortPlan(3, "veth", tmp_path)
    assert (plan.name, plan.hardware_address, plan.spec) == ("port3", "02:00:00:00:00:03", "port3")
    assert PortPlan(3, "ovs-dummy", tmp_path).spec == f"unix:{tmp_path}/port3.soft"
    assert PortPlan(3, "unix-datagram", tmp_path).spec == f"unix:{tmp_path}/port3.agent,{tmp_path}/port3.soft"


def test_a_datagram_port_knows_what_the_agent_has_not_read(tmp_path: Path) -> None:
    plan = PortPlan(1, "unix-datagram", tmp_path)
    port = UnixDatagramPort(plan)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(plan.own_path))
        port.send(FRAME)
        assert port.unread() > 0
        assert agent.recv(2000) == FRAME
        assert port.unread() == 0
        for number in range(3):
            agent.sendto(FRAME + bytes([number]), str(plan.peer_path))
        assert port.receive() == [FRAME + bytes([number]) for number in range(3)]
        assert port.receive() == []
    with pytest.raises(OSError):
        port.send(FRAME)
    port.close()


def test_an_agent_that_does_not_read_its_port_is_given_up(tmp_path: Path) -> None:
    plan = PortPlan(1, "unix-datagram", tmp_path)
    port = UnixDatagramPort(plan)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(plan.own_path))

        def send_for_ever() -> None:
            while True:
                port.send(FRAME)

        with pytest.raises(BlockingIOError):
            send_for_ever()
    port.close()


def test_a_stream_port_cuts_frames_out_of_any_pieces(tmp_path: Path) -> None:
    plan = PortPlan(1, "ovs-dummy", tmp_path)
    port = LengthPrefixedPort(plan)
    with pytest.raises(SoftError, match="used before the agent connected"):
        port.send(FRAME)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.connect(str(plan.peer_path))
        port.attach(1.0)
        assert port.receive() == []
        port.send(FRAME)
        assert port.unread() > 0
        assert agent.recv(100) == b"\0\x3c" + FRAME
        stream = 3 * (b"\0\x3c" + FRAME)
        for cut in (1, 61, 70):
            agent.sendall(stream[:cut])
            first = port.receive()
            agent.sendall(stream[cut:])
            assert first + port.receive() == [FRAME] * 3
        assert not port.closed()
    assert port.receive() == []
    assert port.closed()
    port.close()


def test_a_stream_that_the_agent_never_connects(tmp_path: Path) -> None:
    port = LengthPrefixedPort(PortPlan(2, "ovs-dummy", tmp_path))
    with pytest.raises(SoftError, match="did not connect port2 to its stream socket"):
        port.attach(0.05)
    port.close()


def test_the_tag_that_the_kernel_took_out_is_put_back() -> None:
    auxdata = struct.pack("=IIIHHHH", 1 << 4 | 1 << 6, 60, 60, 0, 14, 0x6005, 0x88A8)
    tagged = with_vlan_tag(FRAME, [(263, 8, auxdata)])
    assert tagged == FRAME[:12] + bytes.fromhex("88a86005") + FRAME[12:]
    assert with_vlan_tag(FRAME, [(263, 8, bytes(20)), (1, 2, b"")]) == FRAME
