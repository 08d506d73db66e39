"""The controller's end of the control channel: wait for an agent that connects, or connect to one that listens."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from soft.errors import SoftError
from soft.launch.namespace import Namespace

_HOST = "127.0.0.1"
# OpenFlow's own port, free in a namespace of our own.
_OPENFLOW_PORT = 6653
# Seconds between two looks at whether any process of an agent is left.
_LOOK_AGAIN = 0.1


class ControlEnd:
    """Where agent and controller meet. For an agent that connects out we listen before it is started."""

    def __init__(
        self,
        connection: Literal["connect", "listen"],
        address: str,
        directory: Path,
        namespace: Namespace | None,
        name: str = "control",
    ) -> None:
        self._namespace = namespace
        self._listener: socket.socket | None = None
        self.kind, _, rest = address.partition(":")
        self.connection = connection
        self.path = directory / (rest or name)
        self.tcp_port = 0
        if self.kind == "tcp":
            self._choose_tcp(int(rest) if rest else 0)
        elif connection == "connect":
            self.path.unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(self.path))
            self._listener.listen(1)

    def _choose_tcp(self, wanted: int) -> None:
        if self.connection == "connect":
            try:
                if self._namespace is not None:
                    self._listener = self._namespace.listen(wanted or _OPENFLOW_PORT)
                else:
                    self._listener = socket.create_server((_HOST, wanted))
            except OSError as error:
                raise SoftError(f"Cannot listen on tcp:{_HOST}:{wanted} for the agent: {error.strerror}.") from None
            self.tcp_port = self._listener.getsockname()[1]
        elif self._namespace is not None:
            self.tcp_port = wanted or _OPENFLOW_PORT
        else:
            self.tcp_port = wanted or _free_port()

    @property
    def text(self) -> str:
        return f"unix:{self.path}" if self.kind == "unix" else f"tcp:{_HOST}:{self.tcp_port}"

    def placeholders(self) -> Mapping[str, str]:
        return {
            "controller": self.text,
            "listen": self.text,
            "host": _HOST,
            "tcp_port": str(self.tcp_port),
            "control_path": str(self.path),
        }

    def open(self, deadline: float, ended: Callable[[], str | None], pidfd: int | None) -> socket.socket | None:
        """The connection, or None if the deadline passes or the agent ends first (`ended` then says how).

        A `pidfd` tells of its end at once; without one, `ended` is asked now and then.
        """
        channel = self._accept(deadline, ended, pidfd) if self._listener is not None else self._dial(deadline, ended)
        if channel is not None and self.kind == "tcp":
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return channel

    def _accept(self, deadline: float, ended: Callable[[], str | None], pidfd: int | None) -> socket.socket | None:
        assert self._listener is not None
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        if pidfd is not None:
            poller.register(pidfd, select.POLLIN)
        while True:
            left = max(0.0, deadline - time.monotonic())
            look = left if pidfd is not None else min(left, _LOOK_AGAIN)
            ready = {descriptor for descriptor, _ in poller.poll(look * 1000)}
            if self._listener.fileno() in ready:
                return self._listener.accept()[0]
            if not left or ready or (pidfd is None and ended()):
                return None

    def _dial(self, deadline: float, ended: Callable[[], str | None]) -> socket.socket | None:
        pause = 0.0005
        while time.monotonic() < deadline and ended() is None:
            with contextlib.suppress(ConnectionRefusedError, FileNotFoundError, ConnectionResetError, TimeoutError):
                if (channel := self._dial_once()) is not None:
                    return channel
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return None

    def _dial_once(self) -> socket.socket | None:
        if self.kind == "unix":
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                channel.connect(str(self.path))
            except OSError:
                channel.close()
                raise
            return channel
        if self._namespace is not None:
            return self._namespace.connect(self.tcp_port)
        channel = socket.create_connection((_HOST, self.tcp_port), timeout=1)
        if channel.getsockname() == channel.getpeername():
            # Dialling a port of the ephemeral range on loopback can connect to itself while nobody listens.
            channel.close()
            return None
        return channel

    def close(self) -> None:
        """Stop listening: a second connection of the same agent is refused."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None


def _free_port() -> int:
    """A TCP port below the ephemeral range that nobody has now."""
    for _ in range(200):
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server((_HOST, port)):
            return port
    raise SoftError("No free TCP port was found for the agent to listen on.")
