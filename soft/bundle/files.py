"""Where a bundle's bytes come from: a directory, or one compressed file. Both belong to a stranger.

Only five names are ever read; nothing is extracted, links are not followed, and what is read is bounded by what comes
out, not by what a header claims.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol

from soft.errors import SoftError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MANIFEST = "manifest.json"
SCENARIO = "scenario.toml"
TERMS = "terms.smt2"
TRACES = "traces.jsonl"
PATHS = "paths.jsonl"
NAMES = (MANIFEST, SCENARIO, TERMS, TRACES, PATHS)
# While an agent is explored, finished paths are kept here, in the same format but for the manifest.
JOURNAL = "journal"
START = "start.json"

# 100,000 paths of a real agent take some 100 MB; nobody needs more than this in one file.
MOST_FILE_BYTES = 1 << 30
MOST_MANIFEST_BYTES = 1 << 20
LONGEST_LINE = 4 << 20
MOST_LINES = 5_000_000
# Real bundles compress 20 to 100 times. Below the first 16 MB no ratio is suspicious.
MOST_RATIO = 500
RATIO_FREE_BYTES = 16 << 20

_END = struct.Struct("<4s4H2LH")  # the end record of a ZIP file
_MOST_DIRECTORY_BYTES = 1 << 16


class Source(Protocol):
    """Named streams of bytes. `label` names the whole in messages."""

    label: str

    def open(self, name: str) -> BinaryIO: ...


class DirectorySource:
    """A bundle's directory, or its journal."""

    def __init__(self, directory: Path, label: str | None = None) -> None:
        self.label = label or str(directory)
        self._directory = directory

    def open(self, name: str) -> BinaryIO:
        try:
            # Without O_NONBLOCK a named pipe in place of a file would block for ever.
            descriptor = os.open(self._directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise SoftError(f"{self.label}: the file {name} is missing.") from None
        except OSError as error:
            raise SoftError(f"{self.label}: {name} cannot be opened ({error.strerror}).") from None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_FILE_BYTES:
            os.close(descriptor)
            if stat.S_ISREG(status.st_mode):
                raise too_large(self.label, name)
            raise SoftError(f"{self.label}: {name} is not a plain file.")
        return os.fdopen(descriptor, "rb", buffering=1 << 18)


class ArchiveSource:
    """A bundle in one ZIP file (`.soft`)."""

    def __init__(self, file: Path) -> None:
        self.label = str(file)
        _check_end_record(file)
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise SoftError(f"{self.label}: this is not a readable bundle file ({error}).") from None
        seen = set()
        for member in self._archive.infolist():
            name = member.filename
            if name not in NAMES:
                raise SoftError(f"{self.label}: a bundle has no file called {name[:80]!r}.")
            if name in seen:
                raise SoftError(f"{self.label}: {name} is there twice.")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise SoftError(f"{self.label}: {name} is encrypted, or compressed in a way that bundles do not use.")
            seen.add(name)

    def open(self, name: str) -> BinaryIO:
        try:
            member = self._archive.getinfo(name)
            stream = self._archive.open(member)
        except KeyError:
            raise SoftError(f"{self.label}: the file {name} is missing.") from None
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
            raise SoftError(f"{self.label}: {name} is damaged ({error}).") from None
        return io.BufferedReader(_Guarded(stream, self.label, name, member.compress_size), 1 << 18)


class _Guarded(io.RawIOBase):
    """A decompressing stream that stops a bomb, and turns every error of the library into a sentence."""

    def __init__(self, stream: IO[bytes], label: str, name: str, compressed: int) -> None:
        self._stream = stream
        self._label = label
        self._name = name
        self._left = min(MOST_FILE_BYTES, max(RATIO_FREE_BYTES, MOST_RATIO * compressed))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._stream.read(len(view))
        except Exception as error:  # zipfile and zlib raise many kinds for damaged data
            raise SoftError(f"{self._label}: {self._name} is damaged ({error}).") from None
        view[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._label, self._name)
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_source(path: Path) -> Source:
    """The bundle at a path, finished; says what else is there if it is none."""
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            if (path / JOURNAL).is_dir():
                raise SoftError(
                    f"{path}: this exploration has not finished; continue it with `soft explore --resume`, or wait."
                )
            raise SoftError(f"{path}: this directory holds no bundle ({MANIFEST} is missing).")
        return DirectorySource(path)
    if path.is_file():
        return ArchiveSource(path)
    raise SoftError(f"{path}: there is no such bundle.")


def read_text(source: Source, name: str, limit: int = MOST_MANIFEST_BYTES) -> str:
    with source.open(name) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise too_large(source.label, name)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SoftError(f"{source.label}: {name}, line {line}: this is not UTF-8 text.") from None


def lines(source: Source, name: str, *, torn: bool = False) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without their ends. A last line without an end is an error, or with `torn` it is left out."""
    with source.open(name) as stream:
        number = 0
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            if number > MOST_LINES:
                raise SoftError(f"{source.label}: {name} has more than {MOST_LINES} lines.")
            if len(line) > LONGEST_LINE:
                raise SoftError(f"{source.label}: {name}, line {number}: the line is longer than {LONGEST_LINE} bytes.")
            if not line.endswith(b"\n"):
                if torn:
                    return
                raise SoftError(f"{source.label}: {name}, line {number}: the file is cut off in this line.")
            yield number, line[:-1]


def too_large(label: str, name: str) -> SoftError:
    return SoftError(f"{label}: {name} is too large to be part of a bundle.")


def _check_end_record(file: Path) -> None:
    """Refuse a ZIP directory of absurd size before the library builds a table of it."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            size = stream.tell()
            stream.seek(max(0, size - _END.size - 20))
            tail = stream.read()
    except OSError as error:
        raise SoftError(f"{file}: the file cannot be read ({error.strerror}).") from None
    record = tail[-_END.size :]
    if len(record) < _END.size or record[:4] != b"PK\5\6":
        raise SoftError(f"{file}: this is neither a bundle's directory nor a bundle file, or it is cut off.")
    _, disk, first_disk, here, total, directory_size, _, comment = _END.unpack(record)
    if tail[-_END.size - 20 :].startswith(b"PK\6\7") or disk or first_disk or comment or here != total:
        raise SoftError(f"{file}: this is not a ZIP file as bundles use it.")
    if total > len(NAMES) or directory_size > _MOST_DIRECTORY_BYTES:
        raise SoftError(f"{file}: the file holds more than a bundle's {len(NAMES)} files.")


def pack(directory: Path, file: Path) -> None:
    """Compress a finished bundle's directory into one file. Equal bundles give equal bytes: no times are kept."""
    source = open_source(directory)
    if not isinstance(source, DirectorySource):
        raise SoftError(f"{directory}: this is a file already.")
    temporary = file.with_name(file.name + ".part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name in NAMES:
                member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                with source.open(name) as stream, archive.open(member, "w") as out:
                    while block := stream.read(1 << 20):
                        out.write(block)
        temporary.replace(file)
    except OSError as error:
        raise SoftError(f"{file}: the file cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)
