"""junit.xml as a server reads it."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec

from soft.crosscheck.model import Doubt, Findings
from soft.report.junit import junit
from soft.report.scenes import scenes
from tests.soft.report import example


def parsed(findings: Findings) -> ElementTree.Element:
    return ElementTree.fromstring(junit(findings, scenes(findings)))


def test_a_case_a_pair_and_a_failure_a_finding() -> None:
    root = parsed(example.findings())
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "1", "0")
    failures = root.findall("testsuite/testcase/failure")
    assert [failure.get("type") for failure in failures] == ["crash", "forwarding", "lost error", "content"]
    assert "left  crashes (SIGSEGV)" in (failures[0].text or "")
    assert (failures[0].get("message") or "").endswith("[0000f0000001]")


def test_agreement_passes_and_doubt_is_skipped() -> None:
    assert next(parsed(example.Maker().done()).iter("testcase")).findall("*") == []
    doubtful = example.Maker().done(doubts=(Doubt("undecided", None, "The solver gave up."),))
    skipped = next(parsed(doubtful).iter("skipped"))
    assert skipped.get("message") == "The solver gave up."


def test_any_text_makes_well_formed_xml() -> None:
    findings = example.hostile()
    record = msgspec.structs.replace(findings.scenarios[0], name="tiny")
    odd = msgspec.structs.replace(findings.clusters[0], heading="\x00\x1b]]>\ud800\uffff" + example.HOSTILE)
    root = parsed(msgspec.structs.replace(findings, scenarios=(record,), clusters=(odd,)))
    assert example.HOSTILE in (next(root.iter("failure")).get("message") or "")
