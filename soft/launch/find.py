"""Which profile and which binary `soft run AGENT` means: AGENT is a path to a binary or a profile's name."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from soft.errors import SoftError
from soft.launch.profile import Profile, read_profile

# Daemons live in sbin, which an ordinary user's PATH does not have.
_SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True)
class Target:
    """An agent that can be started: its label, its binary and how to launch it."""

    label: str
    binary: Path
    profile: Profile


def profile_directories(near: Path | None = None) -> list[Path]:
    """Where profiles are looked for: beside the binary, one directory up, in ./agents, in our own tree."""
    places = [near, near.parent] if near else []
    places += [Path("agents"), Path(__file__).resolve().parents[2] / "agents"]
    seen: dict[Path, Path] = {}
    for place in places:
        if place.is_dir():
            seen.setdefault(place.resolve(), place)
    return list(seen.values())


def profiles(near: Path | None = None) -> Iterator[Path]:
    for directory in profile_directories(near):
        yield from sorted(directory.glob("*.toml"))


def profile_for(agent: str) -> Profile:
    """The launch profile of an agent, given as `find` takes it; its binary need not be there."""
    path = Path(agent)
    return _by_name(path.name, path.parent if _is_path(agent) else None)


def find(agent: str, profile: str | None = None) -> Target:
    """The agent that a user named: `agents/build/reference`, `reference`, or any binary with `--profile`."""
    path = Path(agent)
    if _is_path(agent):
        if not path.exists():
            raise SoftError(f"There is no agent binary {agent}; build ours with `make agents`.")
        binary = _checked(path)
        chosen = _given(profile, binary.parent) if profile else _by_name(binary.name, binary.parent)
        return Target(binary.name, binary, chosen)
    chosen = _given(profile, None) if profile else _by_name(agent, None)
    return Target(agent, _binary_of(agent, chosen), chosen)


def names_to_list(profile: Profile) -> list[str]:
    """The names a profile serves; a glob is shown as the binaries it matches, or as it is if there are none."""
    listed: list[str] = []
    for pattern in profile.all_names:
        if not any(sign in pattern for sign in "*?["):
            listed.append(pattern)
            continue
        built = sorted(
            path.name
            for path in (profile.directory / "build").glob(pattern)
            if path.is_file() and os.access(path, os.X_OK)
        )
        listed += built or [pattern]
    return listed


def _is_path(agent: str) -> bool:
    return os.sep in agent or Path(agent).is_file()


def _given(profile: str, near: Path | None) -> Profile:
    """`--profile`: a file, or the name of a profile that is found like an agent's."""
    path = Path(profile)
    if path.is_file() or profile.endswith(".toml") or os.sep in profile:
        return read_profile(path)
    return _by_name(profile, near)


def _by_name(name: str, near: Path | None) -> Profile:
    files = list(profiles(near))
    exact = [path for path in files if path.stem == name]
    broken: SoftError | None = None
    for path in exact + [path for path in files if path.stem != name]:
        try:
            profile = read_profile(path)
        except SoftError as error:
            # A broken profile matters if it is the one that was meant; another agent's must not be in the way.
            if path.stem == name:
                raise
            broken = broken or error
            continue
        if profile.serves(name):
            return profile
    if broken is not None:
        raise SoftError(f"No launch profile serves {name}, and one could not be read: {broken}")
    known = list(_names(files))
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]}?" if close else "`soft agents` lists the known ones; give one with --profile."
    raise SoftError(f"There is no launch profile for {name}. {hint}")


def _names(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        yield from names_to_list(read_profile(path))


def _binary_of(name: str, profile: Profile) -> Path:
    wanted = profile.binary or name
    for place in (profile.directory, profile.directory / "build"):
        if (place / wanted).is_file():
            return _checked(place / wanted)
    search = os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM_DIRECTORIES))
    if found := shutil.which(wanted, path=search):
        return _checked(Path(found))
    raise SoftError(
        f"The binary {wanted} was found neither beside its launch profile {profile.source}, nor in build/ there, "
        f"nor in PATH; build ours with `make agents`, or give the path to the binary."
    )


def _checked(path: Path) -> Path:
    if path.is_dir():
        raise SoftError(f"{path} is a directory, not an agent binary.")
    if not os.access(path, os.X_OK):
        raise SoftError(f"{path} cannot be run: it is not executable.")
    return path.absolute()
