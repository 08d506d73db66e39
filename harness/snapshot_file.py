"""A snapshot as one file, to be explored on another machine.

    soft snapshot 1\\n      16 bytes
    sha256                 32 bytes, of all that follows
    length                 8 bytes, big-endian: how long the header is, compressed
    header                 JSON, zlib
    pages                  the pages that are not all zero, in the order of their addresses, zlib

A file may come from anybody and may have been cut: everything is checked before it is used, and memory is bounded by
what comes out of the decompressor, not by what the file claims.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.frozen import FRAMINGS, KINDS, PAGE, REGISTERS, Descriptor, Region, Signals, Snapshot, Thread
from soft.errors import SoftError

MAGIC = b"soft snapshot 1\n"
# A process with more memory than this is no agent at rest (Open vSwitch: 76 MB), and could not be explored.
MOST_BYTES = 1 << 30
# Open vSwitch's header has 60 kB.
MOST_HEADER_BYTES = 16 << 20
_LENGTH = struct.Struct(">Q")
_CHUNK = 1 << 20
# Level 1 takes a tenth of the time of the default and makes a file a tenth larger.
_LEVEL = 1


class _Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    start: int
    end: int
    permissions: str
    name: str
    offset: int
    runs: tuple[tuple[int, int], ...] | None
    """Pages that are not zero: the first one's index in the region, and how many; None if the region was not read."""


class _Thread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tid: int
    registers: dict[str, int]
    xmm: tuple[str, ...]
    mxcsr: int
    fcw: int
    in_syscall: int | None
    name: str


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    main: int
    threads: tuple[_Thread, ...]
    regions: tuple[_Region, ...]
    descriptors: tuple[Descriptor, ...]
    pid: int
    realtime_ns: int
    monotonic_ns: int
    boottime_ns: int
    brk: int
    executable: str
    port_framing: str
    signals: Signals
    sent_before: bytes
    label: str
    ports: int
    handshake: bool
    version: int
    stubs: tuple[str, ...]


# What the header holds as it is; the rest has a form of its own there.
_PLAIN = (
    "main", "pid", "realtime_ns", "monotonic_ns", "boottime_ns", "brk", "executable", "port_framing", "signals",
    "sent_before", "label", "ports", "handshake", "version", "stubs",
)  # fmt: skip


def is_snapshot(path: Path) -> bool:
    """Whether a file begins as a snapshot does."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


# ---------------------------------------------------------------------------------------------- writing


def save(snapshot: Snapshot, path: Path) -> None:
    """Write the file, whole or not at all. It holds the agent's memory: only the owner may read it."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                _write(snapshot, file)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise SoftError(f"{path}: the snapshot cannot be written ({error.strerror}).") from None


def _write(snapshot: Snapshot, file: BinaryIO) -> None:
    regions = [(region, _runs(region.content)) for region in snapshot.regions]
    header = zlib.compress(msgspec.json.encode(_header(snapshot, regions)), _LEVEL)
    digest = hashlib.sha256()

    def put(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    file.write(MAGIC + bytes(digest.digest_size))
    put(_LENGTH.pack(len(header)) + header)
    packer = zlib.compressobj(_LEVEL)
    for region, runs in regions:
        for first, count in runs or ():
            assert region.content is not None
            put(packer.compress(region.content[first * PAGE : (first + count) * PAGE]))
    put(packer.flush())
    file.seek(len(MAGIC))
    file.write(digest.digest())


def _header(snapshot: Snapshot, regions: list[tuple[Region, tuple[tuple[int, int], ...] | None]]) -> _Header:
    return _Header(
        threads=tuple(
            _Thread(t.tid, dict(t.registers), tuple(f"{x:032x}" for x in t.xmm), t.mxcsr, t.fcw, t.in_syscall, t.name)
            for t in snapshot.threads
        ),
        regions=tuple(
            _Region(region.start, region.end, region.permissions, _printable(region.name), region.offset, runs)
            for region, runs in regions
        ),
        descriptors=tuple(replace(each, link=_printable(each.link)) for each in snapshot.descriptors.values()),
        **{name: getattr(snapshot, name) for name in _PLAIN},
    )


def _printable(name: str) -> str:
    """A file's name may be any bytes; JSON is UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _runs(content: bytes | None) -> tuple[tuple[int, int], ...] | None:
    """The pages that are not zero, as (first, count)."""
    if content is None:
        return None
    runs: list[tuple[int, int]] = []
    zero = bytes(PAGE)
    for index in range(len(content) // PAGE):
        if content[index * PAGE : (index + 1) * PAGE] == zero:
            continue
        if runs and sum(runs[-1]) == index:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((index, 1))
    return tuple(runs)


# ---------------------------------------------------------------------------------------------- reading


def load(path: Path) -> Snapshot:
    """Read a snapshot's file. One that is damaged, or was never one, is a SoftError that says so."""
    try:
        # Without O_NONBLOCK a named pipe would block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or file.read(len(MAGIC)) != MAGIC:
                raise SoftError(f"{path} is not a snapshot.")
            return _read(file, status.st_size, str(path))
    except OSError as error:
        raise SoftError(f"{path}: the snapshot cannot be read ({error.strerror}).") from None


class _Damaged(Exception):
    """What is wrong with a file, as the end of a sentence."""


def _read(file: BinaryIO, size: int, path: str) -> Snapshot:
    _check_digest(file, path)
    try:
        length = _LENGTH.unpack(file.read(_LENGTH.size))[0]
        if length > size:
            raise _Damaged("its header is longer than the file")
        header = _decode(_inflate(file.read(length), MOST_HEADER_BYTES))
        return _snapshot(header, _Pages(file))
    except (_Damaged, struct.error, zlib.error) as error:
        reason = str(error) if isinstance(error, _Damaged) else "its parts do not fit together"
        raise SoftError(f"{path} is not a good snapshot: {reason}.") from None


def _check_digest(file: BinaryIO, path: str) -> None:
    wanted = file.read(hashlib.sha256().digest_size)
    digest = hashlib.sha256()
    begin = file.tell()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    if digest.digest() != wanted:
        raise SoftError(f"{path} is truncated or damaged: its content does not have the checksum that it should.")
    file.seek(begin)


def _inflate(data: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(data, most)
    if unpacker.unconsumed_tail:
        raise _Damaged(f"its header has more than {most} bytes")
    if not unpacker.eof:
        raise _Damaged("its header is cut short")
    return text


def _decode(text: bytes) -> _Header:
    try:
        header = msgspec.json.decode(text, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Damaged(f"its header does not parse ({error})") from None
    _check(header)
    return header


class _Pages:
    """The compressed pages, a few at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacker = zlib.decompressobj()

    def take(self, size: int) -> Iterator[bytes]:
        while size:
            data = self._unpacker.unconsumed_tail or self._file.read(_CHUNK)
            part = self._unpacker.decompress(data, size)
            if not part and not data:
                raise _Damaged("it ends before its memory does")
            size -= len(part)
            yield part


def _check(header: _Header) -> None:
    """Everything that the explorer relies on."""
    _require(any(thread.tid == header.main for thread in header.threads), "its main thread is missing")
    for thread in header.threads:
        _require(set(thread.registers) == set(REGISTERS), "a thread's registers are not those of x86-64")
        _require(all(0 <= value < 1 << 64 for value in thread.registers.values()), "a register has over 64 bits")
        _require(len(thread.xmm) == 16, "a thread has not 16 vector registers")
        _require(all(re.fullmatch(r"[0-9a-f]{32}", x) for x in thread.xmm), "a vector register is not 128 bits")
    numbers = [each.number for each in header.descriptors]
    _require(len(set(numbers)) == len(numbers), "a descriptor is there twice")
    _require(any(each.kind == "control" for each in header.descriptors), "it has no control channel")
    for each in header.descriptors:
        _require(each.kind in KINDS, f"the descriptor kind {each.kind[:20]!r} is unknown")
        _require((each.kind == "port") == (each.port is not None), "a port has no number")
    _require(header.port_framing in FRAMINGS, "the framing of its ports is unknown")
    _check_regions(header.regions)


def _check_regions(regions: tuple[_Region, ...]) -> None:
    end = total = 0
    for region in regions:
        _require(end <= region.start < region.end <= 1 << 64, "its memory regions overlap or are out of order")
        _require(region.start % PAGE == 0 and region.end % PAGE == 0, "a memory region does not consist of pages")
        _require(bool(re.fullmatch(r"[r-][w-][x-][ps]", region.permissions)), "a memory region has no permissions")
        end, page = region.end, 0
        if region.runs is None:
            continue
        total += region.end - region.start
        _require(total <= MOST_BYTES, f"it has more than {MOST_BYTES >> 30} GB of memory")
        for first, count in region.runs:
            _require(page <= first and count > 0, "the pages of a memory region are out of order")
            page = first + count
        _require(page * PAGE <= region.end - region.start, "a memory region has pages outside of it")


def _require(good: bool, otherwise: str) -> None:
    if not good:
        raise _Damaged(otherwise)


def _snapshot(header: _Header, pages: _Pages) -> Snapshot:
    return Snapshot(
        threads=tuple(
            Thread(t.tid, t.registers, tuple(int(x, 16) for x in t.xmm), t.mxcsr, t.fcw, t.in_syscall, t.name)
            for t in header.threads
        ),
        regions=tuple(
            Region(r.start, r.end, r.permissions, r.name, _content(r, pages), r.offset) for r in header.regions
        ),
        descriptors=_by_number(header.descriptors),
        **{name: getattr(header, name) for name in _PLAIN},
    )


def _by_number(descriptors: tuple[Descriptor, ...]) -> Mapping[int, Descriptor]:
    return {each.number: each for each in descriptors}


def _content(region: _Region, pages: _Pages) -> bytes | None:
    if region.runs is None:
        return None
    if not region.runs:
        return bytes(region.end - region.start)
    parts: list[bytes] = []
    page = 0
    for first, count in region.runs:
        parts.append(bytes((first - page) * PAGE))
        parts += pages.take(count * PAGE)
        page = first + count
    parts.append(bytes(region.end - region.start - page * PAGE))
    return b"".join(parts)
