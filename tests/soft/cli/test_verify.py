"""`soft verify` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soft.bundle.model import Bundle
from soft.bundle.writer import BundleWriter
from soft.cli import soft
from soft.errors import SoftError
from tests.soft.crosscheck.agents import If
from tests.soft.replay import lab
from tests.soft.replay.lab import LAST, TRUTH, equals, reply


def write(directory: Path, made: Bundle) -> Path:
    writer = BundleWriter(directory, made.scenario, "counting 1.0")
    for path in made.paths:
        writer.add_path(made.terms_of(path), made.traces[path.trace], path.witness)
    writer.finish(True, (), {})
    return directory


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("verify")
    write(directory / "true", lab.orders())
    write(directory / "false", lab.orders(If(equals("a"), (reply(0, b"!"), *LAST), TRUTH)))
    (directory / "counting.toml").write_text(lab.PROFILE)
    return directory


def run(place: Path, bundle: str, *options: str) -> Result:
    command = ["verify", str(place / bundle), "--agent", str(lab.binary()), "--profile", str(place / "counting.toml")]
    # With exit status 1, the command returns it instead of exiting.
    return CliRunner().invoke(soft, [*command, *options], catch_exceptions=False, standalone_mode=False)


def test_agreement(place: Path) -> None:
    result = run(place, "true")
    assert result.return_value == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        "counting 1.0, orders: 3 of 3 paths on counting",
        "  predicted        paths  agreed",
        "  2 × echo_reply       2       2",
        "  crash (SIGABRT)      1       1",
    ]
    assert lines[4].startswith("3 agreed, 0 disagreed, in ")
    assert len(lines) == 5


def test_disagreement(place: Path) -> None:
    result = run(place, "false")
    assert result.return_value == 1
    assert "  2 × echo_reply       3       2  1 disagreed" in result.stdout
    _, _, story = result.stdout.partition("\n\n")
    assert story.splitlines() == [
        "Disagreement 1, path 0:",
        "  input: m0.data.order=97",
        "  predicted: step 0: echo_reply: 1 byte, xid 1; from byte 8: 21",
        "  seen:      step 0: echo_reply: 1 byte, xid 1; from byte 8: 61",
        f"  again: soft run {lab.binary()} --profile {place / 'counting.toml'} "
        f"--test {place / 'false' / 'scenario.toml'} --set m0.data.order=97",
    ]


def test_the_command_of_a_disagreement_works(place: Path) -> None:
    (line,) = [line for line in run(place, "false").stdout.splitlines() if "again:" in line]
    command = line.partition("again: soft ")[2].split()
    played = CliRunner().invoke(soft, command, catch_exceptions=False, standalone_mode=False)
    assert "echo_reply: 1 byte" in played.stdout


def test_one_object(place: Path) -> None:
    document = json.loads(run(place, "false", "--json").stdout)
    (disagreement,) = document.pop("disagreements")
    assert {key: document[key] for key in ("witnesses", "agreed", "disagreed", "skipped", "paths")} == {
        "witnesses": 4, "agreed": 3, "disagreed": 1, "skipped": 0, "paths": 4,
    }  # fmt: skip
    assert document["seconds"] > 0
    assert disagreement["fields"] == ["m0.data.order"]
    assert disagreement["input"]["m0.data.order"] == ord("a")
    assert disagreement["predicted"][0]["bytes"] != disagreement["seen"][0]["bytes"]


def test_a_sample_and_fresh_agents(place: Path) -> None:
    document = json.loads(run(place, "true", "--sample", "2", "--fresh", "--jobs", "2", "--json").stdout)
    assert (document["witnesses"], document["agreed"], document["reused"]) == (2, 2, 0)


def test_bad_input(place: Path) -> None:
    with pytest.raises(SoftError, match="there is no such bundle"):
        run(place, "nothing")
    with pytest.raises(SoftError, match="There is no agent binary"):
        CliRunner().invoke(
            soft, ["verify", str(place / "true"), "--agent", "./no/agent"], catch_exceptions=False,
            standalone_mode=False,
        )  # fmt: skip
