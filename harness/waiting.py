"""Which descriptors does a blocked system call wait for? Decoded from its arguments, as the x86-64 ABI has them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from harness.frozen import Descriptor

POLL, PPOLL, SELECT, PSELECT, RESTART = 7, 271, 23, 270, 219
EPOLL = frozenset({232, 281, 441})  # epoll_wait, epoll_pwait, epoll_pwait2
READ = frozenset({0, 19, 45, 47, 299})  # read, readv, recvfrom, recvmsg, recvmmsg
SLEEP = frozenset({34, 35, 230, 128, 130})  # pause, nanosleep, clock_nanosleep, rt_sigtimedwait, rt_sigsuspend

# More descriptors than any process polls: a larger count is not one.
_MOST_DESCRIPTORS = 65536
# Epoll descriptors may watch each other, five deep at most.
_DEEPEST_EPOLL = 5

Read = Callable[[int, int], bytes]


def waits_for(
    call: int | None, registers: Mapping[str, int], read: Read, descriptors: Mapping[int, Descriptor]
) -> frozenset[int]:
    """The descriptors whose input ends the call; none for any other call. `read` gives memory, or raises OSError."""
    first, second = registers["rdi"], registers["rsi"]
    if call in (POLL, PPOLL, RESTART):
        return _polled(first, second, read)
    if call in (SELECT, PSELECT):
        return _selected(first, second, read)
    if call in EPOLL:
        return _watched(first, descriptors, _DEEPEST_EPOLL)
    return frozenset({first & 0xFFFFFFFF}) if call in READ else frozenset()


def _polled(array: int, count: int, read: Read) -> frozenset[int]:
    count &= 0xFFFFFFFF
    if not array or count > _MOST_DESCRIPTORS:
        return frozenset()
    try:
        data = read(array, 8 * count)
    except OSError:
        return frozenset()
    return frozenset(number for number, _, _ in struct.iter_unpack("<ihh", data[: len(data) & ~7]) if number >= 0)


def _selected(count: int, readable: int, read: Read) -> frozenset[int]:
    count &= 0xFFFFFFFF
    if not readable or count > _MOST_DESCRIPTORS:
        return frozenset()
    try:
        bits = int.from_bytes(read(readable, (count + 7) // 8), "little")
    except OSError:
        return frozenset()
    return frozenset(number for number in range(count) if bits >> number & 1)


def _watched(number: int, descriptors: Mapping[int, Descriptor], depth: int) -> frozenset[int]:
    epoll = descriptors.get(number & 0xFFFFFFFF)
    if epoll is None or epoll.kind != "epoll" or not depth:
        return frozenset()
    watched = epoll.detail.get("watched", ())
    assert isinstance(watched, tuple)
    found = {target for target, _, _ in watched}
    return frozenset(found).union(*(_watched(target, descriptors, depth - 1) for target in found))
