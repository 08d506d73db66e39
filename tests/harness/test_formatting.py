"""Formatted text takes no paths, and a path says so where it matters."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.path import Job
from harness.run import Outcome, Runner
from harness.snapshot import freeze
from soft.launch.find import Target
from soft.launch.profile import Profile
from soft.replay.runner import run
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.trace import evaluate_trace

SOURCE = Path(__file__).with_name("printing.c")
SCENARIO = """
name = "printing"
summary = "A number to print"
ports = 1
[[step]]
send = "echo_request"
data = [
    { name = "way", bits = 16, value = { symbolic = true, default = 0 } },
    { name = "number", bits = 16, value = "symbolic" },
]
"""
_PROFILE = Profile(
    command=("{binary}", "{control_path}"),
    name="printing",
    address="unix",
    ports="none",
    settle_ms=1,
    source="printing",
)


@functools.cache
def scenario() -> Scenario:
    return parse(SCENARIO, "printing.toml")


@functools.cache
def directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def target() -> Target:
    binary = Path(directory().name) / "printing"
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", "-o", binary, SOURCE], check=True)
    return Target("printing", binary, _PROFILE)


@functools.cache
def runner() -> Runner:
    return Runner(freeze(target(), ports=0), scenario())


def values(way: int, number: int) -> dict[str, int]:
    return {"m0.data.way": way << 8, "m0.data.number": number}


def outcome(way: int, number: int = 4711) -> Outcome:
    found = runner().run(Job(values(way, number)))
    assert found.unsupported is None
    return found


@pytest.mark.parametrize("way", range(7))
@pytest.mark.parametrize("number", [0, 77, 4711])
def test_the_input_itself_is_as_it_is_natively(way: int, number: int) -> None:
    predicted = evaluate_trace(outcome(way, number).trace, values(way, number))
    assert predicted == run(target(), scenario(), values(way, number)).trace


@pytest.mark.parametrize("way", range(7))
def test_no_condition_is_about_the_number(way: int) -> None:
    assert not any("m0.data.number" in condition.variables for condition in outcome(way).conditions)


@pytest.mark.parametrize("way", [1, 2, 4, 5, 6])
def test_text_that_matters_makes_a_path_approximate(way: int) -> None:
    assert outcome(way).marks == ("approximate",)


@pytest.mark.parametrize("way", [0, 3])
def test_a_log_and_constant_text_do_not(way: int) -> None:
    assert outcome(way).marks == ()
