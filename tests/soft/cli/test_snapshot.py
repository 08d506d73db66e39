"""`soft snapshot` as a user sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.snapshot import load
from soft.cli import soft
from soft.errors import SoftError
from tests.harness.small_agent import build

PROFILE = """
command = ["{binary}", "%s", "{controller}", "{ports}"]
address = "unix"
ports = "unix-datagram"
settle_ms = 1
stub = ["hash_word=0"]
"""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("agent")
    for way in ("epoll", "exit"):
        (directory / f"{way}.toml").write_text(PROFILE % way)
    return build(directory)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(soft, ["snapshot", *map(str, arguments)], catch_exceptions=False)


def test_a_snapshot_for_a_scenario(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    result = run(binary, "--profile", binary.parent / "epoll.toml", "--test", "packet_out", "-o", file)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}: small_agent after its handshake, 1 thread, 4 ports, ")
    assert "1 function replaced by constants" in result.stdout
    assert load(file).ports == 4


def test_json(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.snapshot"
    result = run(binary, "--profile", binary.parent / "epoll.toml", "--ports", 1, "-o", file, "--json")
    shown = json.loads(result.stdout)
    assert (shown["agent"], shown["ports"], shown["threads"], shown["handshake"]) == ("small_agent", 1, 1, True)
    assert shown["file_bytes"] == file.stat().st_size < shown["memory_bytes"]


def test_a_scenario_has_its_own_ports(binary: Path, tmp_path: Path) -> None:
    with pytest.raises(SoftError, match=r"^Choose --test or --ports, not both"):
        run(binary, "--test", "packet_out", "--ports", 3, "-o", tmp_path / "a")


def test_an_error_is_a_sentence_with_status_2(binary: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "soft", "snapshot", str(binary), "--profile"]
    result = subprocess.run(
        [*command, binary.parent / "exit.toml", "-o", tmp_path / "a.snapshot"], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("soft: The agent ended (exit 3) before it came to connect to its controller.")
    assert result.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_it_needs_no_angr(binary: Path, tmp_path: Path) -> None:
    """A snapshot is taken on the target, where angr need not be."""
    program = (
        "import sys; sys.modules['angr'] = sys.modules['pyvex'] = sys.modules['claripy'] = None\n"
        "from soft.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "snapshot", str(binary), "--profile"]
    result = subprocess.run(
        [*command, binary.parent / "epoll.toml", "-o", tmp_path / "a.snapshot"], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")
