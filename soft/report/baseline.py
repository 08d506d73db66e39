"""Two crosschecks of the same thing at different times: what is new, what is gone, what is still there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from soft.crosscheck.model import Finding, Findings


@dataclass(frozen=True, slots=True)
class Changes:
    """Findings of two crosschecks, matched by their ids.

    `not_compared` are those of the older one whose scenario, or one of whose agents, the newer one does not have (or
    has another version of the scenario): nothing is known about them. `doubtful` are the scenarios of which not every
    input was compared: what is gone there may only be unseen.
    """

    old: Findings
    new: tuple[Finding, ...]
    still: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    not_compared: tuple[Finding, ...]
    doubtful: tuple[str, ...]

    def of(self, id: str) -> str:
        """What became of a finding of the newer crosscheck."""
        return "new" if any(finding.id == id for finding in self.new) else "still there"

    @property
    def sentence(self) -> str:
        parts = [f"{len(self.new)} new", f"{len(self.gone)} gone", f"{len(self.still)} still there"]
        if self.not_compared:
            parts.append(f"{len(self.not_compared)} not compared this time")
        return f"Against the baseline: {', '.join(parts)}."


def compare(old: Findings, new: Findings) -> Changes:
    """What changed from one crosscheck to the next. An agent may have another name: ids do not depend on it."""
    before = {finding.id for finding in old.findings}
    after = {finding.id for finding in new.findings}
    digests = {scenario.name: scenario.digest for scenario in new.scenarios}
    comparable = {s.name for s in old.scenarios if digests.get(s.name) == s.digest and _pairs(old, s.name)}
    comparable = {name for name in comparable if _pairs(old, name) == _pairs(new, name)}
    absent = [finding for finding in old.findings if finding.id not in after]
    return Changes(
        old=old,
        new=tuple(finding for finding in new.findings if finding.id not in before),
        still=tuple(finding for finding in new.findings if finding.id in before),
        gone=tuple(finding for finding in absent if finding.scenario in comparable),
        not_compared=tuple(finding for finding in absent if finding.scenario not in comparable),
        doubtful=tuple(s.name for s in new.scenarios if any(c.doubts for c in new.comparisons if c.scenario == s.name)),
    )


def _pairs(findings: Findings, scenario: str) -> int:
    return sum(comparison.scenario == scenario for comparison in findings.comparisons)


def document(changes: Changes, new: Findings) -> Mapping[str, Any]:
    """The changes as JSON."""
    return {
        "new": [entry(new, finding) for finding in changes.new],
        "gone": [entry(changes.old, finding) for finding in changes.gone],
        "still": [entry(new, finding) for finding in changes.still],
        "not_compared": [entry(changes.old, finding) for finding in changes.not_compared],
        "doubtful_scenarios": list(changes.doubtful),
    }


def entry(findings: Findings, finding: Finding) -> Mapping[str, Any]:
    """A finding in short."""
    return {
        "id": finding.id,
        "scenario": finding.scenario,
        "agents": list(finding.agents),
        "severity": finding.severity,
        "heading": heading(findings, finding),
        "region": finding.region.text,
    }


def heading(findings: Findings, finding: Finding) -> str:
    return next((c.heading for c in findings.clusters if c.id == finding.cluster), finding.region.text)
