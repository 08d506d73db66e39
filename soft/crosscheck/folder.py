"""The folder of a crosscheck's results: replaced as a whole, and nothing of anybody else's is ever deleted.

files.json lists every file that we wrote. Only these are replaced or removed; what else a person put there stays. New
files are complete before they take their place, and findings.json changes last.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from soft.crosscheck.model import NAME, Findings, encode
from soft.errors import SoftError

LIST = "files.json"
_MOST_LIST_BYTES = 32 << 20
# Plain relative names: no "..", nothing hidden, at most two folders deep.
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,2}\Z")


def write_findings(directory: str | Path, findings: Findings, files: Mapping[str, bytes]) -> None:
    """Replace what an earlier crosscheck left in a folder by these findings and files (name → contents)."""
    replace(Path(directory), {**files, NAME: encode(findings)})


def replace(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make the given files all that is ours in a folder."""
    _change(directory, files, keep=False)


def add(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write more files, or some anew, beside those that are ours already."""
    _change(directory, files, keep=True)


def _change(directory: Path, files: Mapping[str, bytes], *, keep: bool) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        old = _listed(directory)
        new = sorted(set(files) | (old if keep else set()))
        # A run that is killed half way must leave no file of ours that nobody knows of.
        _write(directory, LIST, _list_of(old | set(files)))
        for name in sorted(files, key=lambda name: (name == NAME, name)):
            _write(directory, name, files[name])
        for name in sorted(old - set(new)):
            _remove(directory, name)
        _write(directory, LIST, _list_of(new))
    except OSError as error:
        raise SoftError(f"{directory}: the results cannot be written ({error.strerror}).") from None


def _listed(directory: Path) -> set[str]:
    """The names of our files in a folder. A folder that holds only what is not ours is not touched."""
    file = directory / LIST
    if not file.is_file() or file.is_symlink():
        if any(directory.iterdir()):
            raise SoftError(f"{directory}: this folder holds other files; choose one that is empty or does not exist.")
        return set()
    with file.open("rb") as stream:
        data = stream.read(_MOST_LIST_BYTES + 1)
    try:
        names = msgspec.json.decode(data[:_MOST_LIST_BYTES], type=list[str])
    except (msgspec.MsgspecError, ValueError):
        raise SoftError(f"{file}: this is not the list of files of a crosscheck; choose another folder.") from None
    return {name for name in names if _SAFE.match(name) and name != LIST}


def _list_of(names: set[str] | list[str]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(sorted(names)), indent=1) + b"\n"


def _write(directory: Path, name: str, data: bytes) -> None:
    if not _SAFE.match(name):
        raise ValueError(f"{name!r} is no name for a file of results")
    target = directory / name
    _check_inside(directory, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(target.name + ".part")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _remove(directory: Path, name: str) -> None:
    """Remove a file of ours, and the folders that this leaves empty."""
    _check_inside(directory, name)
    target = directory / name
    target.unlink(missing_ok=True)
    for parent in target.relative_to(directory).parents:
        if parent != Path():
            with contextlib.suppress(OSError):
                (directory / parent).rmdir()


def _check_inside(directory: Path, name: str) -> None:
    """A link in the way would lead out of the folder."""
    for parent in Path(name).parents:
        if parent != Path() and (directory / parent).is_symlink():
            raise SoftError(f"{directory / parent}: this is a link; results are written into plain folders only.")
