"""What was made of code, kept from one exploration to the next: lifting and compiling cost more than many a run.

What the compiler makes of a block follows from the block's bytes, from where it stands, and from our own sources. So
it is kept under a digest of these, in the user's cache, with a file for each program. An entry carries a digest of its
own: one that is damaged is made anew and never executed. Whatever else is wrong with a file costs nothing but time.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import TypeVar

import pyvex

from soft.solve import terms
from soft.user_cache import user_cache

T = TypeVar("T")

# All files together. An entry takes about 1,000 bytes, and a scenario of Open vSwitch runs 2,000 blocks or 5,000.
MOST_BYTES = 1 << 28
# Somebody else's writing takes some milliseconds. Whoever has the file locked for longer than this is not waited for.
_PATIENCE = 0.2
_DIGEST = 16
_FILES = "blocks-*.sqlite"
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)"


def program_cache(code: Iterable[bytes]) -> Cache:
    """The cache of the program with this code; one that keeps nothing if the user wants none (SOFT_CACHE=off)."""
    directory, generation = user_cache(), _generation()
    if directory is None or generation is None or os.environ.get("SOFT_CACHE") == "off":
        return Cache()
    digest = blake2b(digest_size=_DIGEST, key=generation)
    for part in code:
        digest.update(part)
    return Cache(directory.absolute() / _FILES.replace("*", digest.hexdigest()), generation)


class Cache:
    """What was made of one program's code. Without a file it keeps nothing.

    The file is read as a whole when it is first asked for, and open only while it is read or written: a process that
    is forked has no part in it.
    """

    def __init__(self, file: Path | None = None, generation: bytes = b"") -> None:
        self._file = file
        self._generation = generation
        self._entries: dict[bytes, bytes] | None = None
        self._new: dict[bytes, bytes] = {}
        self._can_write = True

    def get(self, kind: str, address: int, code: bytes, make: Callable[[], T]) -> T:
        """What `make` gives, which must follow from the other arguments. It is kept if marshal knows it."""
        if self._file is None:
            return make()
        if self._entries is None:
            self._entries = self._read(self._file)
        text = f"{kind} {address:x} ".encode() + code
        key = blake2b(text, digest_size=_DIGEST, key=self._generation).digest()
        entry = self._entries.get(key)
        if entry.__class__ is bytes and entry[:_DIGEST] == _seal(key, entry[_DIGEST:]):
            kept: T = marshal.loads(entry[_DIGEST:])
            return kept
        made = make()
        if self._can_write:
            with contextlib.suppress(ValueError):
                data = marshal.dumps(made)  # type: ignore[arg-type]
                self._new[key] = _seal(key, data) + data
        return made

    def save(self) -> None:
        """Write what is new to the file. If that fails, it is not tried again."""
        if self._file is not None and self._new:
            self._can_write = self._write(self._file)
            self._new.clear()

    def _read(self, file: Path) -> dict[bytes, bytes]:
        try:
            _check(file)
            if not file.stat().st_size:
                return {}  # somebody has made it, and not written yet
            with contextlib.suppress(OSError):
                os.utime(file)  # the file is in use: others go first (_make_room)
            with contextlib.closing(_connect(file)) as database:
                return dict(database.execute("SELECT key, value FROM entries"))
        except FileNotFoundError:
            return {}
        except (OSError, sqlite3.Error) as error:
            self._can_write = _is_damaged(error) and _remove(file)
            return {}

    def _write(self, file: Path) -> bool:
        """Whether it was written."""
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
            _check(file)
            with contextlib.closing(_connect(file)) as database:
                # A kill does no harm, and what a loss of power does is noticed.
                database.execute("PRAGMA synchronous = OFF")
                database.execute("BEGIN IMMEDIATE")
                database.execute(_SCHEMA)
                database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", self._new.items())
                database.execute("COMMIT")
            _make_room(file.parent)
        except (OSError, sqlite3.Error) as error:
            return _is_damaged(error) and _remove(file)
        return True


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None)


def _seal(key: bytes, data: bytes) -> bytes:
    """What shows that the data is what was once kept under this key."""
    return blake2b(data, digest_size=_DIGEST, key=key).digest()


def _check(file: Path) -> None:
    """Raise PermissionError if anybody but the user could have written to the file: we execute what is in it."""
    for status, is_kind in ((os.stat(file.parent), stat.S_ISDIR), (os.lstat(file), stat.S_ISREG)):
        if not is_kind(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(f"{file} is not the user's alone")


def _is_damaged(error: Exception) -> bool:
    """That the file is no database any more. Operational errors are others': a lock, a full disk, no permission."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _remove(file: Path) -> bool:
    """Whether it is gone."""
    with contextlib.suppress(OSError):
        for each in (file.with_name(f"{file.name}-journal"), file):
            each.unlink(missing_ok=True)
        return True
    return False


def _make_room(directory: Path) -> None:
    """Remove the files that were not used for longest, until the others have no more than MOST_BYTES."""
    files = [(status.st_mtime_ns, status.st_size, file) for file in directory.glob(_FILES) if (status := file.stat())]
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= MOST_BYTES:
            break
        _remove(file)
        total -= size


@functools.cache
def _generation() -> bytes | None:
    """A digest of everything but the code that decides what is made of it; None where our sources are not at hand.

    The modules beside this one give a block's text, or the numbers that are worked out in it. angr, which a few of
    them ask, has pyvex's version.
    """
    sources = [*sorted(Path(__file__).parent.glob("*.py")), Path(terms.__file__)]
    digest = blake2b(digest_size=_DIGEST)
    try:
        for part in (
            *(source.read_bytes() for source in sources),
            pyvex.__version__.encode(),
            sys.version.encode(),
            MAGIC_NUMBER,
        ):
            digest.update(len(part).to_bytes(8, "little") + part)
    except OSError:
        return None
    return digest.digest() if len(sources) > 1 else None
