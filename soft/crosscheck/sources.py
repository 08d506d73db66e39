"""Which bundles are to be compared: the paths of a command line, scenario by scenario.

A path is a bundle, or a folder of bundles (one a scenario, as `soft explore` leaves them in results/AGENT).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soft.bundle import files
from soft.bundle.reader import read_manifest
from soft.errors import SoftError

# A folder of bundles has some dozen; in a folder of anything else nobody wants to wait.
_MOST_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be compared. `scenarios` has, for each, the agents (by their place) and their bundles."""

    labels: tuple[str, ...]
    scenarios: tuple[tuple[str, dict[int, Path]], ...]
    alone: tuple[str, ...]  # scenarios that only one agent has: sentences


def plan(paths: Sequence[str | Path]) -> Plan:
    """Find the bundles below the given paths and match them by scenario. Each path is one agent."""
    if len(paths) < 2:
        raise SoftError("A crosscheck needs two bundles or more.")
    labels: list[str] = []
    found: dict[str, dict[int, Path]] = {}
    for place, path in enumerate(paths):
        names = set()
        for bundle in bundles_at(Path(path)):
            manifest = read_manifest(files.open_source(bundle))
            names.add(manifest.agent)
            known = found.setdefault(manifest.scenario, {})
            if place in known:
                raise SoftError(
                    f"{path}: two bundles of the scenario {manifest.scenario}, {known[place].name} and {bundle.name}; "
                    "name one of them."
                )
            known[place] = bundle
        labels.append(names.pop() if len(names) == 1 else Path(path).resolve().name)
    if all(len(bundles) < 2 for bundles in found.values()):
        if all(len(list(bundles_at(Path(path)))) == 1 for path in paths):
            names_of = ", ".join(sorted(found))
            raise SoftError(f"The bundles are of different scenarios ({names_of}); only equal ones can be compared.")
        raise SoftError(f"No two of {', '.join(map(str, paths))} hold bundles of the same scenario.")
    return Plan(
        tuple(labels),
        tuple((name, bundles) for name, bundles in sorted(found.items()) if len(bundles) > 1),
        tuple(
            f"The scenario {name} is only in {paths[next(iter(bundles))]}; it is not compared."
            for name, bundles in sorted(found.items())
            if len(bundles) < 2
        ),
    )


def bundles_at(path: Path) -> list[Path]:
    """The bundle at a path, or those in the folder there."""
    if not path.is_dir() or (path / files.MANIFEST).exists() or (path / files.JOURNAL).is_dir():
        return [path]
    found = []
    for number, entry in enumerate(sorted(path.iterdir())):
        if number >= _MOST_ENTRIES:
            raise SoftError(f"{path}: this folder has too many entries to be a folder of bundles.")
        if (entry.is_dir() and (entry / files.MANIFEST).is_file()) or (entry.suffix == ".soft" and entry.is_file()):
            found.append(entry)
    if not found:
        raise SoftError(f"{path}: this folder is no bundle ({files.MANIFEST} is missing) and holds none.")
    return found
