"""The files of a report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from soft.crosscheck.model import FieldSet, read_findings
from soft.errors import SoftError
from soft.report.files import finding_files
from soft.report.write import report_files, write_report
from tests.soft.report import example
from tests.soft.report.example import BODY


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


@pytest.mark.parametrize(
    "field",
    [
        FieldSet(BODY, ((1, 2),), "low", -3, 4),
        FieldSet(BODY, ((1, 2),), "bits", 0, 10**9),
        FieldSet(BODY, ((9, 2), (-5, 1 << 70)), "intervals"),
        FieldSet(BODY, (), "nothing"),
        FieldSet(BODY, tuple((2 * n, 2 * n) for n in range(5000)), "many"),
    ],
    ids=lambda field: field.text,
)
def test_odd_numbers_of_a_stranger_do_no_harm(field: FieldSet) -> None:
    findings = example.findings()
    first = findings.findings[2]
    region = msgspec.structs.replace(first.region, fields=(*first.region.fields, field, field))
    steps = tuple(msgspec.structs.replace(step, milliseconds=10**30) for step in first.example.steps)
    changed = msgspec.structs.replace(
        first,
        region=region,
        example=msgspec.structs.replace(first.example, steps=steps),
        conditions="a/b/c/d.smt2",
    )
    files = report_files(
        msgspec.structs.replace(findings, findings=(*findings.findings[:2], changed, findings.findings[3]))
    )
    assert f"cluster-{first.cluster}/{first.id}.txt" in files
