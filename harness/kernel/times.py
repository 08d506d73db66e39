"""Asking for the time, and sleeping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.kernel.clock import MILLISECOND, from_parts, later, split
from harness.kernel.endings import Interrupted
from harness.kernel.errno import EINVAL
from harness.kernel.table import syscall
from harness.machine.values import Value, concrete

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_REALTIME, _REALTIME_COARSE, _TAI = 0, 5, 11
_CPU_CLOCKS = (2, 3)
_LAST_CLOCK = 11
_SECOND_NS = 1_000_000_000
_ABSOLUTE = 1


@syscall(228, 2)
def clock_gettime(kernel: Kernel, clock: int, place: int) -> int:
    if clock > _LAST_CLOCK:
        return EINVAL
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


def _sleep(kernel: Kernel, until: Value, left: int = 0) -> int:
    try:
        kernel.wait(lambda: False, until)
    except Interrupted:
        if left:
            rest = max(0, concrete(until) - concrete(kernel.clock.now))
            seconds, nanoseconds = split(rest, MILLISECOND)
            kernel.memory.store8(left, seconds)
            kernel.memory.store8(left + 8, nanoseconds)
        raise
    return 0


def _duration(kernel: Kernel, place: int) -> Value | None:
    """A timespec in milliseconds; None if it is none."""
    seconds, nanoseconds = kernel.memory.load8(place), kernel.memory.load8(place + 8)
    if concrete(seconds) >> 63 or concrete(nanoseconds) >= _SECOND_NS:
        return None
    return from_parts(seconds, nanoseconds, MILLISECOND)


@syscall(35, 2)
def nanosleep(kernel: Kernel, request: int, left: int) -> int:
    duration = _duration(kernel, request)
    return EINVAL if duration is None else _sleep(kernel, later(kernel.clock.now, duration), left)


@syscall(230, 4)
def clock_nanosleep(kernel: Kernel, clock: int, flags: int, request: int, left: int) -> int:
    duration = _duration(kernel, request)
    if duration is None or clock > _LAST_CLOCK:
        return EINVAL
    if flags & _ABSOLUTE:
        return _sleep(kernel, kernel.clock.monotonic(duration) if clock in (_REALTIME, _TAI) else duration)
    return _sleep(kernel, later(kernel.clock.now, duration), left)
