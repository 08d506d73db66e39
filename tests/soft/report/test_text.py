"""The text of a summary and of a finding is read by people: it is kept as files, and a change shows as a difference.

`SOFT_GOLDEN=write pytest tests/soft/report/test_text.py` writes the files anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from soft.report.baseline import compare
from soft.report.scenes import scenes
from soft.report.text import change_lines, finding_text, summary
from tests.soft.report import example

GOLDEN = Path(__file__).with_name("golden")


def check(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("SOFT_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("number", range(4))
def test_a_finding(number: int) -> None:
    findings = example.findings()
    check(f"finding-{number + 1}.txt", finding_text(findings, findings.findings[number], scenes(findings)))


def test_the_summary_has_one_line_a_cluster() -> None:
    findings = example.findings()
    lines = list(summary(findings))
    assert lines.index("") == len(findings.clusters)
    check("summary.txt", "\n".join(lines) + "\n")


def test_agreement_is_said_to_be_proved() -> None:
    assert list(summary(example.Maker().done())) == [
        "tiny: left and right agree on every input, proved (0.2 s, 17 queries)."
    ]


def test_what_changed_since_the_baseline() -> None:
    old, new = example.many(2), example.many(1)
    assert list(change_lines(new, compare(old, new))) == [
        "gone: 0000f0000002 (forwarding) packet_out with buffer_id = 0: left answers with an error, right forwards the "
        "packet",
        "still there: 0000f0000001 (forwarding) packet_out with buffer_id = 0: left answers with an error, right "
        "forwards the packet",
        "Against the baseline: 0 new, 1 gone, 1 still there.",
    ]
