"""The process itself: its end, its names, its threads' locks."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from harness.kernel.clock import MILLISECOND, from_parts, later
from harness.kernel.endings import Crashed
from harness.kernel.errno import EAGAIN, ECHILD, EINVAL, ETIMEDOUT
from harness.kernel.table import constant, syscall
from harness.machine.ends import Unsupported
from harness.machine.values import Value

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_REQUEUE, _FUTEX_CMP_REQUEUE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET = 0, 1, 3, 4, 9, 10
_FUTEX_COMMAND, _FUTEX_CLOCK_REALTIME = 0x7F, 0x100
_ANY = 0xFFFFFFFF


def _exit(kernel: Kernel, status: int) -> int:
    raise Crashed(f"exit {status & 0xFF}")


@syscall(60, 1)
def exit_(kernel: Kernel, status: int) -> int:
    return _exit(kernel, status)


@syscall(231, 1)
def exit_group(kernel: Kernel, status: int) -> int:
    return _exit(kernel, status)


@syscall(39, 0)
def getpid(kernel: Kernel) -> int:
    return kernel.snapshot.pid


@syscall(186, 0)
def gettid(kernel: Kernel) -> int:
    return kernel.threads.tid


@syscall(202, 6)
def futex(kernel: Kernel, place: int, operation: int, value: int, timeout: int, place2: int, value3: int) -> int:
    threads = kernel.threads
    command = operation & _FUTEX_COMMAND
    if command in (_FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET) and value3 & _ANY != _ANY:
        raise Unsupported("a futex with a bit set of its own")
    if command in (_FUTEX_WAKE, _FUTEX_WAKE_BITSET):
        return threads.wake(place, value & _ANY)
    if command in (_FUTEX_WAIT, _FUTEX_WAIT_BITSET):
        if threads.has_sign():
            return 0
        if kernel.machine.pin(kernel.memory.load4(place)) != value & _ANY:
            return EAGAIN
        return 0 if threads.await_sign(place, _until(kernel, operation, timeout) if timeout else None) else ETIMEDOUT
    if command in (_FUTEX_REQUEUE, _FUTEX_CMP_REQUEUE):
        if command == _FUTEX_CMP_REQUEUE and kernel.machine.pin(kernel.memory.load4(place)) != value3 & _ANY:
            return EAGAIN
        woken = threads.wake(place, value & _ANY)
        moved = threads.move(place, place2, timeout & _ANY)
        return woken + moved if command == _FUTEX_CMP_REQUEUE else woken
    raise Unsupported(f"futex operation {command}")


def _until(kernel: Kernel, operation: int, place: int) -> Value:
    """FUTEX_WAIT takes a duration, FUTEX_WAIT_BITSET a point in time."""
    time = from_parts(kernel.memory.load8(place), kernel.memory.load8(place + 8), MILLISECOND)
    if operation & _FUTEX_COMMAND == _FUTEX_WAIT:
        return later(kernel.clock.now, time)
    return kernel.clock.monotonic(time) if operation & _FUTEX_CLOCK_REALTIME else time


@syscall(98, 2)
def getrusage(kernel: Kernel, who: int, place: int) -> int:
    kernel.memory.write(place, bytes(144))
    return 0


@syscall(97, 2)
def getrlimit(kernel: Kernel, resource: int, place: int) -> int:
    kernel.memory.write(place, struct.pack("<QQ", 1 << 20, 1 << 20))
    return 0


@syscall(302, 4)
def prlimit64(kernel: Kernel, process: int, resource: int, new: int, old: int) -> int:
    return getrlimit(kernel, resource, old) if old else 0  # type: ignore[return-value]


@syscall(204, 3)
def sched_getaffinity(kernel: Kernel, process: int, size: int, place: int) -> int:
    """The processors that the agent may run on: those that we may."""
    mask = sum(1 << number for number in os.sched_getaffinity(0))
    length = -(-mask.bit_length() // 64) * 8
    if size < length or size % 8:
        return EINVAL
    kernel.memory.write(place, mask.to_bytes(length, "little"))
    return length


def _frozen(kernel: Kernel, *_: object) -> int:
    raise Unsupported("starting another thread or process during the run")


for _number, _name in ((56, "clone"), (57, "fork"), (58, "vfork"), (59, "execve"), (435, "clone3")):
    syscall(_number, 0)(_frozen)


@syscall(24, 0)
def sched_yield(kernel: Kernel) -> int:
    """Whoever gives way waits for another thread."""
    if kernel.threads.current is None:
        kernel.threads.run_ready()
    return 0


constant(61, "wait4", ECHILD, 4)
constant(102, "getuid", 0)
constant(104, "getgid", 0)
constant(107, "geteuid", 0)
constant(108, "getegid", 0)
constant(110, "getppid", 1)
constant(157, "prctl", 0, 5)
constant(95, "umask", 0o22, 1)
constant(334, "rseq", 0, 4)
constant(273, "set_robust_list", 0, 2)
constant(324, "membarrier", 0, 3)
