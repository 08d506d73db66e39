"""junit.xml: what a continuous integration server shows. A suite a scenario, a case a pair, a failure a finding.

A pair about which nothing was found but not everything is proved counts as skipped: it has not passed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from soft.crosscheck.model import Comparison, Findings
from soft.report.baseline import heading
from soft.report.scenes import Scene
from soft.report.text import finding_text

# XML 1.0 has no way to write these characters.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(findings: Findings, scenes: Mapping[str, Scene]) -> bytes:
    """The whole file."""
    root = ElementTree.Element("testsuites", name="soft crosscheck", time=f"{findings.seconds:.3f}")
    for scenario in findings.scenarios:
        mine = [comparison for comparison in findings.comparisons if comparison.scenario == scenario.name]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_text(scenario.name),
            tests=str(len(mine)),
            failures=str(sum(comparison.verdict == "differ" for comparison in mine)),
            errors="0",
            skipped=str(sum(comparison.verdict == "unknown" for comparison in mine)),
            time=f"{sum(comparison.statistics.seconds for comparison in mine):.3f}",
        )
        for comparison in mine:
            _case(suite, findings, comparison, scenes)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _case(suite: ElementTree.Element, findings: Findings, comparison: Comparison, scenes: Mapping[str, Scene]) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_text(f"soft.{comparison.scenario}"),
        name=_text(f"{comparison.agents[0]} and {comparison.agents[1]}"),
        time=f"{comparison.statistics.seconds:.3f}",
    )
    mine = set(comparison.findings)
    for finding in findings.findings:
        if finding.id not in mine:
            continue
        failure = ElementTree.SubElement(
            case, "failure", type=finding.severity, message=_text(f"{heading(findings, finding)} [{finding.id}]")
        )
        failure.text = _text(finding_text(findings, finding, scenes))
    doubts = "\n".join(doubt.sentence for doubt in comparison.doubts)
    if comparison.verdict == "unknown":
        ElementTree.SubElement(case, "skipped", message=_text(doubts or "Not every input was compared."))
    elif doubts:
        ElementTree.SubElement(case, "system-out").text = _text(doubts)


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
