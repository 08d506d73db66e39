"""Which descriptors a system call waits for, from registers and memory as they would be."""

from __future__ import annotations

import struct

import pytest

from harness.frozen import Descriptor
from harness.waiting import waits_for

ARRAY = 0x7000
SET = 0x8000


def read(address: int, size: int) -> bytes:
    memory = {
        ARRAY: struct.pack("<ihhihhihh", 3, 1, 0, -1, 1, 0, 9, 1, 0),
        SET: (1 << 3 | 1 << 64).to_bytes(16, "little"),
    }
    if address not in memory:
        raise OSError("not mapped")
    return memory[address][:size]


def epoll(number: int, *watched: int) -> Descriptor:
    return Descriptor(number, "epoll", None, 0, "", False, {"watched": tuple((each, 1, 0) for each in watched)})


@pytest.mark.parametrize(
    ("call", "rdi", "rsi", "expected"),
    [
        (7, ARRAY, 3, {3, 9}),  # poll; a negative descriptor is left out
        (271, ARRAY, 1, {3}),
        (219, ARRAY, 3, {3, 9}),  # restart_syscall has the arguments of the poll that it goes on with
        (7, 0, 0, set()),
        (7, 0xDEAD, 3, set()),
        (7, ARRAY, 1 << 31, set()),
        (23, 65, SET, {3, 64}),  # select
        (270, 64, SET, {3}),
        (23, 64, 0, set()),
        (23, 64, 0xDEAD, set()),
        (0, 5, 0, {5}),  # read
        (45, 1 << 32 | 5, 0, {5}),  # recvfrom; only 32 bits are a descriptor
        (232, 20, 0, {3, 21, 4, 22}),  # epoll_wait, one epoll inside another
        (232, 22, 0, {22}),  # which watches itself
        (232, 3, 0, set()),
        (202, 5, 0, set()),  # futex
        (None, 5, 0, set()),
    ],
)
def test_waits_for(call: int | None, rdi: int, rsi: int, expected: set[int]) -> None:
    descriptors = {each.number: each for each in (epoll(20, 3, 21), epoll(21, 4, 22), epoll(22, 22))}
    assert waits_for(call, {"rdi": rdi, "rsi": rsi}, read, descriptors) == expected
