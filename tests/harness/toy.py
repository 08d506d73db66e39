"""Explorations of tests/harness/agents/symbolic.c, a small agent whose paths are known."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from harness.exploration import Exploration
from harness.explorer import Progress
from soft.bundle.model import Bundle, Manifest
from soft.bundle.reader import read
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.solve.terms import Term
from soft.trace import Trace
from tests.harness.kernel import lab

_NUMBERS = {experiment.name: experiment.number for experiment in lab.experiments("symbolic")}
BRANCHES = 36
"""The paths of the experiment `branches`."""


@functools.cache
def scenario(experiment: str) -> Scenario:
    """Three symbolic bytes for an experiment, and an echo that tells whether the agent is still there."""
    number = f"{_NUMBERS[experiment]:02x}"
    data = ", ".join(f'{{ name = "{name}", bits = 8, value = "symbolic" }}' for name in "abc")
    text = f"""
name = "{experiment}"
summary = "x"
ports = 1
[[step]]
send = "echo_request"
data = ["{number}", {data}]
[[step]]
send = "echo_request"
data = "ff"
"""
    return parse(text, "toy.toml")


def exploration(experiment: str, directory: Path, **options: Any) -> Exploration:
    return Exploration(lab.snapshot("symbolic"), scenario(experiment), directory, "toy", **options)


def explore(experiment: str, directory: Path, **options: Any) -> tuple[Manifest, Progress]:
    return exploration(experiment, directory, **options).run()


def paths(bundle: Bundle | Path) -> set[tuple[tuple[Term, ...], Trace]]:
    """The paths of a bundle, whatever their order: (conditions, trace) of each."""
    bundle = bundle if isinstance(bundle, Bundle) else read(bundle)
    found = {
        (tuple(bundle.conditions[number] for number in path.conditions), bundle.traces[path.trace])
        for path in bundle.paths
    }
    assert len(found) == len(bundle.paths)
    return found
