"""Put a live agent back to an earlier moment: its memory and registers written back, the rest proved unchanged.

A process of one thread is its memory, its registers, and what the kernel keeps for it. The first two are restored; for
the third the list of mappings, the descriptors with what the kernel tells of them, and the signal masks must be what
they were, and every byte sent to the agent must have been read. Where any of this is not so, the agent is not rewound.
Clocks go on: a state that is rewound to must be young, or the agent would find that much time has passed at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from soft.launch.agent import Agent

# Our agents have 300 kB; an address sanitiser's shadow would be terabytes.
_MOST_BYTES = 16 << 20
# Seconds that an agent may find gone at once: probes for a silent peer begin at five.
_MOST_AGE = 2.0
_PATIENCE = 1.0

_GETREGS, _SETREGS, _GETFPREGS, _SETFPREGS, _DETACH, _SEIZE, _INTERRUPT = 12, 13, 14, 15, 17, 0x4206, 0x4207
_EVENT_STOP = 128
_WALL = 0x40000000
# Places in struct user_regs_struct.
_RAX, _ORIG_RAX, _RIP, _REGISTERS = 10, 15, 16, 27
_NO_CALL = (1 << 64) - 1
# What rax holds when a call was interrupted: EINTR, and the kernel's own numbers that only a tracer sees.
_INTERRUPTED = frozenset(-number & (1 << 64) - 1 for number in (4, 512, 513, 514, 516))
_FXSAVE_BYTES = 512
# The time left on a timer, and the position in a log, are no state that an agent could see.
_PASSING = re.compile(rb"^(?:it_value|pos|ticks):.*\n", re.MULTILINE)
_SIGNALS = re.compile(rb"^(?:Threads|SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt):.*\n", re.MULTILINE)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What the kernel keeps for a process and can be seen from outside."""

    mappings: bytes
    descriptors: tuple[tuple[str, str, bytes], ...]
    signals: bytes


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of a live agent that it can be put back to."""

    pid: int
    taken: float
    registers: bytes
    floating_point: bytes
    memory: tuple[tuple[int, bytes], ...]
    kernel: _Kernel


def mark(agent: Agent) -> Moment | None:
    """The agent's state now, while it is quiet. None if it cannot be put back to it."""
    pid = agent.pid
    try:
        if len(os.listdir(f"/proc/{pid}/task")) != 1:
            return None
        kernel = _kernel(pid)
        ranges = _writable(kernel.mappings)
        if ranges is None:
            return None
        with _stopped(pid), _memory(pid) as memory:
            registers, floating_point = _registers(pid)
            if _before_the_call(registers) is None:
                return None
            parts = tuple((start, os.pread(memory, size, start)) for start, size in ranges)
    except OSError:
        return None
    if any(len(content) != size for (_, content), (_, size) in zip(parts, ranges, strict=True)):
        return None
    return Moment(pid, time.monotonic(), registers, floating_point, parts, kernel)


def rewind(agent: Agent, moment: Moment) -> bool:
    """Put a quiet agent back to a moment. False if it cannot be proved that this is the same state."""
    pid = moment.pid
    if agent.ended() is not None or time.monotonic() - moment.taken > _MOST_AGE or not agent.has_read_everything():
        return False
    before = _before_the_call(moment.registers)
    assert before is not None
    try:
        with _stopped(pid), _memory(pid) as memory:
            registers, _ = _registers(pid)
            # Only a thread that waits in a call can be given another one to make.
            if _before_the_call(registers) is None or _kernel(pid) != moment.kernel:
                return False
            for start, content in moment.memory:
                if os.pwrite(memory, content, start) != len(content):
                    return False
            _ptrace(_SETFPREGS, pid, moment.floating_point)
            _ptrace(_SETREGS, pid, before)
    except OSError:
        return False
    return True


def _kernel(pid: int) -> _Kernel:
    mappings = Path(f"/proc/{pid}/maps").read_bytes()
    descriptors = []
    for name in sorted(os.listdir(f"/proc/{pid}/fd")):
        info = Path(f"/proc/{pid}/fdinfo/{name}").read_bytes()
        descriptors.append((name, os.readlink(f"/proc/{pid}/fd/{name}"), _PASSING.sub(b"", info)))
    signals = b"".join(_SIGNALS.findall(Path(f"/proc/{pid}/status").read_bytes()))
    return _Kernel(mappings, tuple(descriptors), signals)


def _writable(mappings: bytes) -> list[tuple[int, int]] | None:
    """Start and size of each part that the agent can write. None if that is too much, or shared with others."""
    ranges = []
    for line in mappings.splitlines():
        place, permissions = line.split(b" ", 2)[:2]
        if not permissions.startswith(b"rw"):
            if permissions[1:2] == b"w":
                return None
            continue
        if permissions.endswith(b"s"):
            return None
        start, _, stop = place.partition(b"-")
        ranges.append((int(start, 16), int(stop, 16) - int(start, 16)))
    return ranges if sum(size for _, size in ranges) <= _MOST_BYTES else None


def _before_the_call(registers: bytes) -> bytes | None:
    """The registers with which the interrupted call is made again from its beginning; None outside of a call."""
    values = (ctypes.c_uint64 * _REGISTERS).from_buffer_copy(registers)
    if values[_ORIG_RAX] >= 1 << 63 or values[_RAX] not in _INTERRUPTED:
        return None
    values[_RAX], values[_ORIG_RAX], values[_RIP] = values[_ORIG_RAX], _NO_CALL, values[_RIP] - 2
    return bytes(values)


def _registers(pid: int) -> tuple[bytes, bytes]:
    general, floating_point = bytearray(8 * _REGISTERS), bytearray(_FXSAVE_BYTES)
    _ptrace(_GETREGS, pid, general)
    _ptrace(_GETFPREGS, pid, floating_point)
    return bytes(general), bytes(floating_point)


@contextlib.contextmanager
def _memory(pid: int) -> Iterator[int]:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
    try:
        yield memory
    finally:
        os.close(memory)


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """The process stands still inside the block, traced by this thread. OSError if it cannot be stopped."""
    _ptrace(_SEIZE, pid)
    signal = 0
    try:
        _ptrace(_INTERRUPT, pid)
        status = _next_stop(pid)
        if status >> 16 != _EVENT_STOP:
            # A signal came first: the agent gets it when it is let go.
            signal = os.WSTOPSIG(status)
            raise InterruptedError("The process met a signal instead of the interruption")
        yield
    finally:
        with contextlib.suppress(OSError):
            _ptrace(_DETACH, pid, signal)


def _next_stop(pid: int) -> int:
    deadline = time.monotonic() + _PATIENCE
    while True:
        found, status = os.waitpid(pid, _WALL | os.WNOHANG)
        if found and not os.WIFSTOPPED(status):
            raise ProcessLookupError("The process has ended")
        if found:
            return status
        if time.monotonic() > deadline:
            raise TimeoutError("The process does not come to a stop")
        time.sleep(0)


def _ptrace(request: int, pid: int, data: int | bytes | bytearray = 0) -> None:
    place: object = None
    if isinstance(data, int):
        place = ctypes.c_void_p(data)
    elif isinstance(data, bytearray):
        place = ctypes.addressof(ctypes.c_ubyte.from_buffer(data))
    elif data:
        place = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
    if _libc.ptrace(request, pid, None, place) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
