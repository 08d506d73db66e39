"""A switch on a cable: its control channel over TCP or TLS in either direction, its ports behind our interfaces.

It is not our process: that it is quiet can only be told from its silence, and how it ended not at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from soft.errors import SoftError
from soft.launch.exchange import Burst, Exchange
from soft.launch.handshake import Handshake, version_name
from soft.launch.ports import PacketSocketPort, Port, PortPlan
from soft.launch.quiet import Processes
from soft.replay.reset import Reset
from soft.replay.tls import TlsFiles, context, plain_end

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_MR_PROMISC, _PACKET_IGNORE_OUTGOING = 263, 1, 1, 23
_IFF_UP = 0x1
_SEND_SECONDS = 2.0
# A device that was not there gets so many seconds in later attempts, or a hundred findings would take as many times ten
# seconds to fail.
_SHORT_PATIENCE = 0.5
_ADDRESS = re.compile(r"tcp:(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:]*):)?(?P<port>[0-9]{1,5})\Z")


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """Where a device is: who connects to whom, and which interface is the other end of which of its ports."""

    direction: Literal["connect", "listen"]
    host: str
    tcp_port: int
    interfaces: Mapping[int, str] = field(default_factory=dict)
    tls: TlsFiles | None = None
    settle: float = 0.2
    """Seconds of silence that count as quiet."""
    patience: float = 10.0
    """Seconds that it may take the device to be there, after a crash too."""

    @property
    def text(self) -> str:
        return f"{'tls' if self.tls is not None else 'tcp'}:{self.host or '*'}:{self.tcp_port}"


def parse_address(text: str, *, host_needed: bool) -> tuple[str, int]:
    """`tcp:HOST:PORT`, or `tcp:PORT` where no host is needed."""
    match = _ADDRESS.match(text)
    wanted = "tcp:HOST:PORT, such as tcp:192.0.2.1:6653" if host_needed else "tcp:PORT, such as tcp:6653"
    if match is None or not 0 < int(match["port"]) < 65536 or (host_needed and not match["host"]):
        raise SoftError(f"{text!r} is not of the form {wanted}.")
    return (match["host"] or "").strip("[]"), int(match["port"])


def parse_interfaces(settings: tuple[str, ...]) -> dict[int, str]:
    """Ports `N=INTERFACE`, as the command line gives them."""
    found: dict[int, str] = {}
    for setting in settings:
        number, equals, interface = setting.partition("=")
        if not equals or not number.isdigit() or not interface:
            raise SoftError(f"{setting!r} is not of the form N=INTERFACE, such as 1=veth1.")
        if int(number) in found:
            raise SoftError(f"Port {number} is there twice.")
        if not Path(f"/sys/class/net/{interface}").exists():
            raise SoftError(f"There is no interface {interface} for port {number}.")
        found[int(number)] = interface
    return found


class Device:
    """The wires to a device, open until `close`. One control connection at a time."""

    def __init__(self, plan: DevicePlan) -> None:
        self.plan = plan
        self.home: Reset | None = None
        """The state that it is put back to, once it is known."""
        self._patience = plan.patience
        self._never = os.eventfd(0, os.EFD_CLOEXEC)
        self._control: socket.socket | None = None
        self._exchange: Exchange | None = None
        self._listener: socket.socket | None = None
        self._tls = context(plan.tls, server=plan.direction == "listen") if plan.tls is not None else None
        self.ports: dict[int, Port] = {}
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for number, interface in plan.interfaces.items():
                self.ports[number] = _open_port(number, interface)
            if plan.direction == "listen":
                self._listener = _listen(plan)
            undo.pop_all()

    def close(self) -> None:
        self.hang_up()
        if self._listener is not None:
            self._listener.close()
        for port in self.ports.values():
            port.close()
        os.close(self._never)

    def hang_up(self) -> None:
        """End the control connection."""
        if self._control is not None:
            self._control.close()
        self._control = self._exchange = None

    @property
    def connected(self) -> bool:
        return self._control is not None

    def check_ports(self) -> None:
        """SoftError for a port whose interface is down."""
        for number, interface in self.plan.interfaces.items():
            try:
                flags = int(Path(f"/sys/class/net/{interface}/flags").read_text(), 16)
                carrier = Path(f"/sys/class/net/{interface}/carrier").read_text().strip()
            except (OSError, ValueError):
                flags, carrier = 0, "0"
            if not flags & _IFF_UP or carrier != "1":
                raise SoftError(f"Port {number} is down (interface {interface}).")

    def connect(self) -> None:
        """Open the control connection without a word."""
        self.hang_up()
        patience, self._patience = self._patience, _SHORT_PATIENCE
        deadline = time.monotonic() + patience
        channel = self._accept(deadline) if self._listener is not None else self._dial(deadline)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            server = self._listener is not None
            channel = plain_end(channel, self._tls, server=server, timeout=max(0.1, deadline - time.monotonic()))
        for port in self.ports.values():
            port.receive()  # What came before belongs to nobody.
        self._patience = self.plan.patience
        self._control = channel
        self._exchange = Exchange(
            channel, self.ports, Processes(()), None, lambda: None, self._never, self.plan.settle
        )  # fmt: skip

    def _accept(self, deadline: float) -> socket.socket:
        assert self._listener is not None
        self._listener.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            return self._listener.accept()[0]
        except TimeoutError:
            raise SoftError(f"No switch connected to {self.plan.text} in time.") from None

    def _dial(self, deadline: float) -> socket.socket:
        while True:
            try:
                return socket.create_connection(
                    (self.plan.host, self.plan.tcp_port), timeout=max(0.1, deadline - time.monotonic())
                )
            except OSError as error:
                if time.monotonic() + 0.1 > deadline:
                    raise SoftError(f"No switch answers at {self.plan.text}: {_reason(error)}.") from None
            time.sleep(0.05)

    def handshake(self, version: int = 0x01) -> bytes:
        """Hello and features, and whatever else it says until it is quiet. Returns the features reply."""
        self.connect()
        shake = Handshake(version)
        deadline = time.monotonic() + self.plan.patience
        answer = shake.greeting
        while True:
            try:
                self.send(answer)
            except OSError:
                raise SoftError(f"The switch at {self.plan.text} closed the channel during the handshake.") from None
            burst = self.collect(self.plan.patience)
            if burst.closed:
                raise SoftError(f"The switch at {self.plan.text} closed the channel during the handshake.")
            answer = shake.receive(bytes(burst.control))
            if shake.done and not answer:
                return shake.features
            if not answer and time.monotonic() > deadline:
                raise SoftError(
                    f"The switch at {self.plan.text} sent no {shake.waits_for} in {version_name(version)} within "
                    f"{self.plan.patience:g} s."
                )

    def send(self, data: bytes) -> None:
        """Bytes from the controller. OSError if the switch has closed the channel or does not read."""
        if self._control is None:
            raise OSError("not connected")
        self._control.settimeout(_SEND_SECONDS)
        self._control.sendall(data)

    def collect(self, limit: float, at_least: float = 0.0) -> Burst:
        """Everything that the switch sends until it has been silent for the settle time."""
        if self._exchange is None:
            raise SoftError("The switch has no control channel yet.")
        return self._exchange.collect(limit, at_least)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "time ran out"
    return (error.strerror or str(error)).lower()


def _listen(plan: DevicePlan) -> socket.socket:
    try:
        if not plan.host and socket.has_dualstack_ipv6():
            return socket.create_server(("", plan.tcp_port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
        return socket.create_server((plan.host, plan.tcp_port), family=family)
    except OSError as error:
        raise SoftError(f"Cannot listen at {plan.text}: {_reason(error)}.") from None


def _open_port(number: int, interface: str) -> Port:
    try:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        end.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        end.bind((interface, _ETH_P_ALL))
        # Frames for other addresses than the interface's own are what a switch sends.
        membership = struct.pack("=IHH8s", socket.if_nametoindex(interface), _PACKET_MR_PROMISC, 0, b"")
        end.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)
    except PermissionError:
        raise SoftError(f"Sending frames through {interface} needs root, or the capability CAP_NET_RAW.") from None
    except OSError as error:
        raise SoftError(f"The interface {interface} cannot be used for port {number}: {_reason(error)}.") from None
    return PacketSocketPort(PortPlan(number, "veth", Path()), end)
