"""An ordinary user explores and runs agents whose ports are UNIX sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.foreign.lab import HERE, PACKETS, binary

ROOT = Path(__file__).resolve().parents[2]
# Everything is imported before the privileges go: the tree need not be readable for everybody.
_AS_NOBODY = """
import importlib, os, pkgutil, sys
import multiprocessing.popen_fork
import harness, harness.kernel, harness.machine, soft, angr, bitwuzla, tqdm, z3
for package in (harness, soft):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name not in ("soft.__main__", "soft.launch.namespace_holder"):
            importlib.import_module(module.name)
from elftools.elf.elffile import ELFFile
from soft.cli import main
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
assert os.geteuid() != 0
main()
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may read and write, outside of pytest's own."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)


def soft(place: Path, *arguments: str) -> str:
    """What `soft` prints for a user without privileges."""
    environment = {**os.environ, "HOME": str(place), "TMPDIR": str(place), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_an_agent_with_unix_ports(public: Path) -> None:
    for name, content in (
        ("relayd", binary("relayd").read_bytes()),
        ("relayd.toml", (HERE / "relayd.toml").read_bytes()),
        ("packets.toml", PACKETS.encode()),
    ):
        (public / name).write_bytes(content)
        (public / name).chmod(0o755)
    agent = ["./relayd", "--profile", "relayd.toml"]
    seen = json.loads(soft(public, "run", *agent, "--test", "packets.toml", "--json"))
    assert [len(step["events"]) for step in seen["steps"]] == [1, 1]
    explored = json.loads(soft(public, "explore", *agent, "--test", "packets.toml", "-o", "bundle", "--json"))
    assert explored["complete"]
    assert explored["paths"] == 5
    assert "5 agreed, 0 disagreed" in soft(public, "verify", "bundle", "--agent", *agent)


def test_open_vswitch(public: Path) -> None:
    explored = json.loads(soft(public, "explore", "ovs-vswitchd", "--test", "queue_config", "-o", "bundle", "--json"))
    assert explored["complete"]
