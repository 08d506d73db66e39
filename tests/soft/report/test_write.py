"""The files of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from soft.crosscheck.model import read_findings
from soft.errors import SoftError
from soft.report.files import finding_files
from soft.report.write import report_files, write_report
from tests.soft.report import example


def test_every_file_that_the_page_links_to_is_there(tmp_path: Path) -> None:
    findings = example.findings()
    folder = example.write(tmp_path / "findings", findings)
    write_report(findings, folder)
    for finding in findings.findings:
        for name in finding_files(finding):
            assert (folder / name).is_file(), name
    assert (folder / "scenarios" / "tiny.toml").read_text() == example.TINY
    assert read_findings(folder) == findings


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    findings = example.findings()
    folder = example.write(tmp_path / "findings", findings)
    write_report(findings, folder)
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_report(findings, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == first


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SoftError, match="holds other files"):
        write_report(example.findings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_hostile_names_stay_inside_the_folder(tmp_path: Path) -> None:
    findings = example.hostile()
    for name in report_files(findings):
        assert not name.startswith("/")
        assert ".." not in name
    write_report(findings, example.write(tmp_path / "findings", findings))
