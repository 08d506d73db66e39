"""`soft report` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from soft.cli.report import report
from soft.errors import SoftError
from tests.soft.report import example


def soft_report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(report, [str(argument) for argument in arguments])


def test_the_page_is_made_again(tmp_path: Path) -> None:
    folder = example.write(tmp_path / "findings", example.findings())
    result = soft_report(folder)
    assert result.exit_code == 0, result.output
    assert (folder / "report.html").is_file()
    assert (folder / "junit.xml").is_file()
    assert result.output.startswith("crash: packet_out with buffer_id = none")
    assert result.output.endswith(f"The page is {folder / 'report.html'}.\n")


def test_another_folder_can_be_given(tmp_path: Path) -> None:
    folder = example.write(tmp_path / "findings", example.findings())
    result = soft_report(folder / "findings.json", "-o", tmp_path / "pages")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "pages" / "report.html").is_file()
    assert not (folder / "report.html").exists()


def test_something_new_is_exit_status_1(tmp_path: Path) -> None:
    old = example.write(tmp_path / "old", example.many(2))
    new = example.write(tmp_path / "new", example.many(3))
    result = soft_report(new, "--baseline", old)
    assert result.exit_code == 1
    assert "Against the baseline: 1 new, 0 gone, 2 still there." in result.output
    assert 'data-change="new"' in (new / "report.html").read_text()


def test_something_gone_is_exit_status_0(tmp_path: Path) -> None:
    old = example.write(tmp_path / "old", example.many(3))
    new = example.write(tmp_path / "new", example.many(2))
    result = soft_report(new, "--baseline", old)
    assert result.exit_code == 0
    assert "gone: 0000f0000003" in result.output


def test_json_is_one_object(tmp_path: Path) -> None:
    old = example.write(tmp_path / "old", example.many(2))
    new = example.write(tmp_path / "new", example.many(3))
    result = soft_report(new, "--baseline", old, "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert document["verdict"] == "differ"
    assert [entry["id"] for entry in document["baseline"]["new"]] == ["0000f0000003"]
    assert len(document["baseline"]["still"]) == 2
    assert json.loads(soft_report(new, "--json").output)["findings"] == 3


def test_no_findings_is_a_sentence(tmp_path: Path) -> None:
    result = soft_report(tmp_path)
    assert isinstance(result.exception, SoftError)
    assert "there are no findings here" in str(result.exception)
