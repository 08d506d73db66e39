"""The folder of results: ours is replaced, everybody else's stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.folder import add, replace, write_findings
from soft.crosscheck.model import read_findings
from soft.errors import SoftError
from tests.soft.crosscheck.agents import CRASH, SILENT, bundle


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_a_folder_holds_what_was_written_last(tmp_path: Path) -> None:
    results = tmp_path / "findings"
    replace(results, {"findings.json": b"1", "old/one.smt2": b"", "old/two.smt2": b""})
    (results / "old" / "notes.txt").write_text("mine")
    add(results, {"report.html": b"page"})
    replace(results, {"findings.json": b"2", "new/three.smt2": b"3"})
    assert names(results) == {"findings.json", "files.json", "new/three.smt2", "old/notes.txt"}
    assert (results / "findings.json").read_bytes() == b"2"


def test_folders_that_become_empty_go(tmp_path: Path) -> None:
    replace(tmp_path, {"cluster/one.smt2": b""})
    replace(tmp_path, {"findings.json": b""})
    assert not (tmp_path / "cluster").exists()


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(SoftError, match="holds other files"):
        replace(tmp_path, {"findings.json": b""})
    assert names(tmp_path) == {"thesis.tex"}


def test_a_list_of_a_stranger_leads_nowhere(tmp_path: Path) -> None:
    results, precious = tmp_path / "findings", tmp_path / "precious"
    precious.write_text("important")
    results.mkdir()
    (results / "link").symlink_to(tmp_path)
    (results / "files.json").write_text('["../precious", "/etc/passwd", ".hidden", "files.json"]')
    replace(results, {"findings.json": b""})
    assert precious.read_text() == "important"
    (results / "files.json").write_text('["link/precious"]')
    with pytest.raises(SoftError, match="link"):
        replace(results, {"findings.json": b""})
    assert precious.read_text() == "important"


def test_a_list_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text("{")
    with pytest.raises(SoftError, match="not the list of files"):
        replace(tmp_path, {"findings.json": b""})


def test_findings_come_back_as_they_were(tmp_path: Path) -> None:
    found = crosscheck([bundle(SILENT, "calm"), bundle(CRASH, "nervous")])
    write_findings(tmp_path / "findings", found, {found.findings[0].conditions: b"; none\n"})
    assert read_findings(tmp_path / "findings") == found
    assert read_findings(tmp_path / "findings" / "findings.json") == found
    assert (tmp_path / "findings" / found.clusters[0].folder).is_dir()
