"""Agents built before any test that runs one, and running switches to test."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.lab import BUILD, ROOT, Controller, Lab, binary, running


def make(target: str) -> None:
    """Builds what is not up to date; one process at a time, as make itself does not care."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "--silent", "-j2", "-C", str(ROOT / "agents"), target]
        result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="session", autouse=True)
def built_agents() -> None:
    make("all")


@pytest.fixture(scope="session")
def sanitised_agents() -> None:
    """`asan/NAME` is there too: with AddressSanitizer and UndefinedBehaviorSanitizer."""
    make("asan")


@pytest.fixture(params=["reference", "vswitch"])
def agent(request: pytest.FixtureRequest) -> str:
    """The switch under test; a test file that is about one of them says so with a fixture of its own."""
    name: str = request.param
    return name


@pytest.fixture
def lab(tmp_path: Path, agent: str) -> Iterator[Lab]:
    with running(Lab(tmp_path, [binary(agent)])) as started:
        yield started


@pytest.fixture
def controller(lab: Lab) -> Controller:
    return lab.controller()
