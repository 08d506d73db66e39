"""A switch on cables: in a network namespace of its own, with veth pairs for its ports and its control channel."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# Addresses for tests of network devices (RFC 2544); the namespaces of two test processes must not share them.
_NUMBER = os.getpid() % 16000
OURS, THEIRS = (f"198.18.{_NUMBER // 64}.{_NUMBER % 64 * 4 + host}" for host in (1, 2))
NAMESPACE = f"soft-cable-{os.getpid()}"
PORTS = range(1, 5)
TCP_PORT = 6653


def interface(number: int) -> str:
    """Our end of a port's cable; 0 is the control channel's."""
    return f"sc{os.getpid() % 1_000_000}p{number}"


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True, capture_output=True)


@contextlib.contextmanager
def cables() -> Iterator[None]:
    """The namespace and its cables, all up and silent."""
    _ip(f"netns add {NAMESPACE}")
    try:
        lines = []
        for number in (0, *PORTS):
            theirs = f"port{number}"
            lines += [
                f"link add {interface(number)} type veth peer name {theirs} netns {NAMESPACE}",
                f"link set {interface(number)} addrgenmode none up",
                f"-n {NAMESPACE} link set {theirs} addrgenmode none up",
            ]
        _ip(*(line for line in lines if not line.startswith("-n")))
        inside = [line.split(" ", 2)[2] for line in lines if line.startswith("-n")]
        inside += [f"addr add {THEIRS}/30 dev port0", "link set lo up"]
        subprocess.run(
            ["ip", "-n", NAMESPACE, "-batch", "-"], input="\n".join(inside), text=True, check=True, capture_output=True
        )
        _ip(f"addr add {OURS}/30 dev {interface(0)}")
        yield
    finally:
        # The namespace takes its ends of the cables with it, and these take ours.
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=True)
        for number in (0, *PORTS):
            subprocess.run(["ip", "link", "delete", interface(number)], check=False, capture_output=True)


def set_link(number: int, state: Literal["up", "down"]) -> None:
    _ip(f"link set {interface(number)} {state}")


@dataclass
class Switch:
    """An agent that runs in the namespace."""

    command: list[str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        self.process = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, *self.command], stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def switch(binary: Path, *arguments: str) -> Iterator[Switch]:
    ports = [word for number in PORTS for word in ("--port", f"{number}=port{number}")]
    running = Switch([str(binary), *arguments, *ports])
    running.start()
    try:
        yield running
    finally:
        running.stop()


def listening(binary: Path) -> contextlib.AbstractContextManager[Switch]:
    return switch(binary, "--listen", f"tcp:{THEIRS}:{TCP_PORT}")


def connecting(binary: Path) -> contextlib.AbstractContextManager[Switch]:
    return switch(binary, "--connect", f"tcp:{OURS}:{TCP_PORT}")


# ---------------------------------------------------------------------------------------------- TLS


def certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    certificate_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", f"/CN={name}", "-keyout", str(key_file), "-out", str(certificate_file),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return certificate_file, key_file


class TlsProxy:
    """TLS in front of a switch that has none: each connection with the controller is one with the switch.

    `serve` waits for the controller, `call` connects to it, again and again.
    """

    def __init__(self, directory: Path) -> None:
        self.certificate, self._key = certificate(directory, "switch")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._listener: socket.socket | None = None

    @contextlib.contextmanager
    def serve(self) -> Iterator[int]:
        """The port to connect to."""
        settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        settings.load_cert_chain(self.certificate, self._key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)

        def next_connection() -> ssl.SSLSocket:
            assert self._listener is not None
            accepted = self._listener.accept()[0]
            accepted.settimeout(5)
            return settings.wrap_socket(accepted, server_side=True)

        with self._running(next_connection):
            yield self._listener.getsockname()[1]
        self._listener.close()

    @contextlib.contextmanager
    def call(self, port: int, authority: Path) -> Iterator[None]:
        settings = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        settings.check_hostname = False
        settings.load_verify_locations(authority)
        settings.load_cert_chain(self.certificate, self._key)

        def next_connection() -> ssl.SSLSocket:
            return settings.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=1))

        with self._running(next_connection):
            yield

    @contextlib.contextmanager
    def _running(self, next_connection: object) -> Iterator[None]:
        self._thread = threading.Thread(target=self._run, args=(next_connection,), daemon=True)
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(5)

    def _run(self, next_connection: object) -> None:
        assert callable(next_connection)
        while not self._stop.is_set():
            try:
                # The switch first: whoever talks to us expects one behind us.
                with (
                    socket.create_connection((THEIRS, TCP_PORT), timeout=5) as plain,
                    next_connection() as secure,
                ):
                    self._carry(secure, plain)
            except OSError:
                time.sleep(0.02)

    def _carry(self, secure: ssl.SSLSocket, plain: socket.socket) -> None:
        secure.settimeout(0.001)
        plain.settimeout(0.001)
        while not self._stop.is_set():
            for one, other in ((secure, plain), (plain, secure)):
                try:
                    if not (data := one.recv(65536)):
                        return
                    other.sendall(data)
                except (TimeoutError, ssl.SSLWantReadError):
                    continue
                except OSError:
                    return
