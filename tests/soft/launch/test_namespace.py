"""A network namespace that holds an agent's interfaces and is gone with its holder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from soft.launch.namespace import Namespace
from soft.launch.ports import PortPlan

FRAME = bytes.fromhex("020000000a02020000000a0188b5") + bytes(46)


def plans(kind: str, tmp_path: Path) -> list[PortPlan]:
    return [PortPlan(number, kind, tmp_path) for number in (1, 2)]


def test_it_is_another_network_with_its_own_interfaces(tmp_path: Path) -> None:
    before = set(os.listdir("/sys/class/net"))
    with Namespace() as namespace:
        ports = namespace.prepare(plans("veth", tmp_path))
        assert [port.number for port in ports] == [1, 2]
        assert os.readlink(f"/proc/{namespace.holder}/ns/net") != os.readlink("/proc/self/ns/net")
        devices = Path(f"/proc/{namespace.holder}/net/dev").read_text()
        assert all(name in devices for name in ("port1:", "port2:", "soft1:", "soft2:", "lo:"))
        assert set(os.listdir("/sys/class/net")) == before
        holder = namespace.holder
        for port in ports:
            port.close()
    assert not Path(f"/proc/{holder}").exists()


def test_loopback_inside_is_ours_alone(tmp_path: Path) -> None:
    with Namespace() as namespace:
        namespace.prepare([])
        with pytest.raises(ConnectionRefusedError):
            namespace.connect(6653)
        with namespace.listen(6653) as listener, namespace.connect(6653) as ours:
            theirs, _ = listener.accept()
            with theirs:
                ours.sendall(b"hello")
                assert theirs.recv(5) == b"hello"
            with pytest.raises(OSError, match="in use"):
                namespace.listen(6653)
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", 6653), timeout=0.2).close()


def test_nothing_but_our_frames_is_on_the_cable(tmp_path: Path) -> None:
    with Namespace() as namespace:
        first, second = namespace.prepare(plans("veth", tmp_path))
        assert first.receive() == second.receive() == []
        first.close()
        second.close()
