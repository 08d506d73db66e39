"""The cache of freed blocks: nothing that stood in a block decides anything when it is freed."""

from __future__ import annotations

import struct

from harness.frozen import Region
from harness.heap import without_cache

HEAP = Region(0x5000, 0x6000, "rw-p", "[heap]", bytes(0x1000))


def memory(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def test_no_size_is_left() -> None:
    before = memory(7, 0x5000, 1, 0, 0, 0, 1)
    libc = Region(0x9000, 0xA000, "rw-p", "/lib/libc.so.6", before)
    _, changed = without_cache([HEAP, libc])
    assert changed.content == memory(7, 0x5000, 0, 0, 0, 0, 1)


def test_what_is_something_else_stays() -> None:
    for name, permissions, content in (
        ("/lib/libc.so.6", "r--p", memory(0x5000, 1, 0, 0, 0)),
        ("", "rw-p", memory(0x5000, 1, 0, 0, 0)),
        ("/lib/libc.so.6", "rw-p", memory(0x5000, 2, 0, 0, 0)),
        ("/lib/libc.so.6", "rw-p", memory(0x5000, 1, 0, 0, 0, 0x5000, 1, 0, 0, 0)),
    ):
        region = Region(0x9000, 0xA000, permissions, name, content)
        assert without_cache([HEAP, region]) == (HEAP, region)
    assert without_cache([region]) == (region,)
