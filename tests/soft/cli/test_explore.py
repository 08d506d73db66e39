"""`soft explore` as a user sees it: what it prints and writes, how it ends, and what bad input gives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.snapshot_file import save
from soft.bundle.reader import read
from soft.cli import soft
from soft.errors import SoftError
from tests.harness import small_agent, toy
from tests.harness.kernel import lab

PROFILE = """
command = ["{binary}", %s"{controller}", "{ports}"]
address = "unix"
ports = "unix-datagram"
settle_ms = 0
start_timeout_ms = 500
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the small agent, its profile, and scenarios for it."""
    directory = tmp_path_factory.mktemp("toy")
    shutil.copy(lab.target("symbolic").binary, directory / "toy")
    (directory / "toy.toml").write_text(PROFILE % "")
    for experiment in ("branches", "ends"):
        (directory / f"{experiment}.toml").write_text(toy.scenario(experiment).text)
    save(lab.snapshot("symbolic"), directory / "toy.snapshot")
    return directory


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).stdout == b""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(soft, ["explore", *map(str, arguments)], catch_exceptions=False)


def test_sentences(place: Path) -> None:
    result = run(place / "toy", "--test", place / "branches.toml")
    assert result.exit_code == 0
    first, second, third = result.stdout.splitlines()
    assert first.startswith("toy, branches: 36 paths, 36 distinct outputs, 0 crashing paths, in ")
    assert second == "Complete: the paths cover the scenario's whole input space."
    assert third == "The bundle is in results/toy/branches."
    assert len(read("results/toy/branches").paths) == toy.BRANCHES


def test_json_is_one_object(place: Path) -> None:
    result = run(place / "toy", "--test", place / "ends.toml", "-o", "out", "--label", "mine", "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert {
        "paths", "complete", "reasons", "outputs", "crashes", "seconds", "paths_per_second", "blocks_per_second",
        "queries", "coverage",
    } <= set(shown)  # fmt: skip
    assert (shown["agent"], shown["scenario"], shown["complete"], shown["crashes"]) == ("mine", "ends", False, 7)
    assert shown["unsupported"]["the system call swapon"] == 1
    assert read("out").manifest.agent == "mine"


def test_a_snapshot_gives_the_same_bundle_as_the_binary(place: Path) -> None:
    run(place / "toy", "--test", place / "branches.toml", "-o", "live")
    run(place / "toy.snapshot", "--test", place / "branches.toml", "-o", "frozen", "--jobs", 2)
    assert toy.paths(Path("live")) == toy.paths(Path("frozen"))


def test_a_partial_bundle_says_why_and_goes_on(place: Path) -> None:
    result = run(place / "toy.snapshot", "--test", place / "branches.toml", "-o", "out", "--max-paths", 5)
    assert result.exit_code == 0
    assert "Partial:\n  The limit of 5 paths was reached.\n" in result.stdout
    result = run(place / "toy.snapshot", "--test", place / "branches.toml", "-o", "out", "--resume", "--json")
    assert json.loads(result.stdout)["paths"] == toy.BRANCHES


def test_a_scenario_that_waits_is_not_resumed_from_another_start(place: Path) -> None:
    """The timers of the agent would be in another phase than those of the paths that are there."""
    with pytest.raises(SoftError, match=r"hard_timeout waits.*Explore a file of `soft snapshot`.*--replace"):
        run(place / "toy", "--test", "hard_timeout", "-o", "out", "--resume")
    assert not Path("out").exists()


def test_ctrl_c_keeps_what_is_finished(place: Path) -> None:
    """Whenever it comes: before the first path there is nothing to keep, behind it there is a bundle."""
    files = (str(place / "toy.snapshot"), "--test", str(place / "branches.toml"))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "soft", "explore", *files, "-o", "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    journal = Path("out/journal/paths.jsonl")
    while process.poll() is None and not (journal.exists() and journal.stat().st_size):
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in output
    bundle = read("out")
    assert 1 <= len(bundle.paths) <= toy.BRANCHES
    assert bundle.manifest.complete or bundle.manifest.reasons == ("The user stopped it.",)


# ------------------------------------------------------------------------------------------------ bad input


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("small")
    for way in ("exit", "idle", "openflow13"):
        (directory / f"{way}.toml").write_text(PROFILE % f'"{way}", ')
    return small_agent.build(directory)


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("exit", r"The agent ended \(exit 3\) before it came to connect to its controller"),
        ("idle", r"did not connect to its controller at .* within 500 ms"),
        ("openflow13", r"OpenFlow 1\.3"),
    ],
)
def test_an_agent_that_cannot_be_talked_to(small: Path, way: str, sentence: str) -> None:
    with pytest.raises(SoftError, match=sentence):
        run(small, "--profile", small.parent / f"{way}.toml", "--test", "queue_config")
    assert os.listdir() == []


def test_what_is_no_agent(place: Path) -> None:
    Path("text").write_text("#!/bin/sh\nexit\n")
    os.chmod("text", 0o755)
    with pytest.raises(SoftError, match="ELF"):
        run("text", "--profile", place / "toy.toml", "--test", "queue_config")
    with pytest.raises(SoftError, match=r"There is no agent binary \./nothing"):
        run("./nothing", "--test", "queue_config")
    assert os.listdir() == ["text"]


def test_a_snapshot_that_was_cut_off(place: Path) -> None:
    whole = (place / "toy.snapshot").read_bytes()
    for size in (20, len(whole) // 2, len(whole) - 1):
        Path("cut").write_bytes(whole[:size])
        with pytest.raises(SoftError, match=r"^cut (is|:)"):
            run("cut", "--test", place / "branches.toml", "-o", "out")
    assert os.listdir() == ["cut"]


def test_a_snapshot_for_other_scenarios(place: Path) -> None:
    with pytest.raises(SoftError, match=r"was frozen with 1 ports.*Freeze again with --test queue_config"):
        run(place / "toy.snapshot", "--test", "queue_config")
    with pytest.raises(SoftError, match="no scenario"):
        run(place / "toy.snapshot", "--test", "nonesuch")
    assert os.listdir() == []


def test_an_error_is_one_line_with_status_2(place: Path) -> None:
    command = [sys.executable, "-m", "soft", "explore", "nothing-like-it", "--test", "queue_config"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("soft: ")
    assert result.stderr.count("\n") == 1


def test_where_it_may_not_write(place: Path) -> None:
    Path("file").write_text("")
    with pytest.raises(SoftError, match=r"the bundle cannot be written"):
        run(place / "toy.snapshot", "--test", place / "branches.toml", "-o", "file/out")


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(soft, ["explore", "--help"])
    assert "soft explore agents/build/reference --test flow_mod" in result.stdout
