"""Findings with one cause are one cluster: its folder, how serious it is, and the heading that says what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from soft.crosscheck.behaviour import Met, clauses, kinds, way_clauses
from soft.crosscheck.cause import Cause, Constraint, Draft, atom, causes, triggers, usual
from soft.crosscheck.model import SEVERITIES, Cluster, FieldSet, Finding, Relation
from soft.crosscheck.words import constraint_texts, subject
from soft.scenarios.model import Scenario

# Constraints that a heading names before it only counts the rest.
_MOST_FIELDS = 4
_LONGEST_HEADING = 1000


def cluster(drafts: Sequence[Draft], scenario: Scenario, agents: int) -> tuple[list[Finding], list[Cluster]]:
    """Put drafts into clusters, most serious first."""
    findings: list[Finding] = []
    clusters: list[Cluster] = []
    for cause in causes(drafts, scenario):
        id, group = cause.id, cause.drafts
        severity = min((draft.finding.severity for draft in group), key=SEVERITIES.index)
        folder = re.sub(r"[^A-Za-z0-9_]+", "-", f"{scenario.name} {severity}").strip("-")[:80] + f"-{id}"
        members = [
            msgspec.structs.replace(d.finding, cluster=id, conditions=f"{folder}/{d.finding.id}.smt2") for d in group
        ]
        findings += members
        shared, options = _shared(cause), _options(cause, scenario)
        said = {name for c in (*shared, *[c for option in options for c in option]) for name in _fields(c)}
        fields = tuple(name for name in scenario.variable_names if name in said)
        clusters.append(
            Cluster(
                id=id,
                scenario=scenario.name,
                heading=_heading(cause, fields, shared, options, scenario),
                severity=severity,
                findings=tuple(member.id for member in members),
                fields=fields,
                folder=folder,
                covered=all(draft.covered for draft in group),
                odd_one_out=_odd_one_out(group, agents),
            )
        )
    clusters.sort(key=lambda c: (SEVERITIES.index(c.severity), len(c.fields), c.heading))
    order = {id: place for place, c in enumerate(clusters) for id in c.findings}
    return sorted(findings, key=lambda finding: order[finding.id]), clusters


# ---------------------------------------------------------------------------------------------- what decides


def _shared(cause: Cause) -> list[Constraint]:
    """What the regions of all findings say."""
    common = set.intersection(*[set(draft.constraints) for draft in cause.drafts])
    return [constraint for constraint in cause.drafts[0].constraints if constraint in common]


Option = tuple[Constraint, ...]


def _options(cause: Cause, scenario: Scenario) -> list[Option]:
    """What makes the difference besides that which all findings share: one of these, each as short as it can be."""
    shared = set(_shared(cause))
    found: dict[Option, None] = {}
    for draft in cause.drafts:
        needed = triggers(draft, scenario) if cause.one_trigger else list(draft.constraints)
        for constraint in needed if cause.one_trigger else ():
            fewer = [c for c in needed if c is not constraint]
            # That a time is after a timeout is not said by saying what both of them are.
            bound = isinstance(constraint, Relation) and constraint.operator in ("≥", "≤")
            if constraint not in shared and fewer and not bound and _enough(fewer, draft, cause, scenario):
                needed = fewer
        found[tuple(c for c in needed if c not in shared)] = None
    if () in found:
        return []
    least = [option for option in found if not any(set(other) < set(option) for other in found)]
    return sorted(least, key=len)


def _enough(needed: Sequence[Constraint], draft: Draft, cause: Cause, scenario: Scenario) -> bool:
    """Whether the default input differs for the same cause once the fields of some constraints are as in an example."""
    values = scenario.defaults
    for name in [name for constraint in needed for name in _fields(constraint)]:
        values[name] = draft.finding.example.values[name]
    return any(other.finding.region.holds(values) for other in cause.drafts)


def _fields(constraint: Constraint) -> tuple[str, ...]:
    if isinstance(constraint, Relation):
        return constraint.fields
    return (constraint.field, constraint.head) if constraint.head else (constraint.field,)


# ---------------------------------------------------------------------------------------------- headings


def _heading(
    cause: Cause, fields: Sequence[str], shared: Sequence[Constraint], options: Sequence[Option], scenario: Scenario
) -> str:
    """One sentence that says what differs: the message, the deciding fields, what each agent does."""
    draft = cause.drafts[0]
    finding = draft.finding
    what, prefix = subject(scenario, fields)
    # What the scenario's default input does not satisfy is what makes the difference: it comes first.
    ordered = sorted(shared, key=lambda constraint: usual(constraint, scenario))
    choices = list(_choices(options))
    if len(choices) > 1:
        frame = [constraint for constraint in ordered if usual(constraint, scenario)]
        parts = _texts(ordered[: len(ordered) - len(frame)])
        parts.append(("and " if parts else "") + ", or ".join(_first(choices, "in {} more cases")))
        start = f"{what} with {', '.join(parts)}"
        if frame:
            start += f"; in each case {', '.join(_first(_texts(frame), '{} more fields'))}"
    else:
        parts = _first([*choices, *_texts(ordered)], "{} more fields")
        start = f"{what} with {', '.join(parts)}" if parts else f"any {what}"
    if prefix:
        start = re.sub(rf"(?<![\w.]){re.escape(prefix)}", "", start)
    told = None
    ends = finding.agents, draft.swapped
    alike = [other for other in cause.drafts if (other.finding.agents, other.swapped) == ends]
    met = {pair for other in alike for pair in other.met}
    if len(met) > 1:
        # What depends on the input has a value in the examples.
        met.update(_shown(other) for other in alike)
        told = way_clauses(draft.way, met, scenario)
    if told is not None:
        left, right = told[::-1] if draft.swapped else told
    else:
        left, right = clauses(*draft.traces, scenario, ports=draft.way.what == "ports")
    text = f"{start}: {finding.agents[0]} {left}, {finding.agents[1]} {right}"
    return text if len(text) <= _LONGEST_HEADING else text[: _LONGEST_HEADING - 1] + "…"


def _shown(draft: Draft) -> Met:
    """What the way's two agents do with the example, in kind."""
    left, right = (kinds(trace) for trace in (draft.traces[::-1] if draft.swapped else draft.traces))
    return left, right


def _first(texts: list[str], rest: str) -> list[str]:
    """As many texts as a heading takes, and how many more there are."""
    more = len(texts) - _MOST_FIELDS
    return [*texts[:_MOST_FIELDS], rest.format(more)] if more > 1 else texts


def _texts(constraints: Sequence[Constraint]) -> list[str]:
    fields = [constraint for constraint in constraints if isinstance(constraint, FieldSet)]
    return constraint_texts(fields, [constraint for constraint in constraints if isinstance(constraint, Relation)])


def _choices(options: Sequence[Option]) -> Iterator[str]:
    """Options in words; the same thing about several items of a list is said once."""
    done: set[Option] = set()
    for option in options:
        same = [other for other in options if len(other) == len(option) == 1 and atom(other[0]) == atom(option[0])]
        names = sorted(c.name or c.field for other in same if isinstance(c := other[0], FieldSet))
        if option in done:
            continue
        done.update(same)
        text = " and ".join(_texts(option))
        if len(names) > 1 and isinstance(first := option[0], FieldSet):
            text = " or ".join(names) + text.removeprefix(first.name or first.field)
        yield text


# ---------------------------------------------------------------------------------------------- more than two agents


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
