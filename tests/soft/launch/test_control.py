"""Where controller and agent meet, before anything is said."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.control import ControlEnd


@pytest.mark.parametrize("address", ["tcp", "unix", "unix:own"])
def test_an_agent_that_connects_is_accepted_once(tmp_path: Path, address: str) -> None:
    end = ControlEnd("connect", address, tmp_path, None)
    where = end.placeholders()
    pidfd = os.pidfd_open(os.getpid())
    family = socket.AF_INET if address == "tcp" else socket.AF_UNIX
    target = ("127.0.0.1", int(where["tcp_port"])) if address == "tcp" else where["control_path"]
    with socket.socket(family, socket.SOCK_STREAM) as agent:
        agent.connect(target)
        channel = end.open(time.monotonic() + 5, lambda: None, pidfd)
        assert channel is not None
        channel.close()
    end.close()
    with socket.socket(family, socket.SOCK_STREAM) as again, pytest.raises(OSError):
        again.connect(target)
    os.close(pidfd)


@pytest.mark.parametrize("address", ["tcp", "unix"])
def test_an_agent_that_listens_is_dialled_until_it_does(tmp_path: Path, address: str) -> None:
    end = ControlEnd("listen", address, tmp_path, None)
    assert end.open(time.monotonic() + 0.02, lambda: None, -1) is None
    assert end.open(time.monotonic() + 60, lambda: "exit 1", -1) is None
    where = end.placeholders()
    family = socket.AF_INET if address == "tcp" else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as agent:
        agent.bind(("127.0.0.1", int(where["tcp_port"])) if address == "tcp" else where["control_path"])
        agent.listen()
        channel = end.open(time.monotonic() + 5, lambda: None, -1)
        assert channel is not None
        channel.close()


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SoftError, match=f"Cannot listen on tcp:127.0.0.1:{port}"):
            ControlEnd("connect", f"tcp:{port}", tmp_path, None)
