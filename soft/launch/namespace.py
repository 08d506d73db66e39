"""A private network namespace for an agent whose ports are interfaces, with or without root."""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from soft.errors import SoftError
from soft.launch.ports import PacketSocketPort, Port, PortPlan, TapPort

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_HOLDER = Path(__file__).with_name("namespace_holder.py")


class Namespace:
    """A network namespace that a small process of ours holds open; it is gone when that process is."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = ours
        self._in_user_namespace = False
        with theirs:
            # In a session of its own: a Ctrl-C in the terminal is ours to handle, not the holder's.
            command = [sys.executable, "-I", "-S", str(_HOLDER)]
            self._holder: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdin=theirs.fileno(), start_new_session=True
            )

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()
        self._holder.kill()
        self._holder.wait()

    @property
    def holder(self) -> int:
        """The process whose /proc/PID/ns/net is the namespace."""
        return self._holder.pid

    def prepare(self, plans: Sequence[PortPlan]) -> list[Port]:
        """Make the namespace, its loopback and the interfaces of these ports."""
        kind = plans[0].kind if plans else "none"
        wanted = [{"name": p.name, "address": p.hardware_address, "peer": f"soft{p.number}"} for p in plans]
        reply, descriptors = self._ask({"do": "prepare", "kind": kind, "ports": wanted})
        self._in_user_namespace = bool(reply["user_namespace"])
        if kind in ("veth", "tap-device"):
            return [
                PacketSocketPort(plan, socket.socket(fileno=fd)) for plan, fd in zip(plans, descriptors, strict=True)
            ]
        return [TapPort(plan, fd) for plan, fd in zip(plans, descriptors, strict=True)] if kind == "tap" else []

    def listen(self, port: int) -> socket.socket:
        """A listening TCP socket on the namespace's loopback; port 0 is any."""
        return socket.socket(fileno=self._ask({"do": "listen", "port": port})[1][0])

    def connect(self, port: int) -> socket.socket:
        """A TCP connection on the namespace's loopback; ConnectionRefusedError until somebody listens."""
        return socket.socket(fileno=self._ask({"do": "connect", "port": port})[1][0])

    def entry(self) -> Callable[[], None]:
        """What a child of ours calls between fork and exec to be inside. Everything that can fail early is done now."""
        libc = ctypes.CDLL(None, use_errno=True)
        kinds = [("user", _CLONE_NEWUSER)] if self._in_user_namespace else []
        kinds.append(("net", _CLONE_NEWNET))
        paths = [(f"/proc/{self.holder}/ns/{name}".encode(), flag) for name, flag in kinds]

        def enter() -> None:
            # The user namespace comes first: in it we may enter the other.
            for path, flag in paths:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                if libc.setns(descriptor, flag) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
                os.close(descriptor)

        return enter

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        self._channel.settimeout(10)
        fds = array.array("i")
        try:
            self._channel.send(json.dumps(request).encode())
            data, side, _, _ = self._channel.recvmsg(1 << 16, socket.CMSG_SPACE(64 * fds.itemsize))
        except TimeoutError:
            raise SoftError("The network namespace could not be made within 10 s.") from None
        except OSError:
            data, side = b"", []
        for level, kind, payload in side:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        if not data:
            raise SoftError("The helper that holds the network namespace ended unexpectedly.")
        reply = json.loads(data)
        if "error" in reply:
            for descriptor in fds:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            if "errno" in reply:
                raise OSError(reply["errno"], reply["error"])
            raise SoftError(reply["error"])
        return reply, list(fds)
