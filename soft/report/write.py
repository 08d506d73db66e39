"""Write a report: the page, junit.xml, and for each finding its text, its script and its captures."""

from __future__ import annotations

from pathlib import Path

from soft.crosscheck.folder import add
from soft.crosscheck.model import Findings
from soft.report.baseline import Changes
from soft.report.files import capture_file, script_file, text_file
from soft.report.html import NAME as PAGE
from soft.report.html import page
from soft.report.junit import junit
from soft.report.pcap import capture
from soft.report.scenes import scenes
from soft.report.script import script
from soft.report.text import finding_text

JUNIT = "junit.xml"


def write_report(findings: Findings, directory: Path, changes: Changes | None = None) -> None:
    """Write everything that a report consists of beside findings.json. Earlier files of the same names are replaced."""
    add(directory, report_files(findings, changes))


def report_files(findings: Findings, changes: Changes | None = None) -> dict[str, bytes]:
    """The files of a report: name → contents."""
    known = scenes(findings)
    files = {PAGE: page(findings, known, changes).encode(), JUNIT: junit(findings, known)}
    for scene in known.values():
        if scene.file is not None:
            files[scene.file] = scene.record.text.encode()
    for finding in findings.findings:
        scene = known[finding.scenario]
        files[text_file(finding)] = finding_text(findings, finding, known).encode()
        files[script_file(finding)] = script(findings, finding, scene)
        for place, behaviour in enumerate(finding.behaviours):
            files[capture_file(finding, place)] = capture(finding, behaviour, scene)
    return files
