"""Mutexes in one step leave behind what glibc's own code does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import locks
from harness.frozen import Snapshot
from harness.path import Job
from harness.run import Outcome, Runner
from harness.snapshot import freeze
from soft.launch.find import Target
from soft.launch.profile import Profile
from soft.scenarios.loader import parse

SCENARIO = parse('name = "locks"\nsummary = "An echo"\n[[step]]\nsend = "echo_request"\n', "locks.toml")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    binary = tmp_path_factory.mktemp("locks") / "locks"
    source = Path(__file__).with_name("locks.c")
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", "-pthread", "-o", binary, source], check=True)
    profile = Profile(
        command=("{binary}", "{control_path}"), name="locks", address="unix", ports="none", settle_ms=1, source="locks"
    )
    return freeze(Target("locks", binary, profile), ports=0)


def outcome(snapshot: Snapshot) -> Outcome:
    found = Runner(snapshot, SCENARIO).run(Job({}))
    assert found.unsupported is None
    return found


def test_every_operation_on_every_kind(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = outcome(snapshot)
    monkeypatch.setattr(locks, "install", lambda machine, snapshot: None)
    whole = outcome(snapshot)
    assert len(whole.trace) == 1
    assert quick.trace == whole.trace
    assert quick.blocks < whole.blocks
