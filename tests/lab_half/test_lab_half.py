"""The lab's half in an environment without angr: what a lab does with the bundles of two vendors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab_half import environment

ROOT = environment.ROOT
AGENTS = ("figure1-agent1", "figure1-agent2")
Soft = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment.make(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def soft(bin: Path) -> Soft:
    """`soft` as the lab has it. It runs in a directory of its own, so that nothing is imported from ours."""

    def run(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([str(bin / "soft"), *arguments], capture_output=True, text=True, cwd=cwd)
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What two vendors hand out, each made with the vendor's half."""
    subprocess.run(["make", "--silent", "-C", str(ROOT / "agents")], check=True)
    place = tmp_path_factory.mktemp("vendors")
    packed = []
    for agent in AGENTS:
        mine = [sys.executable, "-m", "soft"]
        explore = [*mine, "explore", f"agents/build/{agent}", "--test", "packet_out", "-o", str(place / agent)]
        subprocess.run(explore, check=True, capture_output=True, cwd=ROOT)
        packed.append(str(place / f"{agent}.soft"))
        subprocess.run([*mine, "bundle", "pack", str(place / agent), "-o", packed[-1]], check=True, cwd=ROOT)
    return packed


def test_nothing_of_angr_is_there(bin: Path, tmp_path: Path) -> None:
    check = "import importlib.util as u; print([n for n in ('angr', 'pyvex', 'claripy', 'cle') if u.find_spec(n)])"
    done = subprocess.run([str(bin / "python"), "-c", check], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "[]\n"


def test_every_command_has_its_help(soft: Soft, tmp_path: Path) -> None:
    listed = soft("--help", cwd=tmp_path).stdout.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
    assert {"crosscheck", "report", "replay", "verify", "run", "bundle", "tests", "agents"} <= set(commands)
    for command in commands:
        assert "Usage:" in soft(command, "--help", cwd=tmp_path).stdout


def test_the_scenarios_are_installed_with_it(soft: Soft, tmp_path: Path) -> None:
    assert "packet_out" in soft("tests", cwd=tmp_path).stdout
    assert "m0.match.dl_src" in soft("tests", "show", "flow_mod", cwd=tmp_path).stdout


def test_a_lab_compares_reports_and_replays(soft: Soft, bundles: list[str], tmp_path: Path) -> None:
    found = json.loads(soft("crosscheck", *bundles, "-o", "findings", "--json", cwd=tmp_path, status=1).stdout)
    assert found["verdict"] == "differ"
    assert json.loads(soft("crosscheck", bundles[0], bundles[0], "--json", cwd=tmp_path).stdout)["verdict"] == "agree"
    agents = [part for name in AGENTS for part in ("--agent", f"{name}={ROOT}/agents/build/{name}")]
    assert "not reproduced, 0 flaky" in soft("replay", "findings", *agents, cwd=tmp_path).stdout
    soft("report", "findings", cwd=tmp_path)
    page = (tmp_path / "findings" / "report.html").read_text()
    assert "<style>" in page
    assert "confirmed" in page


def test_a_lab_looks_into_bundles(soft: Soft, bundles: list[str], tmp_path: Path) -> None:
    assert AGENTS[0] in soft("bundle", "show", bundles[0], cwd=tmp_path).stdout
    assert "strangers: none" in soft("bundle", "audit", bundles[0], cwd=tmp_path).stdout
    assert "(proved)" in soft("bundle", "check", "--partition", bundles[0], cwd=tmp_path).stdout


def test_a_lab_runs_and_verifies_switches(soft: Soft, bundles: list[str], tmp_path: Path) -> None:
    binary = str(ROOT / "agents/build" / AGENTS[0])
    assert "port 2: TCP" in soft("run", binary, "--test", "packet_out", cwd=tmp_path).stdout
    assert " 0 disagreed" in soft("verify", bundles[0], "--agent", binary, "--sample", "5", cwd=tmp_path).stdout


def test_exploring_says_what_is_missing(soft: Soft, tmp_path: Path) -> None:
    binary = str(ROOT / "agents/build" / AGENTS[0])
    done = soft("explore", binary, "--test", "packet_out", cwd=tmp_path, status=2)
    assert done.stderr.count("\n") == 1
    assert "[explore]" in done.stderr


def test_a_switch_is_frozen_where_it_runs(soft: Soft, tmp_path: Path) -> None:
    """On the target nobody wants to install angr; the snapshot is explored elsewhere."""
    binary = str(ROOT / "agents/build" / AGENTS[0])
    soft("snapshot", binary, "--test", "packet_out", "-o", "agent.snapshot", cwd=tmp_path)
    assert (tmp_path / "agent.snapshot").stat().st_size > 100_000
