from __future__ import annotations

from pathlib import Path

from results.commands import Command, run_all


def test_every_command_runs_and_says_how_it_went(tmp_path: Path) -> None:
    said: list[str] = []
    commands = [
        Command("list", ("tests", "--json"), output=tmp_path / "deep" / "tests.json"),
        Command("misspelt", ("tests", "show", "flowmodd")),
    ]
    results = {result.command.name: result.failure for result in run_all(commands, 2, said.append)}
    assert results["list"] == ""
    assert "flowmodd" in results["misspelt"]
    assert len(said) == 2
    assert '"packet_out"' in (tmp_path / "deep" / "tests.json").read_text()


def test_a_status_that_is_a_result_is_no_failure() -> None:
    (result,) = run_all([Command("misspelt", ("tests", "show", "flowmodd"), good=frozenset({2}))], 1, lambda line: None)
    assert result.failure == ""


def test_a_command_past_its_limit_is_stopped() -> None:
    (result,) = run_all([Command("slow", ("tests",), limit=0.001)], 1, lambda line: None)
    assert result.failure == "not done after 0.001 s"
