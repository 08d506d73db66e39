"""Findings with one cause are one cluster: the same pair of behaviours, decided by the same fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from soft.crosscheck.behaviour import Kind, Way, clauses, way_clauses
from soft.crosscheck.model import SEVERITIES, Cluster, Finding
from soft.crosscheck.words import constraint_texts, subject
from soft.scenarios.model import Scenario
from soft.trace import Trace

# Fields that a heading names before it only counts the rest.
_MOST_FIELDS = 4
_LONGEST_HEADING = 1000


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding without its cluster, and what decides which one that is.

    `sides` are the agents, by rank, that do the same with the example as the left and as the right one of the `way`.
    `traces` are what the two agents do with it, in the order of the finding's behaviours.
    """

    finding: Finding
    way: Way
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    swapped: bool  # the way's left is the finding's second agent
    met: frozenset[tuple[tuple[Kind, ...], tuple[Kind, ...]]]  # what the way's two agents do in the region, in kind
    covered: bool
    traces: tuple[Trace, Trace]


def identifier(*parts: object) -> str:
    """A short name that depends on the parts alone."""
    return blake2b(msgspec.json.encode(parts), digest_size=6).hexdigest()


def cluster(drafts: Sequence[Draft], scenario: Scenario, agents: int) -> tuple[list[Finding], list[Cluster]]:
    """Put drafts into clusters, most serious first."""
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        way = draft.way
        behaviours = sorted(zip(draft.sides, (way.left, way.right), strict=True))
        id = identifier("cluster", scenario.name, behaviours, way.what, _names(draft.finding))
        groups.setdefault(id, []).append(draft)
    findings: list[Finding] = []
    clusters: list[Cluster] = []
    for id, group in groups.items():
        severity = min((draft.finding.severity for draft in group), key=SEVERITIES.index)
        folder = re.sub(r"[^A-Za-z0-9_]+", "-", f"{scenario.name} {severity}").strip("-")[:80] + f"-{id}"
        members = [
            msgspec.structs.replace(d.finding, cluster=id, conditions=f"{folder}/{d.finding.id}.smt2") for d in group
        ]
        findings += members
        clusters.append(
            Cluster(
                id=id,
                scenario=scenario.name,
                heading=_heading(group[0], scenario),
                severity=severity,
                findings=tuple(member.id for member in members),
                fields=group[0].finding.fields,
                folder=folder,
                covered=all(draft.covered for draft in group),
                odd_one_out=_odd_one_out(group, agents),
            )
        )
    clusters.sort(key=lambda c: (SEVERITIES.index(c.severity), len(c.fields), c.heading))
    order = {id: place for place, c in enumerate(clusters) for id in c.findings}
    return sorted(findings, key=lambda finding: order[finding.id]), clusters


def _names(finding: Finding) -> list[str]:
    """The deciding fields as people call them: vlan_vid and nw_tos are two, though both head an action's body."""
    related = [name for r in finding.region.relations for name in (r.left, r.right, r.head) if name]
    return sorted({*related, *[field.name or field.field for field in finding.region.fields]})


def _heading(draft: Draft, scenario: Scenario) -> str:
    """One sentence that says what differs: the message, the deciding fields, what each agent does."""
    finding = draft.finding
    what, prefix = subject(scenario, finding.fields)
    # What the scenario's default input does not satisfy is what makes the difference: it comes first.
    region, defaults = finding.region, scenario.defaults
    fields = sorted(region.fields, key=lambda f: f.holds(defaults[f.field], defaults.get(f.head, 0)))
    parts = constraint_texts(fields, region.relations)
    if prefix:
        parts = [re.sub(rf"(?<![\w.]){re.escape(prefix)}", "", part) for part in parts]
    more = len(parts) - _MOST_FIELDS
    if more > 1:
        parts = [*parts[:_MOST_FIELDS], f"{more} more fields"]
    start = f"{what} with {', '.join(parts)}" if parts else f"any {what}"
    told = None
    if len(draft.met) > 1:
        told = way_clauses(draft.way, [left for left, _ in draft.met], [right for _, right in draft.met], scenario)
    if told is not None:
        left, right = told[::-1] if draft.swapped else told
    else:
        left, right = clauses(*draft.traces, scenario, ports=draft.way.what == "ports")
    text = f"{start}: {finding.agents[0]} {left}, {finding.agents[1]} {right}"
    return text if len(text) <= _LONGEST_HEADING else text[: _LONGEST_HEADING - 1] + "…"


def _odd_one_out(group: Sequence[Draft], agents: int) -> str | None:
    """The one agent that differs from all others, which agree, in every finding of a cluster."""
    odd = {_odd(draft, agents) for draft in group}
    return odd.pop() if len(odd) == 1 else None


def _odd(draft: Draft, agents: int) -> str | None:
    if agents < 3 or sum(map(len, draft.sides)) < agents:
        return None
    for behaviour, other in (draft.finding.behaviours, draft.finding.behaviours[::-1]):
        others = [third.events for third in draft.finding.others]
        if all(events == other.events for events in others) and behaviour.events != other.events:
            return behaviour.agent
    return None
