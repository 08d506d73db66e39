"""Write a bundle path by path, so that nothing that was finished is ever lost.

While an agent is explored, every path goes at once into a journal inside the bundle's directory. `finish` brings the
paths into canonical order, writes the bundle's files, and the manifest last of all: a directory without a manifest is
an unfinished exploration. One process writes; workers hand their paths to it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

import soft
from soft.bundle import files, wire
from soft.bundle.canonical import Digests, write_canonical
from soft.bundle.files import DirectorySource
from soft.bundle.model import FORMAT, Bundle, Counts, Manifest
from soft.bundle.reader import MOST_PATHS, Start, count, read_journal, read_tables, recover
from soft.bundle.terms_file import MOST_NODES, TermWriter
from soft.errors import SoftError
from soft.scenarios.model import Scenario
from soft.solve.terms import Term
from soft.trace import Trace

# Kept in the journal and given back when the disk is full: enough for a manifest.
RESERVE_BYTES = 256 << 10
_TABLES = (files.TERMS, files.TRACES, files.PATHS)
_FULL = {errno.ENOSPC, errno.EDQUOT}


# A bundle ends a little before its readers would refuse it: canonical order may need a few more words.
_ROOM = 0.9


class NoRoom(SoftError):
    """There is no room for another path. What was written before is safe: `finish` makes a partial bundle of it."""


class BundleWriter:
    """Writes one bundle.

    1. `directory` is new or empty; with `resume` it holds an exploration of the same scenario and label, interrupted or
       finished as partial, whose paths are kept; with `replace` an older bundle in it is deleted.
    2. After `add_path` returns, the path survives the end of this process, however it ends.
    3. After `finish` returns, the directory is a bundle; before, no reader takes it for one.
    """

    def __init__(
        self,
        directory: str | Path,
        scenario: Scenario,
        label: str,
        *,
        normalisation: Sequence[str] = (),
        limits: Sequence[str] = (),
        resume: bool = False,
        replace: bool = False,
    ) -> None:
        wire.check_texts((label,), "label")
        self.directory = Path(directory)
        self._journal = self.directory / files.JOURNAL
        self._scenario = scenario
        self._start = Start(FORMAT, scenario.digest, label, soft.__version__, tuple(normalisation), tuple(limits))
        self._terms = TermWriter(scenario)
        self._digests = Digests()
        self._traces: dict[bytes, int] = {}
        self._seen: set[bytes] = set()
        self._full = ""
        self.recovered: Bundle | None = None
        try:
            if resume:
                self._reopen()
            else:
                self._begin(replace)
            self._files = {name: _Appender(self._journal / name) for name in _TABLES}
        except OSError as error:
            raise SoftError(f"{self.directory}: the bundle cannot be written ({error.strerror}).") from None

    @property
    def paths(self) -> int:
        """The number of paths so far."""
        return len(self._seen)

    @property
    def outputs(self) -> int:
        """The number of distinct traces so far."""
        return len(self._traces)

    @property
    def full(self) -> str:
        """Why there is no room for another path; empty while there is."""
        return self._full

    def add_path(
        self, conditions: Sequence[Term], trace: Trace, witness: Mapping[str, int], marks: Sequence[str] = ()
    ) -> bool:
        """Keep a finished path; False if it was there already. A variable not in `witness` has its default value."""
        self._require_room()
        values = [witness.get(variable.name, variable.default) for variable in self._scenario.variables]
        lines: list[str] = []
        indices = [self._terms.condition(term, lines) for term in conditions]
        digest = self._digests.trace(trace)
        number = self._traces.get(digest)
        encoded = b""
        if number is None:
            number = len(self._traces)
            encoded = wire.encode_trace(trace, lambda term: self._terms.reference(term, lines))
        key = _key(indices, number)
        if key in self._seen:
            return False
        try:
            # In this order: whatever a line refers to is there before it.
            self._files[files.TERMS].write("".join(lines).encode())
            self._files[files.TRACES].write(encoded)
            self._files[files.PATHS].write(wire.encode_path(indices, number, values, tuple(marks)))
        except OSError as error:
            self._full = "The disk was full." if error.errno in _FULL else "Writing to the disk failed."
            raise NoRoom(f"{self.directory}: a path cannot be written ({error.strerror}).") from None
        self._traces[digest] = number
        self._seen.add(key)
        return True

    def close(self) -> None:
        """Leave the exploration unfinished: it can be resumed."""
        for appender in self._files.values():
            appender.close()

    def finish(
        self, complete: bool, reasons: Sequence[str] = (), statistics: Mapping[str, int | float] | None = None
    ) -> Manifest:
        """Make the directory a bundle: complete, or partial for the given reasons."""
        if complete and (reasons or self._full):
            raise ValueError("a complete bundle has no reasons for being partial")
        reasons = tuple(dict.fromkeys([*reasons, self._full] if self._full else reasons))
        if not complete and not reasons:
            raise ValueError("a partial bundle says why")
        wire.check_texts(reasons, "reason")
        self.close()
        figures = dict(statistics or {})
        try:
            try:
                counts = self._write_tables()
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                # No room for a second copy: the journal itself becomes the bundle, in the order of exploration.
                counts = self._adopt_journal()
            manifest = self._manifest(counts, complete, reasons, figures)
            _write_whole(self.directory / files.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
            shutil.rmtree(self._journal, ignore_errors=True)
        except OSError as error:
            raise SoftError(f"{self.directory}: the bundle cannot be finished ({error.strerror}).") from None
        return manifest

    def _require_room(self) -> None:
        largest = max(appender.size for appender in self._files.values())
        if (
            self.paths >= _ROOM * MOST_PATHS
            or self._terms.nodes > _ROOM * MOST_NODES
            or largest > _ROOM * files.MOST_FILE_BYTES
        ):
            self._full = "The bundle was full: its readers take no more."
        if self._full:
            raise NoRoom(f"{self.directory}: there is no room for another path. {self._full}")

    # ------------------------------------------------------------------------------------------ beginning

    def _begin(self, replace: bool) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        present = [name for name in (files.MANIFEST, files.JOURNAL) if (self.directory / name).exists()]
        if present and not replace:
            raise SoftError(f"{self.directory}: there is a bundle already; choose another directory or delete it.")
        if present:
            self._lock_alone()
            for name in (files.MANIFEST, *files.NAMES):
                (self.directory / name).unlink(missing_ok=True)
            shutil.rmtree(self._journal, ignore_errors=True)
        _write_whole(self.directory / files.SCENARIO, self._scenario.text.encode())
        # The journal appears as a whole: whoever finds it finds all of its files.
        fresh = self.directory / f"{files.JOURNAL}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        (fresh / files.START).write_bytes(msgspec.json.encode(self._start) + b"\n")
        (fresh / "reserve").write_bytes(b"\0" * RESERVE_BYTES)
        for name in _TABLES:
            (fresh / name).write_text(self._terms.head() if name == files.TERMS else "")
        fresh.rename(self._journal)

    def _reopen(self) -> None:
        if (self.directory / files.MANIFEST).is_file():
            self._unfinish()
        self._lock_alone()
        for name in _TABLES:
            with contextlib.suppress(FileNotFoundError):
                _drop_torn_line(self._journal / name)
        self.recovered, terms = read_journal(self.directory)
        found = self.recovered.manifest
        if (found.digest, found.agent) != (self._start.digest, self._start.agent):
            raise SoftError(f"{self.directory}: the exploration there is of another scenario or agent ({found.agent}).")
        self._terms.adopt(terms)
        self._traces = {self._digests.trace(trace): number for number, trace in enumerate(self.recovered.traces)}
        self._seen = {_key(path.conditions, path.trace) for path in self.recovered.paths}

    def _unfinish(self) -> None:
        """Turn a finished partial bundle back into a journal: the files have the same format."""
        bundle = recover(self.directory)
        if bundle.manifest.complete:
            raise SoftError(f"{self.directory}: the bundle there is complete; there is nothing to resume.")
        fresh = self.directory / f"{files.JOURNAL}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        start = msgspec.structs.replace(self._start, digest=bundle.manifest.digest, agent=bundle.manifest.agent)
        (fresh / files.START).write_bytes(msgspec.json.encode(start) + b"\n")
        (fresh / "reserve").write_bytes(b"\0" * RESERVE_BYTES)
        for name in _TABLES:
            shutil.copyfile(self.directory / name, fresh / name)
        shutil.rmtree(self._journal, ignore_errors=True)
        fresh.rename(self._journal)
        (self.directory / files.MANIFEST).unlink()

    def _lock_alone(self) -> None:
        """Fail if another process is writing here."""
        with contextlib.suppress(FileNotFoundError):
            _Appender(self._journal / files.PATHS).close()

    # ------------------------------------------------------------------------------------------ end

    def _write_tables(self) -> Counts:
        terms, traces, paths = read_tables(DirectorySource(self._journal), self._scenario)
        temporary = {name: self.directory / f"{name}.part" for name in _TABLES}
        try:
            streams = {name: path.open("wb", buffering=1 << 18) for name, path in temporary.items()}
            try:
                counts = write_canonical(
                    self._scenario, terms.conditions, traces, paths, *[streams[name].write for name in _TABLES]
                )
                for stream in streams.values():
                    stream.flush()
                    os.fsync(stream.fileno())
            finally:
                for stream in streams.values():
                    with contextlib.suppress(OSError):
                        stream.close()
            for name, path in temporary.items():
                path.replace(self.directory / name)
        finally:
            for path in temporary.values():
                path.unlink(missing_ok=True)
        return counts

    def _adopt_journal(self) -> Counts:
        (self._journal / "reserve").unlink(missing_ok=True)
        terms, traces, paths = read_tables(DirectorySource(self._journal), self._scenario)
        for name in _TABLES:
            (self._journal / name).replace(self.directory / name)
        return count(paths, traces, len(terms.conditions))

    def _manifest(
        self, counts: Counts, complete: bool, reasons: tuple[str, ...], statistics: dict[str, int | float]
    ) -> Manifest:
        return Manifest(
            format=FORMAT,
            scenario=self._scenario.name,
            digest=self._scenario.digest,
            agent=self._start.agent,
            tool=self._start.tool,
            counts=counts,
            complete=complete,
            reasons=reasons,
            normalisation=self._start.normalisation,
            limits=self._start.limits,
            statistics=statistics,
        )


def _key(conditions: Sequence[int], trace: int) -> bytes:
    return blake2b(array("I", [*conditions, trace]).tobytes(), digest_size=16).digest()


class _Appender:
    """A file that grows by whole writes: one that fails leaves nothing behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise SoftError(f"{path.parent}: another exploration is writing here.") from None
        self.size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there with all of its contents or not at all."""
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def _drop_torn_line(path: Path) -> None:
    """Cut off what follows the last end of a line."""
    with path.open("r+b") as stream:
        end = stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65_536)
            stream.seek(start)
            newline = stream.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        stream.truncate(end)
