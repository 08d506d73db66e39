"""`soft agents`: the list, a profile, the placeholders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soft.cli import soft
from soft.errors import SoftError
from soft.launch.placeholders import MEANING


def call(*arguments: str) -> Result:
    return CliRunner().invoke(soft, ["agents", *arguments])


def test_the_list_has_our_agents_and_a_line_for_each() -> None:
    lines = call().output.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"reference", "vswitch", "figure1-agent1", "figure1-agent2", "ovs-vswitchd"} <= set(names)
    assert len(names) == len(set(names))
    rows = json.loads(call("--json").output)["agents"]
    assert [row["name"] for row in rows] == names
    assert all(row["summary"] for row in rows)


def test_a_profile_is_shown_as_it_is_written() -> None:
    shown = call("show", "ovs-vswitchd").output
    source = Path(shown.splitlines()[0].removeprefix("# "))
    assert shown.split("\n", 1)[1] == source.read_text()
    assert json.loads(call("show", "vswitch", "--json").output)["address"] == "unix"


def test_every_placeholder_is_explained() -> None:
    lines = call("--placeholders").output.splitlines()
    assert [line.split()[0] for line in lines] == [f"{{{name}}}" for name in MEANING]
    assert json.loads(call("--placeholders", "--json").output)["placeholders"] == MEANING


def test_a_misspelt_name() -> None:
    error = call("show", "vswich").exception
    assert isinstance(error, SoftError)
    assert "Did you mean vswitch?" in str(error)


def test_a_broken_profile_is_listed_with_its_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.toml").write_text("command = 7")
    monkeypatch.chdir(tmp_path)
    assert any(line.startswith("mine") and "Expected `array`" in line for line in call().output.splitlines())
