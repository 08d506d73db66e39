"""What each descriptor of a process is, asked from the kernel: the control channel, a port, a timer, a pipe.

Sockets are duplicated into our process for the moment in which they are asked (pidfd_getfd), whatever network namespace
they belong to.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import socket
import stat
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.frozen import Descriptor, Detail
from soft.errors import SoftError
from soft.launch.ports import PortPlan

_SYS_PIDFD_GETFD = 438
_SYS_TEE = 276
_SO_DOMAIN, _SO_PROTOCOL = 39, 38
_FIONREAD = 0x541B
_SIOCGIFINDEX = 0x8933
_SPLICE_NONBLOCK = 2
# No agent at rest has more than this waiting for it.
_MOST_PENDING = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)

_ANONYMOUS = {"[eventfd]": "eventfd", "[timerfd]": "timerfd", "[eventpoll]": "epoll", "[signalfd]": "signalfd"}


def descriptors_of(pid: int, control: socket.socket, ports: Sequence[PortPlan]) -> dict[int, Descriptor]:
    """All descriptors of a process. `control` is our end of its control channel, `ports` how its ports were made."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        raise SoftError("The agent ended before it could be frozen.") from None
    try:
        sockets = _Sockets(control, ports)
        found = {number: _describe(pid, pidfd, number, sockets) for number in _open_descriptors(pid)}
    finally:
        os.close(pidfd)
    known = {number: each for number, each in found.items() if each is not None}
    if not any(each.kind == "control" for each in known.values()) and (way := relayed(pid, known, control)) is not None:
        return {**known, way: replace(known[way], kind="control", detail={**known[way].detail, "relayed": 1})}
    return _settle_control(known, control)


def _open_descriptors(pid: int) -> list[int]:
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/fd")))
    except PermissionError:
        raise SoftError(f"The descriptors of the agent (process {pid}) may not be looked at.") from None


def _describe(pid: int, pidfd: int, number: int, sockets: _Sockets) -> Descriptor | None:
    try:
        link = os.readlink(f"/proc/{pid}/fd/{number}")
        with open(f"/proc/{pid}/fdinfo/{number}") as file:
            info = file.read()
    except FileNotFoundError:
        return None  # Closed since it was listed, which happens only while the process runs.
    flags = int(_field(info, "flags") or "0", 8)
    made = Descriptor(number, "other", None, flags, link, False)
    if link.startswith("socket:"):
        with _duplicate(pidfd, number) as copy:
            return sockets.describe(made, copy)
    if link.startswith("pipe:"):
        with _duplicate(pidfd, number) as copy:
            return _pipe(made, copy)
    if link.startswith("anon_inode:"):
        kind = _ANONYMOUS.get(link.partition(":")[2], "other")
        return replace(made, kind=kind, detail=_anonymous_detail(kind, info))
    return _file(made, pid, info, sockets)


@contextlib.contextmanager
def _duplicate(pidfd: int, number: int) -> Iterator[int]:
    copy = _libc.syscall(_SYS_PIDFD_GETFD, pidfd, number, 0)
    if copy < 0:
        code = ctypes.get_errno()
        if code in (errno.EPERM, errno.EACCES):
            raise SoftError("Looking at the agent's sockets is not permitted: its descriptors cannot be duplicated.")
        raise SoftError(f"The agent's descriptor {number} cannot be looked at: {os.strerror(code)}.")
    try:
        yield copy
    finally:
        os.close(copy)


# ---------------------------------------------------------------------------------------------- sockets


class _Sockets:
    """Tells the control channel and the ports from all other sockets."""

    def __init__(self, control: socket.socket, ports: Sequence[PortPlan]) -> None:
        # An agent may hold an IPv6 socket that talks to our IPv4 one.
        self._families = {control.family, socket.AF_INET6} if control.family == socket.AF_INET else {control.family}
        self._ends = (_address(control.getpeername()), _address(control.getsockname()))
        self._by_interface = {plan.name: plan.number for plan in ports}
        self._by_own_path = {str(plan.own_path): plan.number for plan in ports if plan.kind == "unix-datagram"}
        self._by_peer_path = {str(plan.peer_path): plan.number for plan in ports}

    def port_of_interface(self, name: str) -> int | None:
        return self._by_interface.get(name)

    def describe(self, made: Descriptor, copy: int) -> Descriptor:
        # The socket object knows its family and type from the kernel; detached, it leaves the descriptor alone.
        asked = socket.socket(fileno=copy)
        try:
            detail: dict[str, Detail] = {
                "domain": asked.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN),
                "type": asked.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE),
                "protocol": asked.getsockopt(socket.SOL_SOCKET, _SO_PROTOCOL),
            }
            kind, port = self._purpose(asked, detail)
            if kind != "listener":
                detail |= _pending(copy, lambda size: asked.recv(size, socket.MSG_PEEK | socket.MSG_DONTWAIT))
            stream = detail["type"] == socket.SOCK_STREAM
            return replace(made, kind=kind, port=port, stream=stream, detail=detail)
        finally:
            asked.detach()

    def _purpose(self, asked: socket.socket, detail: dict[str, Detail]) -> tuple[str, int | None]:
        domain = detail["domain"]
        if domain == socket.AF_NETLINK:
            return "netlink", None
        if domain == socket.AF_PACKET:
            name, *_, address = asked.getsockname()
            port = self._by_interface.get(name)
            if port is None:
                return "socket", None
            detail |= {"interface": _interface_number(asked, name), "address": address.hex()}
            return "port", port
        if asked.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return "listener", None
        own, peer = _own_address(asked), _peer_address(asked)
        if domain in self._families and peer is not None and (own, peer) == self._ends:
            return "control", None
        if domain == socket.AF_UNIX:
            for table, address in ((self._by_own_path, own), (self._by_peer_path, peer)):
                if address in table:
                    return "port", table[address]
        return "socket", None


def _interface_number(asked: socket.socket, name: str) -> int:
    """What number an interface has where the socket is."""
    request = struct.pack("16si20x", name.encode(), 0)
    return int(struct.unpack_from("i", fcntl.ioctl(asked, _SIOCGIFINDEX, request), 16)[0])


def _own_address(asked: socket.socket) -> object:
    with contextlib.suppress(OSError):
        return _address(asked.getsockname())
    return None


def _peer_address(asked: socket.socket) -> object:
    with contextlib.suppress(OSError):
        return _address(asked.getpeername())
    return None


def _address(address: object) -> object:
    """In a form that compares: an IPv4 address inside IPv6 is an IPv4 address."""
    if isinstance(address, tuple):
        return str(address[0]).removeprefix("::ffff:"), address[1]
    return address


def _settle_control(found: dict[int, Descriptor], control: socket.socket) -> dict[int, Descriptor]:
    """Of several UNIX sockets with the control channel's address, only the one at the other end of ours is it."""
    candidates = [each for each in found.values() if each.kind == "control"]
    if not candidates:
        raise SoftError(
            f"None of the agent's {len(found)} descriptors is its end of the control channel; if another process than "
            f"the one started holds it, name that in the launch profile's `control_process`."
        )
    if len({each.link for each in candidates}) == 1:
        return found
    peer = f"socket:[{peer_inode(control)}]"
    if peer not in {each.link for each in candidates}:
        raise SoftError("The agent has several connections to its controller, and which of them is ours is not known.")
    return {
        number: replace(each, kind="socket") if each.kind == "control" and each.link != peer else each
        for number, each in found.items()
    }


def relayed(pid: int, found: Mapping[int, Descriptor], control: socket.socket) -> int | None:
    """The descriptor that leads to the process which has our connection, if that passes on what a controller says.

    It is the only stream of UNIX sockets between the two.
    """
    streams = {each.link: number for number, each in found.items() if each.kind == "socket" and each.stream}
    ends = _peers(pid, found)
    inode = peer_inode(control) if control.family == socket.AF_UNIX else _tcp_inode(pid, control)
    relay = _holder(f"socket:[{inode}]", pid)
    if relay is None:
        return None
    theirs = _links(relay)
    ways = [number for link, number in streams.items() if ends.get(link) in theirs]
    return ways[0] if len(ways) == 1 else None


def _peers(pid: int, found: Mapping[int, Descriptor]) -> dict[str, str]:
    """The other end of each connected UNIX socket of a process."""
    ends: dict[str, str] = {}
    pidfd = os.pidfd_open(pid)
    try:
        for number, each in found.items():
            if each.kind == "socket" and each.detail.get("domain") == socket.AF_UNIX:
                with _duplicate(pidfd, number) as copy:
                    asked = socket.socket(fileno=copy)
                    try:
                        ends[each.link] = f"socket:[{peer_inode(asked)}]"
                    finally:
                        asked.detach()
    finally:
        os.close(pidfd)
    return ends


def _tcp_inode(pid: int, control: socket.socket) -> int | None:
    """The inode of the socket at the other end of a TCP connection of ours, from the process's network namespace."""
    wanted = [
        f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
        for host, port in (control.getpeername(), control.getsockname())
    ]
    with contextlib.suppress(OSError), open(f"/proc/{pid}/net/tcp") as file:
        for line in file:
            columns = line.split()
            if columns[1:3] == wanted:
                return int(columns[9])
    return None


def _holder(link: str, but: int) -> int | None:
    """A process that has a socket open; not `but`."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (but, os.getpid()) and link in _links(int(name)):
            return int(name)
    return None


def _links(pid: int) -> set[str]:
    links: set[str] = set()
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                links.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    return links


# <linux/sock_diag.h>, <linux/unix_diag.h>
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_UDIAG_SHOW_PEER = 4
_UNIX_DIAG_PEER = 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")


def peer_inode(ours: socket.socket) -> int | None:
    """The inode of the socket at the other end of a UNIX socket of ours, from the kernel's socket diagnostics."""
    own = os.fstat(ours.fileno()).st_ino
    body = _REQUEST.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, own, _UDIAG_SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF)
    message = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, 1, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as asked:
        asked.settimeout(1.0)
        try:
            asked.send(message)
            answer = asked.recv(8192)
        except OSError:
            return None
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    at = _HEADER.size + 16  # struct unix_diag_msg
    while at + 8 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == _UNIX_DIAG_PEER:
            return int(struct.unpack_from("=I", answer, at + 4)[0])
        at += max(4, (length + 3) & ~3)
    return None


# ---------------------------------------------------------------------------------------------- all others


def _pipe(made: Descriptor, copy: int) -> Descriptor:
    end = "write" if made.flags & os.O_ACCMODE == os.O_WRONLY else "read"
    detail: dict[str, Detail] = {"inode": os.fstat(copy).st_ino, "end": end}
    if end == "read":
        detail |= _pending(copy, lambda size: _tee(copy, size))
    return replace(made, kind="pipe", stream=True, detail=detail)


def _tee(pipe: int, size: int) -> bytes:
    """What is in a pipe, without taking it out."""
    readable, writable = os.pipe2(os.O_NONBLOCK)
    try:
        copied = _libc.syscall(_SYS_TEE, pipe, writable, size, _SPLICE_NONBLOCK)
        return os.read(readable, copied) if copied > 0 else b""
    finally:
        os.close(readable)
        os.close(writable)


def _pending(copy: int, peek: Callable[[int], bytes]) -> dict[str, Detail]:
    try:
        unread = int.from_bytes(fcntl.ioctl(copy, _FIONREAD, b"\0\0\0\0"), "little")
    except OSError:
        return {}
    pending = b""
    if unread:
        with contextlib.suppress(OSError):
            pending = peek(min(unread, _MOST_PENDING))
    return {"unread": unread, "pending": pending.hex()}


def _anonymous_detail(kind: str, info: str) -> Mapping[str, Detail]:
    if kind == "eventfd":
        return {
            "count": int(_field(info, "eventfd-count") or "0", 16),
            "semaphore": int(_field(info, "eventfd-semaphore") or "0"),
        }
    if kind == "timerfd":
        return {
            "clockid": int(_field(info, "clockid") or "0"),
            "ticks": int(_field(info, "ticks") or "0"),
            "settime_flags": int(_field(info, "settime flags") or "0", 8),
            "it_value": _nanoseconds(_field(info, "it_value")),
            "it_interval": _nanoseconds(_field(info, "it_interval")),
        }
    if kind == "signalfd":
        return {"mask": int(_field(info, "sigmask") or "0", 16)}
    if kind == "epoll":
        lines = re.findall(r"^tfd:\s*(\d+)\s+events:\s*([0-9a-f]+)\s+data:\s*([0-9a-f]+)", info, re.MULTILINE)
        return {"watched": tuple((int(number), int(events, 16), int(data, 16)) for number, events, data in lines)}
    return {}


def _nanoseconds(pair: str | None) -> int:
    """`(1, 500000000)` is one and a half seconds."""
    match = re.fullmatch(r"\((-?\d+), (\d+)\)", pair or "")
    return int(match[1]) * 1_000_000_000 + int(match[2]) if match else 0


def _file(made: Descriptor, pid: int, info: str, sockets: _Sockets) -> Descriptor:
    interface = _field(info, "iff")
    if interface is not None and (port := sockets.port_of_interface(interface)) is not None:
        return replace(made, kind="port", port=port)
    with contextlib.suppress(OSError):
        mode = os.stat(f"/proc/{pid}/fd/{made.number}").st_mode
        if stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
            position = int(_field(info, "pos") or "0")
            return replace(made, kind="file", stream=True, detail={"position": position})
    return made


def _field(info: str, name: str) -> str | None:
    """A line of /proc/PID/fdinfo."""
    match = re.search(rf"^{re.escape(name)}:[ \t]*(.*)$", info, re.MULTILINE)
    return match[1].strip() if match else None
