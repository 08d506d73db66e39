"""Asking for the time, and sleeping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.kernel.clock import MILLISECOND, from_parts, later, split
from harness.kernel.errno import EINVAL
from harness.kernel.table import syscall
from harness.machine.values import Value

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_REALTIME, _REALTIME_COARSE, _TAI = 0, 5, 11
_CPU_CLOCKS = (2, 3)
_ABSOLUTE = 1


@syscall(228, 2)
def clock_gettime(kernel: Kernel, clock: int, place: int) -> int:
    if clock in _CPU_CLOCKS:
        time: Value = 0  # no processor time is used up in virtual time
    elif clock in (_REALTIME, _REALTIME_COARSE, _TAI):
        time = kernel.clock.read(realtime=True)
    else:
        time = kernel.clock.read()
    seconds, nanoseconds = split(time, MILLISECOND)
    kernel.memory.store8(place, seconds)
    kernel.memory.store8(place + 8, nanoseconds)
    return 0


@syscall(229, 2)
def clock_getres(kernel: Kernel, clock: int, place: int) -> int:
    if place:
        kernel.memory.store8(place, 0)
        kernel.memory.store8(place + 8, 1)
    return 0


@syscall(96, 2)
def gettimeofday(kernel: Kernel, place: int, zone: int) -> int:
    if place:
        seconds, micro = split(kernel.clock.read(realtime=True), 1000)
        kernel.memory.store8(place, seconds)
        kernel.memory.store8(place + 8, micro)
    if zone:
        kernel.memory.store8(zone, 0)
    return 0


@syscall(201, 1)
def time(kernel: Kernel, place: int) -> Value:
    seconds, _ = split(kernel.clock.read(realtime=True), MILLISECOND)
    if place:
        kernel.memory.store8(place, seconds)
    return seconds


def _sleep(kernel: Kernel, until: Value) -> int:
    kernel.wait(lambda: False, until)
    return 0


@syscall(35, 2)
def nanosleep(kernel: Kernel, request: int, left: int) -> int:
    load = kernel.memory.load8
    return _sleep(kernel, later(kernel.clock.now, from_parts(load(request), load(request + 8), MILLISECOND)))


@syscall(230, 4)
def clock_nanosleep(kernel: Kernel, clock: int, flags: int, request: int, left: int) -> int:
    load = kernel.memory.load8
    duration = from_parts(load(request), load(request + 8), MILLISECOND)
    if flags & _ABSOLUTE:
        if clock in (_REALTIME, _TAI):
            return EINVAL
        return _sleep(kernel, duration)
    return _sleep(kernel, later(kernel.clock.now, duration))
