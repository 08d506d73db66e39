"""Findings with one cause are one cluster: the same pair of behaviours, decided by the same fields.

A cause that shows in several ways (an action that is done wrong, whatever port the packet then leaves through) gives
regions with other fields, but with one constraint in common that ordinary inputs do not satisfy: these are one cluster
too, and its heading names what they have in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from soft.crosscheck.behaviour import Kind, Way, clauses, general, way_clauses
from soft.crosscheck.model import SEVERITIES, Cluster, FieldSet, Finding
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
    for cause in _causes(groups, scenario):
        id, group = cause.id, cause.drafts
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
                heading=_heading(cause, scenario),
                severity=severity,
                findings=tuple(member.id for member in members),
                fields=_fields(cause, scenario),
                folder=folder,
                covered=all(draft.covered for draft in group),
                odd_one_out=_odd_one_out(group, agents),
            )
        )
    clusters.sort(key=lambda c: (SEVERITIES.index(c.severity), len(c.fields), c.heading))
    order = {id: place for place, c in enumerate(clusters) for id in c.findings}
    return sorted(findings, key=lambda finding: order[finding.id]), clusters


@dataclass(frozen=True, slots=True)
class _Cause:
    """Drafts of one cluster, the most typical first. `shared` is what several regions with other fields have in common;
    it is empty if all have the same fields."""

    id: str
    drafts: list[Draft]
    shared: tuple[FieldSet, ...] = ()


def _causes(groups: Mapping[str, list[Draft]], scenario: Scenario) -> list[_Cause]:
    """Put together groups that show one pair of behaviours in general, and share a constraint that defaults miss."""
    families: dict[str, dict[str, list[Draft]]] = {}
    for id, group in groups.items():
        families.setdefault(_family(group[0], scenario), {})[id] = group
    found: list[_Cause] = []
    for family, rest in families.items():
        while (best := _narrowest_shared(rest, scenario)) is not None:
            members = [id for id, group in rest.items() if best in _constraints(group)]
            drafts = [draft for id in members for draft in rest.pop(id)]
            shared = tuple(field for field in drafts[0].finding.region.fields if field in _constraints(drafts))
            found.append(_Cause(identifier("cause", scenario.name, family, best.text), drafts, shared))
        found += [_Cause(id, group) for id, group in rest.items()]
    return found


def _family(draft: Draft, scenario: Scenario) -> str:
    """The pair of behaviours in general, and who shows them."""
    way = draft.way
    # What is wrong with bytes is so wherever they are sent.
    kinds = ((), ()) if way.what in ("bytes", "lengths") else (general(way.left), general(way.right))
    behaviours = sorted(zip(draft.sides, kinds, strict=True))
    return identifier("family", scenario.name, behaviours, way.what)


def _constraints(drafts: Sequence[Draft]) -> set[FieldSet]:
    """What the regions of all drafts say of fields."""
    return set.intersection(*[set(draft.finding.region.fields) for draft in drafts])


def _narrowest_shared(groups: Mapping[str, list[Draft]], scenario: Scenario) -> FieldSet | None:
    """The constraint of two groups or more that leaves a field the fewest values, if the defaults do not satisfy it."""
    counted = Counter(field for group in groups.values() for field in _constraints(group))
    unusual = [field for field, number in counted.items() if number > 1 and not _usual(field, scenario)]
    return min(unusual, key=lambda field: (_share(field, scenario), field.text), default=None)


def _usual(field: FieldSet, scenario: Scenario) -> bool:
    defaults = scenario.defaults
    return field.holds(defaults[field.field], defaults.get(field.head, 0))


def _share(field: FieldSet, scenario: Scenario) -> float:
    """How much of its field a constraint allows."""
    width = (field.bits or scenario.variable(field.field).width) + bool(field.head)
    return sum(high - low + 1 for low, high in field.intervals) / (1 << width)


def _fields(cause: _Cause, scenario: Scenario) -> tuple[str, ...]:
    """The fields that decide in all findings."""
    common = set.intersection(*[set(draft.finding.fields) for draft in cause.drafts])
    return tuple(name for name in scenario.variable_names if name in common)


def _varied(cause: _Cause) -> list[str]:
    """What decides in all findings, but with values or relations that are not the same in all."""
    said = {field.name or field.field for field in cause.shared}
    common = set.intersection(*[set(_names(draft.finding)) for draft in cause.drafts])
    return [name for name in _names(cause.drafts[0].finding) if name in common - said]


def _names(finding: Finding) -> list[str]:
    """The deciding fields as people call them: vlan_vid and nw_tos are two, though both head an action's body."""
    related = [name for r in finding.region.relations for name in (r.left, r.right, r.head) if name]
    return sorted({*related, *[field.name or field.field for field in finding.region.fields]})


def _heading(cause: _Cause, scenario: Scenario) -> str:
    """One sentence that says what differs: the message, the deciding fields, what each agent does."""
    draft = cause.drafts[0]
    finding = draft.finding
    what, prefix = subject(scenario, _fields(cause, scenario))
    # What the scenario's default input does not satisfy is what makes the difference: it comes first.
    region = finding.region
    fields = sorted(cause.shared or region.fields, key=lambda field: _usual(field, scenario))
    parts = constraint_texts(fields, () if cause.shared else region.relations)
    varied = _varied(cause) if cause.shared else []
    if prefix:
        parts = [re.sub(rf"(?<![\w.]){re.escape(prefix)}", "", part) for part in parts]
        varied = [name.removeprefix(prefix) for name in varied]
    more = len(parts) - _MOST_FIELDS
    if more > 1:
        parts = [*parts[:_MOST_FIELDS], f"{more} more fields"]
    start = f"{what} with {', '.join(parts)}" if parts else f"any {what}"
    if cause.shared:
        start += f" and certain {', '.join(varied[:_MOST_FIELDS])}" if varied else " and more"
    told = None
    ends = finding.agents, draft.swapped
    met = [pair for other in cause.drafts if (other.finding.agents, other.swapped) == ends for pair in other.met]
    if len(set(met)) > 1:
        told = way_clauses(draft.way, [left for left, _ in met], [right for _, right in met], scenario)
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
