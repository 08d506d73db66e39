"""What cannot be explored is told in one sentence, with exit status 2, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.snapshot import freeze
from harness.snapshot_file import save
from tests.harness import small_agent

ROOT = Path(__file__).resolve().parents[2]
# Its ports need a network namespace.
_PROFILE = """
command = ["{binary}", "%s", "{controller}"]
address = "unix"
ports = "veth"
settle_ms = 1
start_timeout_ms = 700
"""
# A child of the agent's holds it, so that nobody else can.
_TRACED = """
#include <sys/ptrace.h>
#include <unistd.h>
__attribute__((constructor)) static void hold(void)
{
    int ready[2];
    char c;
    if (pipe(ready)) return;
    if (!fork()) { ptrace(PTRACE_SEIZE, getppid(), 0L, 0L); write(ready[1], "!", 1); for (;;) pause(); }
    read(ready[0], &c, 1);
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what is to be refused, each beside its profile."""
    directory = tmp_path_factory.mktemp("refused")
    agent = small_agent.build(directory)
    for way in ("exit", "idle", "openflow13"):
        (directory / way).hardlink_to(agent)
        (directory / f"{way}.toml").write_text(_PROFILE % way)
    (directory / "traced.h").write_text(_TRACED)
    small_agent.build(directory, "-w", "-include", str(directory / "traced.h")).rename(directory / "traced")
    (directory / "traced.toml").write_text(_PROFILE % "poll")
    (directory / "script").write_text("#!/bin/sh\nexit\n")
    (directory / "script").chmod(0o755)
    (directory / "script.toml").write_text(_PROFILE % "poll")
    small_agent.build(directory)
    save(freeze(small_agent.target(directory / "small_agent", "poll"), ports=1), directory / "whole")
    (directory / "cut").write_bytes((directory / "whole").read_bytes()[:-100])
    return directory


def left_behind(where: Path) -> list[str]:
    """Files, and processes that were started with this directory for their temporary files."""
    mark = str(where).encode()
    # pyvex keeps a cache of its own there, one for all its processes.
    found = [str(path) for path in where.iterdir() if not path.name.startswith("pyvex_ffi_parser_cache")]
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and mark in Path(f"/proc/{entry}/environ").read_bytes():
                found.append(Path(f"/proc/{entry}/cmdline").read_bytes().decode())
        except OSError:
            continue  # it has ended
    return found


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        ("script", "ELF"),
        ("missing", "There is no agent binary"),
        ("exit", "The agent ended (exit 3) before it came to connect to its controller"),
        ("idle", "The agent did not connect to its controller"),
        ("openflow13", "OpenFlow 1.3"),
        ("traced", "is not permitted: another tracer holds it"),
        ("cut", "cut"),
    ],
)
def test_one_sentence_and_nothing_else(place: Path, tmp_path: Path, agent: str, sentence: str) -> None:
    temporary, work = tmp_path / "temporary", tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    result = subprocess.run(
        [sys.executable, "-m", "soft", "explore", str(place / agent), "--test", "queue_config"],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        cwd=work,
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("soft: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(work.iterdir()) == []
    deadline = time.monotonic() + 5
    while left_behind(temporary) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left_behind(temporary) == []
