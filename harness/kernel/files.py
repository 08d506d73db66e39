"""Reading, writing and closing descriptors of any kind, and the few files that an agent opens while it works."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from harness.kernel import descriptions as d
from harness.kernel.errno import EAGAIN, EBADF, EINVAL, ENOENT, ENOTTY, EPIPE, ESPIPE
from harness.kernel.outside import IDLE_POLLS
from harness.kernel.table import constant, syscall
from harness.machine.ends import Unsupported
from harness.machine.values import Sym, Value, concrete, make, term_of
from harness.marks import APPROXIMATE, is_marked, is_uncertain
from soft.solve import terms as t
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_O_ACCESS, _O_NONBLOCK, _O_CLOEXEC, _FD_CLOEXEC = 0o3, 0o4000, 0o2000000, 1
_FIONREAD, _FIONBIO, _TCGETS = 0x541B, 0x5421, 0x5401
_GRND_NONBLOCK = 1
# The kernel's own settings, which an agent may look up when it first needs them; libc counts processors in the second.
_SETTINGS, _MOST_SETTING = (b"/proc/sys/", b"/sys/devices/system/cpu/online"), 1 << 16
# One read gives no more than this, whatever the agent asks for.
_MOST = 1 << 20


def read_from(
    kernel: Kernel, number: int, count: int, wait: bool | None = None, peek: bool = False
) -> list[Value] | int:
    """The bytes, or an errno. `wait` overrides what the descriptor says about blocking."""
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if count < description.smallest_read:
        return EINVAL
    data = description.read(min(count, _MOST), peek)
    if data is None:
        blocking = not description.nonblocking if wait is None else wait
        if blocking:
            kernel.wait(description.readable, None)
        elif not _asked_in_vain(kernel, description):
            return EAGAIN
        data = description.read(min(count, _MOST), peek)
    return EAGAIN if data is None else data


def _asked_in_vain(kernel: Kernel, description: d.Description) -> bool:
    """An agent that never waits reads the control channel over and over. After so many times in which nothing else
    happened it is quiet: then the next step has come, and it may look again."""
    if description is not kernel.outside.control or not isinstance(description, d.Stream):
        return False
    moment = kernel.clock.now, len(kernel.outside.events)
    description.asked = description.asked + 1 if description.asked_at == moment else 1
    description.asked_at = moment
    if description.asked <= IDLE_POLLS:
        return False
    description.asked = 0
    kernel.outside.next_step()
    return True


def settled(kernel: Kernel, number: int, count: Value) -> int:
    """How many bytes to read. A symbolic number that is enough for all that waits needs no path for each value."""
    description = kernel.table.get(number)
    if isinstance(count, int) or description is None or description.smallest_read:
        return kernel.machine.pin(count)
    waiting = description.waiting()
    if waiting is None or (not waiting and not description.nonblocking):
        return kernel.machine.pin(count)
    enough = max(waiting, 1)
    holds = count.value >= enough
    kernel.decide(t.uge(count.term, t.const(enough, count.term.width)), holds)
    return enough if holds else kernel.machine.pin(count)


# An output whose length depends on the input has at most this many bytes; a longer one is a path for each length.
MOST_SYMBOLIC = 4096


def write_parts(kernel: Kernel, number: int, parts: list[tuple[int, Value]], quietly: bool = False) -> Value:
    """Write the parts one after the other. The last may have a symbolic length: then so has what is sent.

    To write where nobody reads is an error and a signal, or only an error.
    """
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    written = _write(kernel, description, parts)
    if written == EPIPE and not quietly:
        kernel.signals.send(signal.SIGPIPE)
    return written


def _write(kernel: Kernel, description: d.Description, parts: list[tuple[int, Value]]) -> Value:
    pin = kernel.machine.pin
    if isinstance(description, d.Sink | d.File | d.Null) and any(is_uncertain(size) for _, size in parts):
        # A log that nobody reads: how much of it there is does not matter, but the agent hears of it.
        data = gather(kernel, [(address, concrete(size)) for address, size in parts])
        return _sum(description.write(data), [size for _, size in parts])
    if parts and is_uncertain(parts[-1][1]):
        parts = [*parts[:-1], (parts[-1][0], pin(parts[-1][1]))]
    if not parts or not isinstance(parts[-1][1], Sym) or not description.takes_lengths:
        data = gather(kernel, [(address, pin(size)) for address, size in parts])
        return description.write(_presentable(kernel, description, data))
    fixed = gather(kernel, [(address, pin(size)) for address, size in parts[:-1]])
    address, size = parts[-1]
    assert isinstance(size, Sym)
    most = kernel.most(size)
    if most is None or most > MOST_SYMBOLIC:
        data = [*fixed, *kernel.memory.read_values(address, pin(size))]
        return description.write(_presentable(kernel, description, data))
    tail = kernel.memory.read_values(address, most)
    shown = [kernel.simplify(byte, _within(size, index)) for index, byte in enumerate(tail)]
    length = _plus(size, len(fixed))
    description.write_some(_presentable(kernel, description, [*fixed, *shown]), length)
    return length


def _sum(written: int, sizes: list[Value]) -> Value:
    """How much was written, as a term of the sizes, if it was all."""
    if written != sum(map(concrete, sizes)):
        return written
    total = t.const(0, 64)
    for size in sizes:
        total = t.add(total, term_of(size, 64))
    return make(total, written)


def _presentable(kernel: Kernel, description: d.Description, data: list[Value]) -> list[Value]:
    """What goes to the controller or a port: text that holds for one input only is as it is for this one."""
    if not isinstance(description, d.Stream | d.Frames):
        return data
    marked = [index for index, byte in enumerate(data) if isinstance(byte, Sym) and is_marked(byte.term)]
    if marked:
        kernel.marks[APPROXIMATE] = None
    return [concrete(byte) if index in marked else byte for index, byte in enumerate(data)] if marked else data


def _within(size: Sym, index: int) -> Term:
    """That a byte is among the first `size`."""
    return t.ult(t.const(index, size.term.width), size.term)


def _plus(size: Sym, number: int) -> Sym:
    if not number:
        return size
    return Sym(t.add(size.term, t.const(number, size.term.width)), size.value + number)


def vectors(kernel: Kernel, place: int, count: int) -> list[tuple[int, int]]:
    """An iovec: (address, length) of each part."""
    pin = kernel.machine.pin
    return [(address, pin(size)) for address, size in symbolic_vectors(kernel, place, count)]


def symbolic_vectors(kernel: Kernel, place: int, count: int) -> list[tuple[int, Value]]:
    load, pin = kernel.memory.load8, kernel.machine.pin
    return [(pin(load(place + 16 * i)), load(place + 16 * i + 8)) for i in range(min(count, 1024))]


def scatter(kernel: Kernel, parts: list[tuple[int, int]], data: list[Value]) -> None:
    position = 0
    for address, size in parts:
        if position >= len(data):
            return
        kernel.memory.write_values(address, data[position : position + size])
        position += size


def gather(kernel: Kernel, parts: list[tuple[int, int]]) -> list[Value]:
    data: list[Value] = []
    for address, size in parts:
        data += kernel.memory.read_values(address, size)
    return data


@syscall(0, 3, symbolic=(2,))
def read(kernel: Kernel, number: int, buffer: int, count: Value) -> int:
    data = read_from(kernel, number, settled(kernel, number, count))
    if isinstance(data, int):
        return data
    kernel.memory.write_values(buffer, data)
    return len(data)


@syscall(1, 3, symbolic=(2,))
def write(kernel: Kernel, number: int, buffer: int, count: Value) -> Value:
    return write_parts(kernel, number, [(buffer, count)])


@syscall(19, 3)
def readv(kernel: Kernel, number: int, place: int, count: int) -> int:
    parts = vectors(kernel, place, count)
    data = read_from(kernel, number, sum(size for _, size in parts))
    if isinstance(data, int):
        return data
    scatter(kernel, parts, data)
    return len(data)


@syscall(20, 3)
def writev(kernel: Kernel, number: int, place: int, count: int) -> Value:
    return write_parts(kernel, number, symbolic_vectors(kernel, place, count))


@syscall(3, 1)
def close(kernel: Kernel, number: int) -> int:
    if number not in kernel.table:
        return EBADF
    kernel.release(number)
    return 0


@syscall(32, 1)
def dup(kernel: Kernel, number: int) -> int:
    return kernel.install(kernel.table[number]) if number in kernel.table else EBADF


@syscall(33, 2)
def dup2(kernel: Kernel, old: int, new: int) -> int:
    if old not in kernel.table:
        return EBADF
    description = kernel.table[old]
    if new == old:
        return new
    if new in kernel.table:
        kernel.release(new)
    kernel.table[new] = description
    return new


@syscall(292, 3)
def dup3(kernel: Kernel, old: int, new: int, flags: int) -> int:
    if old == new or flags & ~_O_CLOEXEC:
        return EINVAL
    result = int(dup2(kernel, old, new))  # type: ignore[arg-type]
    if result == new and flags:
        kernel.closed_by_exec.add(new)
    return result


@syscall(72, 3)
def fcntl(kernel: Kernel, number: int, command: int, argument: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if command in (_F_DUPFD, _F_DUPFD_CLOEXEC):
        return kernel.install(description, argument, command == _F_DUPFD_CLOEXEC)
    if command == _F_GETFL:
        return description.status | (_O_NONBLOCK if description.nonblocking else 0)
    if command == _F_SETFL:
        description.nonblocking = bool(argument & _O_NONBLOCK)
        return 0
    if command == _F_GETFD:
        return int(number in kernel.closed_by_exec)
    if command == _F_SETFD:
        (kernel.closed_by_exec.add if argument & _FD_CLOEXEC else kernel.closed_by_exec.discard)(number)
        return 0
    raise Unsupported(f"fcntl with command {command}")


@syscall(16, 3)
def ioctl(kernel: Kernel, number: int, request: int, argument: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if request == _FIONBIO:
        description.nonblocking = bool(kernel.machine.pin(kernel.memory.load4(argument)))
        return 0
    unread = description.unread()
    if request == _FIONREAD and unread is not None:
        kernel.memory.store4(argument, unread)
        return 0
    if request == _TCGETS:
        return ENOTTY
    raise Unsupported(f"ioctl {request:#x} on {description.kind}")


@syscall(8, 3)
def lseek(kernel: Kernel, number: int, offset: int, whence: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    if description.is_socket or isinstance(description, d.PipeEnd):
        return ESPIPE
    if type(description) is d.Null:
        return 0
    raise Unsupported("lseek on a file")


def _open(kernel: Kernel, path: bytes, flags: int) -> int:
    """Files that agents open while they work. Anything else is named, so that somebody can decide what it means."""
    if path == b"/dev/null":
        null = d.Null()
        null.status = flags & _O_ACCESS
        return kernel.install(null, 0, bool(flags & _O_CLOEXEC))
    if path in (b"/dev/urandom", b"/dev/random"):
        tracked = bool(kernel.memory.unwritten)
        kernel.has_random_numbers |= not tracked
        kernel.memory.has_read_unwritten |= tracked
        return kernel.install(d.Noise(int(kernel.is_disturbed), tracked), 0, bool(flags & _O_CLOEXEC))
    if path in (b"/etc/localtime", b"/usr/share/zoneinfo/UTC") or path.startswith(b"/etc/ld.so"):
        return ENOENT  # then the time zone is UTC, which is what an agent is started with
    if path.startswith(_SETTINGS) and flags & _O_ACCESS == 0 and b"/../" not in path:
        return _open_setting(kernel, path, flags)
    raise Unsupported("opening a file during the run", path.decode(errors="replace"))


def _open_setting(kernel: Kernel, path: bytes, flags: int) -> int:
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_SETTING)
    except OSError as error:
        return -(error.errno or -ENOENT)
    return kernel.install(d.Setting(content), 0, bool(flags & _O_CLOEXEC))


@syscall(2, 3)
def open_(kernel: Kernel, path: int, flags: int, mode: int) -> int:
    return _open(kernel, kernel.read_c_string(path), flags)


@syscall(257, 4)
def openat(kernel: Kernel, directory: int, path: int, flags: int, mode: int) -> int:
    return _open(kernel, kernel.read_c_string(path), flags)


@syscall(5, 2)
def fstat(kernel: Kernel, number: int, place: int) -> int:
    description = kernel.table.get(number)
    if description is None:
        return EBADF
    kinds = {d.PipeEnd: 0o010600, d.Null: 0o020666, d.File: 0o100600, d.Setting: 0o100444}
    mode = 0o140777 if description.is_socket else kinds.get(type(description), 0o020666)
    kernel.memory.write(place, bytes(144))
    kernel.memory.store4(place + 24, mode)
    kernel.memory.store8(place + 16, 1)
    return 0


@syscall(262, 4)
def newfstatat(kernel: Kernel, directory: int, path: int, place: int, flags: int) -> int:
    if path and kernel.read_c_string(path) == b"" and flags & 0x1000:
        return int(fstat(kernel, directory, place))  # type: ignore[arg-type]
    name = kernel.read_c_string(path)
    if name in (b"/etc/localtime",):
        return ENOENT
    raise Unsupported("stat of a file during the run", name.decode(errors="replace"))


@syscall(22, 1)
def pipe(kernel: Kernel, place: int) -> int:
    return pipe2(kernel, place, 0)  # type: ignore[return-value]


@syscall(293, 2)
def pipe2(kernel: Kernel, place: int, flags: int) -> int:
    buffer = d.PipeBuffer()
    for offset, end in enumerate((d.PipeEnd(buffer, None), d.PipeEnd(None, buffer))):
        end.nonblocking = bool(flags & _O_NONBLOCK)
        kernel.memory.store4(place + 4 * offset, kernel.install(end, 0, bool(flags & _O_CLOEXEC)))
    return 0


def _eventfd(kernel: Kernel, count: int, flags: int) -> int:
    counter = d.EventCounter(count, bool(flags & 1))
    counter.nonblocking = bool(flags & _O_NONBLOCK)
    return kernel.install(counter, 0, bool(flags & _O_CLOEXEC))


@syscall(284, 1)
def eventfd(kernel: Kernel, count: int) -> int:
    return _eventfd(kernel, count, 0)


@syscall(290, 2)
def eventfd2(kernel: Kernel, count: int, flags: int) -> int:
    return _eventfd(kernel, count, flags)


@syscall(318, 3)
def getrandom(kernel: Kernel, buffer: int, count: int, flags: int) -> int:
    if flags & _GRND_NONBLOCK:
        return EAGAIN  # too early after boot; glibc's malloc then makes its key of the clock
    raise Unsupported("random numbers, which no replay can repeat")


def _sync(kernel: Kernel, number: int) -> int:
    return 0 if number in kernel.table else EBADF


constant(21, "access", ENOENT, 2)
syscall(74, 1)(_sync)
syscall(75, 1)(_sync)
constant(89, "readlink", EINVAL, 3)
