"""Sockets: the same reads and writes with addresses and flags around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.kernel import descriptions as d
from harness.kernel.errno import EAGAIN, EBADF, ECONNREFUSED, ENOTCONN, ENOTSOCK
from harness.kernel.files import read_from, scatter, settled, symbolic_vectors, vectors, write_parts
from harness.kernel.link_address import link_address
from harness.kernel.table import constant, syscall
from harness.machine.ends import Unsupported
from harness.machine.values import Sym, Value
from soft.solve import terms as t

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_MSG_PEEK, _MSG_TRUNC, _MSG_DONTWAIT, _MSG_WAITALL = 0x2, 0x20, 0x40, 0x100
_MSG_ERRQUEUE, _MSG_NOSIGNAL = 0x2000, 0x4000
_SOCK_STREAM, _SOCK_NONBLOCK, _SOCK_CLOEXEC = 1, 0o4000, 0o2000000
_SOL_SOCKET, _SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF, _SO_ACCEPTCONN = 1, 3, 4, 7, 8, 30
_AF_UNIX, _AF_NETLINK = 1, 16


def _receive(kernel: Kernel, number: int, count: int, flags: int) -> list[Value] | int:
    description = kernel.table.get(number)
    if description is not None and not description.is_socket:
        return ENOTSOCK
    if flags & _MSG_ERRQUEUE:
        return EAGAIN
    wait = False if flags & _MSG_DONTWAIT else None
    data = read_from(kernel, number, count, wait, bool(flags & _MSG_PEEK))
    if flags & _MSG_WAITALL and not flags & _MSG_PEEK and isinstance(description, d.Stream | d.PipeEnd):
        while isinstance(data, list) and len(data) < count:
            kernel.cannot_repeat()
            more = read_from(kernel, number, count - len(data), wait)
            if not isinstance(more, list) or not more:
                break
            data += more
    return data


def _all_of(kernel: Kernel, number: int, count: Value) -> int:
    """How many bytes to wait for. A symbolic number that is more than there are needs no value until more come."""
    description = kernel.table.get(number)
    waiting = description.waiting() if description is not None else None
    if isinstance(count, Sym) and description is not None and waiting is not None and not description.nonblocking:
        more = t.ult(t.const(waiting, count.term.width), count.term)
        kernel.decide(more, count.value > waiting)
        if count.value > waiting:
            kernel.wait(lambda: (description.waiting() or 0) > waiting, None)
    return kernel.machine.pin(count)


def _store_sender(kernel: Kernel, number: int, data: list[Value], place: int, length: int) -> None:
    """The sender's address, as much of it as there is room for; most senders have none."""
    room, found = kernel.machine.pin(kernel.memory.load4(length)), kernel.snapshot.descriptors.get(number)
    sender: list[Value] = []
    if found is not None and "interface" in found.detail:
        own = bytes.fromhex(str(found.detail["address"]))
        sender = link_address(data, int(str(found.detail["interface"])), own)
    kernel.memory.write_values(place, sender[:room])
    kernel.memory.store4(length, len(sender))


@syscall(45, 6, symbolic=(2,))
def recvfrom(kernel: Kernel, number: int, buffer: int, count: Value, flags: int, address: int, length: int) -> int:
    count = _all_of(kernel, number, count) if flags & _MSG_WAITALL else settled(kernel, number, count)
    description = kernel.table.get(number)
    whole = len(description.inbox[0]) if isinstance(description, d.Frames) and description.inbox else 0
    data = _receive(kernel, number, count, flags)
    if isinstance(data, int):
        return data
    kernel.memory.write_values(buffer, data)
    if address and length:
        _store_sender(kernel, number, data, address, length)
    return max(whole, len(data)) if flags & _MSG_TRUNC else len(data)


@syscall(44, 6, symbolic=(2,))
def sendto(kernel: Kernel, number: int, buffer: int, count: Value, flags: int, address: int, length: int) -> Value:
    return _send(kernel, number, [(buffer, count)], flags)


def _send(kernel: Kernel, number: int, parts: list[tuple[int, Value]], flags: int) -> Value:
    description = kernel.table.get(number)
    if description is not None and not description.is_socket:
        return ENOTSOCK
    return write_parts(kernel, number, parts, bool(flags & _MSG_NOSIGNAL))


def _receive_message(kernel: Kernel, number: int, message: int, flags: int) -> int:
    load, store, pin = kernel.memory.load8, kernel.memory.store8, kernel.machine.pin
    parts = vectors(kernel, pin(load(message + 16)), pin(load(message + 24)))
    room = sum(size for _, size in parts)
    description = kernel.table.get(number)
    whole = len(description.inbox[0]) if isinstance(description, d.Frames) and description.inbox else 0
    data = _receive(kernel, number, room, flags)
    if isinstance(data, int):
        return data
    scatter(kernel, parts, data)
    if name := pin(load(message)):
        _store_sender(kernel, number, data, name, message + 8)
    store(message + 40, 0)  # no control data
    kernel.memory.store4(message + 48, _MSG_TRUNC if whole > room else 0)
    return max(whole, len(data)) if flags & _MSG_TRUNC else len(data)


@syscall(47, 3)
def recvmsg(kernel: Kernel, number: int, message: int, flags: int) -> int:
    return _receive_message(kernel, number, message, flags)


@syscall(299, 5)
def recvmmsg(kernel: Kernel, number: int, messages: int, count: int, flags: int, timeout: int) -> int:
    got = 0
    for index in range(count):
        place = messages + 64 * index
        size = _receive_message(kernel, number, place, flags | (_MSG_DONTWAIT if got else 0))
        if size < 0:
            return got or size
        kernel.memory.store4(place + 56, size)
        got += 1
    return got


def _send_message(kernel: Kernel, number: int, message: int, flags: int) -> Value:
    load, pin = kernel.memory.load8, kernel.machine.pin
    return _send(kernel, number, symbolic_vectors(kernel, pin(load(message + 16)), pin(load(message + 24))), flags)


@syscall(46, 3)
def sendmsg(kernel: Kernel, number: int, message: int, flags: int) -> Value:
    return _send_message(kernel, number, message, flags)


@syscall(307, 4)
def sendmmsg(kernel: Kernel, number: int, messages: int, count: int, flags: int) -> int:
    sent = 0
    for index in range(count):
        place = messages + 64 * index
        size = kernel.machine.pin(_send_message(kernel, number, place, flags))
        if size < 0:
            return sent or size
        kernel.memory.store4(place + 56, size)
        sent += 1
    return sent


def _accept(kernel: Kernel, number: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if not description.nonblocking:
        kernel.wait(description.readable, None)
    return EAGAIN


@syscall(43, 3)
def accept(kernel: Kernel, number: int, address: int, length: int) -> int:
    return _accept(kernel, number)


@syscall(288, 4)
def accept4(kernel: Kernel, number: int, address: int, length: int, flags: int) -> int:
    return _accept(kernel, number)


@syscall(41, 3)
def socket(kernel: Kernel, domain: int, kind: int, protocol: int) -> int:
    made: d.Description = d.Sink() if domain == _AF_NETLINK else d.Unconnected()
    made.socket_type = kind & 0xF
    made.nonblocking = bool(kind & _SOCK_NONBLOCK)
    return kernel.install(made, 0, bool(kind & _SOCK_CLOEXEC))


@syscall(53, 4)
def socketpair(kernel: Kernel, domain: int, kind: int, protocol: int, place: int) -> int:
    if kind & 0xF != _SOCK_STREAM:
        raise Unsupported("a pair of sockets that are not streams")
    one, other = d.PipeBuffer(), d.PipeBuffer()
    for offset, end in enumerate((d.PipeEnd(one, other), d.PipeEnd(other, one))):
        end.nonblocking = bool(kind & _SOCK_NONBLOCK)
        kernel.memory.store4(place + 4 * offset, kernel.install(end, 0, bool(kind & _SOCK_CLOEXEC)))
    return 0


@syscall(42, 3)
def connect(kernel: Kernel, number: int, address: int, length: int) -> int:
    """A log takes what it gets; a controller that an agent left is not there again."""
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    family = kernel.machine.pin(kernel.memory.load2(address))
    if family == _AF_UNIX and kernel.read_c_string(address + 2, 108) == b"/dev/log":
        log = d.Sink()
        log.nonblocking = description.nonblocking
        kernel.table[number] = log
        return 0
    return ECONNREFUSED


@syscall(48, 2)
def shutdown(kernel: Kernel, number: int, how: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if isinstance(description, d.Stream) and how in (1, 2):
        description.closed()
    return 0 if description.is_socket else ENOTSOCK


@syscall(55, 5)
def getsockopt(kernel: Kernel, number: int, level: int, option: int, value: int, length: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if not description.is_socket:
        return ENOTSOCK
    known = {
        _SO_TYPE: description.socket_type,
        _SO_ERROR: 0,
        _SO_SNDBUF: 212992,
        _SO_RCVBUF: 212992,
        _SO_ACCEPTCONN: int(description.listening),
    }
    if level != _SOL_SOCKET or option not in known:
        raise Unsupported(f"getsockopt level {level} option {option}")
    kernel.memory.store4(value, known[option])
    kernel.memory.store4(length, 4)
    return 0


@syscall(51, 3)
def getsockname(kernel: Kernel, number: int, address: int, length: int) -> int:
    raise Unsupported("getsockname during the run")


@syscall(52, 3)
def getpeername(kernel: Kernel, number: int, address: int, length: int) -> int:
    description = kernel.table.get(number)
    if isinstance(description, d.Unconnected):
        return ENOTCONN
    raise Unsupported("getpeername during the run")


constant(54, "setsockopt", 0, 5)
constant(49, "bind", 0, 3)
constant(50, "listen", 0, 2)
