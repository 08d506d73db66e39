"""A snapshot's file: what is written is read, and nothing that is not a snapshot gets through."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.frozen import PAGE, REGISTERS, Descriptor, Region, SignalAction, Signals, Snapshot, Thread
from harness.snapshot_file import MAGIC, is_snapshot, load, save
from soft.errors import SoftError

DIGEST = len(MAGIC)
LENGTH = DIGEST + 32
HEADER = LENGTH + 8


def example() -> Snapshot:
    registers = {name: (1 << 64) - 1 - index for index, name in enumerate(REGISTERS)}
    xmm = tuple((1 << 128) - 1 - index for index in range(16))
    data = bytes(PAGE) + b"\x01" * PAGE + bytes(2 * PAGE) + b"\x02" * PAGE
    return Snapshot(
        main=7,
        threads=(Thread(6, registers, xmm, 1, 2, None, "helper"), Thread(7, registers, xmm, 0x1F80, 0x37F, 7, "main")),
        regions=(
            Region(0x10000, 0x15000, "rw-p", "[heap]", data),
            Region(0x15000, 0x16000, "---p", "", None),
            Region(0x20000, 0x24000, "rw-p", "/a/\udcff", bytes(4 * PAGE), 0x3000),
        ),
        descriptors={
            3: Descriptor(3, "control", None, os.O_RDWR, "socket:[1]", True, {"unread": 0, "pending": ""}),
            4: Descriptor(4, "epoll", None, 0, "anon_inode:[eventpoll]", False, {"watched": ((3, 1, (1 << 64) - 1),)}),
            9: Descriptor(9, "port", 2, 0, "socket:[2]", False),
        },
        pid=6,
        realtime_ns=1_700_000_000_000_000_000,
        monotonic_ns=5,
        boottime_ns=6,
        brk=0x15000,
        executable="/usr/sbin/switchd",
        port_framing="packet",
        signals=Signals(1, 2, 3, 4, {14: SignalAction(1, 2, 3, 4)}, 5, 6),
        sent_before=b"\x01\x00\x00\x08\xff\xff\xff\xff",
        label="switchd",
        ports=2,
        handshake=False,
        version=4,
        stubs=("3 functions replaced by constants",),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(example(), tmp_path / "a.snapshot")
    return tmp_path / "a.snapshot"


def test_what_is_saved_is_loaded(path: Path) -> None:
    loaded = load(path)
    # A name that is not UTF-8 is for people only.
    regions = tuple(replace(region, name=region.name.replace("\udcff", "\ufffd")) for region in example().regions)
    assert loaded == replace(example(), regions=regions)
    assert loaded.page(0x14) == (b"\x02" * PAGE, "rw")
    assert is_snapshot(path)


def test_the_file_is_private_and_small(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size < 3000
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match=r"the snapshot cannot be written \(No such file or directory\)\.$"):
        save(example(), tmp_path / "missing" / "a.snapshot")
    (tmp_path / "taken").mkdir()
    with pytest.raises(SoftError, match=r"the snapshot cannot be written"):
        save(example(), tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken"]


def test_truncated_anywhere(path: Path) -> None:
    whole = path.read_bytes()
    for size in (*range(0, len(whole), 7), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SoftError, match=r"is not a snapshot\.$|is truncated or damaged: "):
            load(path)


def test_what_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert not is_snapshot(tmp_path / "text")
    os.mkfifo(tmp_path / "pipe")
    for name in ("text", "pipe"):
        with pytest.raises(SoftError, match=rf"{name} is not a snapshot\.$"):
            load(tmp_path / name)
    for name, why in (("missing", "No such file or directory"), (".", "Is a directory")):
        with pytest.raises(SoftError, match=rf"cannot be read \({why}\)\.$"):
            load(tmp_path / name)


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the header of a file and give it the checksum that belongs to it."""
    data = path.read_bytes()
    size = int.from_bytes(data[LENGTH:HEADER], "big")
    header = json.loads(zlib.decompress(data[HEADER : HEADER + size]))
    change(header)
    packed = zlib.compress(json.dumps(header).encode())
    sign(path, len(packed).to_bytes(8, "big") + packed + data[HEADER + size :])


def sign(path: Path, rest: bytes) -> None:
    path.write_bytes(MAGIC + hashlib.sha256(rest).digest() + rest)


@pytest.mark.parametrize(
    ("where", "value", "why"),
    [
        (("main",), 99, "its main thread is missing"),
        (("main",), "x", r"its header does not parse \(Expected `int`, got `str` - at `\$\.main`\)"),
        (("threads",), [], "its main thread is missing"),
        (("threads", 0, "registers"), {"rax": 1}, "a thread's registers are not those of x86-64"),
        (("threads", 0, "registers", "rax"), -1, "a register has over 64 bits"),
        (("threads", 0, "xmm"), [], "a thread has not 16 vector registers"),
        (("threads", 0, "xmm", 3), "zz", "a vector register is not 128 bits"),
        (("regions", 0, "start"), 0x10001, "a memory region does not consist of pages"),
        (("regions", 0, "start"), -4096, "its memory regions overlap or are out of order"),
        (("regions", 0, "end"), 0x16000, "its memory regions overlap or are out of order"),
        (("regions", 2, "end"), 0x20000 + (1 << 40), "it has more than 1 GB of memory"),
        (("regions", 0, "permissions"), "rwz", "a memory region has no permissions"),
        (("regions", 0, "runs"), [[1, 5]], "a memory region has pages outside of it"),
        (("regions", 0, "runs"), [[3, 1], [1, 1]], "the pages of a memory region are out of order"),
        (("regions", 0, "runs"), [[1, 1], [2, 3]], "it ends before its memory does"),
        (("descriptors", 0, "kind"), "socket", "it has no control channel"),
        (("descriptors", 1, "kind"), "wormhole", "the descriptor kind 'wormhole' is unknown"),
        (("descriptors", 1, "number"), 3, "a descriptor is there twice"),
        (("descriptors", 2, "port"), None, "a port has no number"),
        (("port_framing",), "smoke", "the framing of its ports is unknown"),
        (("surprise",), 1, r"its header does not parse \(Object contains unknown field `surprise`\)"),
    ],
)
def test_a_header_that_lies(path: Path, where: tuple[str | int, ...], value: object, why: str) -> None:
    def change(header: Any) -> None:
        for key in where[:-1]:
            header = header[key]
        header[where[-1]] = value

    rewrite(path, change)
    with pytest.raises(SoftError, match=rf"is not a good snapshot: {why}\.$"):
        load(path)


def test_a_header_that_explodes(path: Path) -> None:
    packed = zlib.compress(b" " * (20 << 20))
    sign(path, len(packed).to_bytes(8, "big") + packed)
    with pytest.raises(SoftError, match=r"its header has more than 16777216 bytes\.$"):
        load(path)
    sign(path, (1 << 62).to_bytes(8, "big") + packed)
    with pytest.raises(SoftError, match=r"its header is longer than the file\.$"):
        load(path)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, 1 << 16), byte=st.integers(0, 255), cut=st.integers(0, 200), sign_it=st.booleans())
def test_any_damage_is_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: int, sign_it: bool
) -> None:
    path = tmp_path_factory.mktemp("damage") / "a.snapshot"
    save(example(), path)
    data = bytearray(path.read_bytes())
    data = data[: len(data) - cut] if cut < 100 else data
    data[at % len(data)] = byte
    if sign_it:
        sign(path, bytes(data[LENGTH:]))
    else:
        path.write_bytes(data)
    # A file that got through anyway is one in which the damage hit nothing that is checked.
    with contextlib.suppress(SoftError):
        assert load(path).thread.in_syscall is not None
