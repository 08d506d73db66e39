"""Processes of a run: how they are started, found again and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.process import (
    Spawning,
    base_environment,
    describe_exit,
    end_session,
    end_tagged,
    ended_by_signals,
    has_children,
    snapshot_environment,
    spawn,
    tagged,
    uninterrupted,
)


@pytest.fixture
def how(tmp_path: Path) -> Spawning:
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    return Spawning(tmp_path, base_environment(), log)


def test_addresses_are_fixed_and_the_users_environment_stays_outside(
    how: Spawning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    process = spawn(["cat", "/proc/self/maps", "/proc/self/environ"], how)
    process.wait()
    first = (how.directory / "log").read_text()
    spawn(["cat", "/proc/self/maps", "/proc/self/environ"], how).wait()
    both = (how.directory / "log").read_text()
    assert both == first * 2
    assert "SECRET" not in both
    assert Path("/proc/self/personality").read_text().strip() == "00000000"


def test_daemons_are_found_and_ended(how: Spawning) -> None:
    process = spawn(["sh", "-c", "setsid sleep 600 & setsid sleep 600 & echo"], how)
    process.wait()
    assert len(tagged(how.directory)) == 2
    end_tagged(how.directory)
    assert tagged(how.directory) == []


def test_a_session_is_ended_with_its_children(how: Spawning) -> None:
    process = spawn(["sh", "-c", "sleep 600 & sleep 600"], how)
    while not has_children(process.pid):
        time.sleep(0.001)
    end_session(process)
    end_session(process)
    deadline = time.monotonic() + 10  # a killed process takes a moment to be gone
    while tagged(how.directory) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert tagged(how.directory) == []


def test_the_command_that_is_missing_is_named(how: Spawning) -> None:
    with pytest.raises(SoftError, match="`nothing-like-it` was not found"):
        spawn(["nothing-like-it"], how)
    with pytest.raises(SoftError, match="could not be started"):
        spawn(["/etc/passwd"], how)


def test_exits_in_words() -> None:
    assert describe_exit(0) == "exit 0"
    assert describe_exit(-signal.SIGABRT) == "SIGABRT"
    assert describe_exit(-63) == "signal 63"


def test_a_snapshot_needs_string_functions_that_can_be_lifted() -> None:
    assert "-AVX2" in snapshot_environment()["GLIBC_TUNABLES"]
    assert snapshot_environment()["LD_BIND_NOW"] == "1"


def test_signals_wait_while_something_is_put_away() -> None:
    code = """
import os, signal
from soft.launch.process import uninterrupted
try:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        print("put away", flush=True)
    print("not reached", flush=True)
except KeyboardInterrupt:
    print("then stopped", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["put away", "then stopped"]
    with uninterrupted():
        pass


def test_sigterm_goes_by_way_of_every_finally() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def stop() -> None:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    with pytest.raises(SystemExit) as caught:
        stop()
    assert caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
