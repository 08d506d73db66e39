"""Agents of a few lines that answer echo requests of four bytes, WAY 0 NUMBER NUMBER: C files beside this one."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from harness.path import Job
from harness.run import Outcome, Runner
from harness.snapshot import freeze
from soft.launch.find import Target
from soft.launch.process import snapshot_environment
from soft.launch.profile import Profile
from soft.replay.runner import run
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.trace import Trace

SCENARIO = """
name = "echoing"
summary = "A number to do something with"
ports = 1
[[step]]
send = "echo_request"
data = [
    { name = "way", bits = 16, value = { symbolic = true, default = 0 } },
    { name = "number", bits = 16, value = "symbolic" },
]
"""
# How each is compiled; the second one with checks for what fits.
_OPTIONS = {"printing": (), "copying": ("-O2", "-D_FORTIFY_SOURCE=2")}


@functools.cache
def scenario() -> Scenario:
    return parse(SCENARIO, "echoing.toml")


@functools.cache
def directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def target(name: str) -> Target:
    """The agent, which runs natively with the library functions that it is frozen with."""
    binary = Path(directory().name) / name
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", *_OPTIONS[name], "-o", binary, source], check=True)
    profile = Profile(
        command=("{binary}", "{control_path}"),
        name=name,
        address="unix",
        ports="none",
        settle_ms=1,
        environment=snapshot_environment(),
        source=name,
    )
    return Target(name, binary, profile)


@functools.cache
def runner(name: str) -> Runner:
    return Runner(freeze(target(name), ports=0), scenario())


def values(way: int, number: int) -> dict[str, int]:
    return {"m0.data.way": way << 8, "m0.data.number": number}


@functools.cache
def native(name: str, way: int, number: int) -> Trace:
    """What the program really does."""
    return run(target(name), scenario(), values(way, number)).trace


@functools.cache
def outcome(name: str, way: int, number: int) -> Outcome:
    """What it does under the model."""
    found = runner(name).run(Job(values(way, number)))
    assert found.unsupported is None
    return found
