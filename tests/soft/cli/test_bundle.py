"""`soft bundle` as a user sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soft.cli import soft
from tests.soft.bundle.example import agent_runs, write


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("cli") / "bundle")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(soft, ["bundle", *map(str, arguments)], catch_exceptions=False)


def test_show(directory: Path) -> None:
    result = run("show", directory)
    assert result.exit_code == 0
    assert result.stdout.startswith("example 1.0, scenario tiny: complete\n12 paths, 1 of them ending in a crash\n")


def test_show_as_json(directory: Path) -> None:
    shown = json.loads(run("show", directory, "--json").stdout)
    assert (shown["complete"], shown["paths"], len(shown["outputs"]), len(shown["crashes"])) == (True, 12, 9, 1)
    assert sum(output["paths"] for output in shown["outputs"]) == 12
    (crash,) = shown["crashes"]
    assert (crash["step"], crash["reason"]) == (0, "SIGSEGV")
    assert "fffd" in crash["input"][0]


@pytest.mark.parametrize("solver", ["z3", "bitwuzla"])
def test_check(directory: Path, solver: str) -> None:
    result = run("check", directory, "--partition", "--solver", solver)
    assert result.exit_code == 0
    assert result.stdout == (
        "The witnesses of all 12 paths take their paths.\n"
        "No input takes two paths (proved).\n"
        "Every input of the scenario takes a path (proved).\n"
    )


def test_check_finds_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "b", list(agent_runs())[1:])
    result = run("check", tmp_path / "b", "--partition")
    assert result.exit_code == 1
    assert result.stdout.startswith("An input of the scenario takes none of the paths.\n  m0.buffer_id = ")
    found = json.loads(run("check", tmp_path / "b", "--partition", "--json").stdout)
    assert (found["sound"], found["disjoint"], found["covered"]) == (False, True, False)
    assert found["problems"][0]["input"]["m0.buffer_id"] != 0xFFFFFFFF


def test_audit(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "agent").write_bytes(b"\0secret_function\0example 1.0\0")
    result = run("audit", directory, "--binary", tmp_path / "agent")
    assert result.exit_code == 0
    assert "  m0.actions.0.port: 16\n" in result.stdout
    assert result.stdout.endswith(f"0 strings or symbols of {tmp_path / 'agent'} stand in the bundle.\n")
    assert json.loads(run("audit", directory, "--json").stdout)["leaks"] is None


def test_audit_finds_a_leak(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "agent").write_bytes(b"\0SIGSEGV\0")
    result = run("audit", directory, "--binary", tmp_path / "agent")
    assert result.exit_code == 1
    assert "LEAK in traces.jsonl: 'SIGSEGV'\n" in result.stdout


def test_export_to_stdout_and_to_a_file(directory: Path, tmp_path: Path) -> None:
    text = run("export", directory, "--path", 3, "--witness").stdout
    assert text.startswith("; example 1.0, tiny: path 3: ")
    assert run("export", directory, "--path", 3, "--witness", "-o", tmp_path / "p.smt2").stdout == ""
    assert (tmp_path / "p.smt2").read_text() == text
    assert "the 4 paths with trace" in "".join(run("export", directory, "--trace", n).stdout for n in range(9))
    assert run("export", directory).stdout.count("(define-fun path") == 12


def test_pack(directory: Path, tmp_path: Path) -> None:
    assert run("pack", directory, "-o", tmp_path / "b.soft").exit_code == 0
    assert run("show", tmp_path / "b.soft").stdout == run("show", directory).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "nowhere"], "soft: nowhere: there is no such bundle.\n"),
        (
            ["check", "nowhere", "--solver", "abc"],
            "soft: There is no solver called 'abc'; choose one of: z3, bitwuzla.\n",
        ),
        (["export", "x", "--path", "1", "--trace", "1"], "soft: Choose --path or --trace, not both.\n"),
        (["export", "x", "--witness"], "soft: --witness needs --path: a group has many witnesses.\n"),
    ],
)
def test_errors_are_one_sentence_and_status_2(arguments: list[str], sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "soft", "bundle", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
