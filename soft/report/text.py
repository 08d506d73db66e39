"""Findings as text: a summary with one line a cluster, and everything about one finding."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from soft.crosscheck.model import Comparison, EventRecord, Finding, Findings
from soft.report.align import Row, differing, payload, rows
from soft.report.baseline import Changes, heading
from soft.report.hexdump import text_lines
from soft.report.scenes import Scene, deciding_fields, free_fields, run_command, step_words

_WIDTH = 118
# Lines of a group of findings before the rest is only counted.
_MOST_LISTED = 50


# ---------------------------------------------------------------------------------------------- summary


def summary(findings: Findings) -> Iterator[str]:
    """What the terminal shows: one line a cluster, then a line for each comparison and each doubt."""
    several = len(findings.scenarios) > 1
    confirmed = {f.id: f.confirmation.status for f in findings.findings if f.confirmation is not None}
    for cluster in findings.clusters:
        where = f"{cluster.scenario}: " if several else ""
        notes = [f"{len(cluster.findings)} findings"] if len(cluster.findings) > 1 else []
        notes += [f"odd one out: {cluster.odd_one_out}"] if cluster.odd_one_out else []
        notes += sorted({confirmed[id] for id in cluster.findings if id in confirmed})
        behind = f" ({'; '.join(notes)})" if notes else ""
        yield f"{cluster.severity}: {where}{cluster.heading}{behind}"
    if findings.clusters:
        yield ""
    for comparison in findings.comparisons:
        yield verdict(findings, comparison)
        for doubt in comparison.doubts:
            yield f"  {doubt.sentence}"
            if doubt.kind == "unexplored" and doubt.example is not None:
                yield f"  for example {', '.join(doubt.example.settings) or 'the default input'}"


def verdict(findings: Findings, comparison: Comparison) -> str:
    """One comparison in a sentence."""
    statistics = comparison.statistics
    took = f"{statistics.seconds:.1f} s, {statistics.queries} queries"
    pair = f"{comparison.scenario}: {comparison.agents[0]} and {comparison.agents[1]}"
    if comparison.verdict == "agree":
        return f"{pair} agree on every input, proved ({took})."
    if comparison.verdict == "unknown":
        return f"{pair}: no difference found, but not every input was compared ({took})."
    mine = set(comparison.findings)
    ways = len({finding.cluster for finding in findings.findings if finding.id in mine})
    return f"{pair} differ in {many(ways, 'way')} ({many(len(mine), 'finding')}, {took})."


def many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def change_lines(findings: Findings, changes: Changes) -> Iterator[str]:
    """What changed since the baseline."""
    for title, group, source in (
        ("new", changes.new, findings),
        ("gone", changes.gone, changes.old),
        ("still there", changes.still, findings),
        ("not compared", changes.not_compared, changes.old),
    ):
        for finding in group[:_MOST_LISTED]:
            yield f"{title}: {finding.id} ({finding.severity}) {heading(source, finding)}"
        if len(group) > _MOST_LISTED:
            yield f"{title}: and {len(group) - _MOST_LISTED} more"
    yield changes.sentence
    if changes.gone and (unsure := sorted({f.scenario for f in changes.gone} & set(changes.doubtful))):
        yield f"Not every input of {', '.join(unsure)} was compared: what is gone there may only be unseen."


# ---------------------------------------------------------------------------------------------- one finding


def finding_text(findings: Findings, finding: Finding, scenes: Mapping[str, Scene]) -> str:
    """Everything about one finding."""
    return "\n".join(_finding_lines(findings, finding, scenes[finding.scenario])) + "\n"


def _finding_lines(findings: Findings, finding: Finding, scene: Scene) -> Iterator[str]:
    yield f"Finding {finding.id}, {finding.severity}, scenario {finding.scenario}, {confirmation(finding)}"
    yield from _wrapped(heading(findings, finding), "")
    yield ""
    yield from _wrapped(f"On inputs with {finding.region.text}:", "")
    width = max(len(behaviour.agent) for behaviour in (*finding.behaviours, *finding.others))
    for behaviour in (*finding.behaviours, *finding.others):
        marks = f" ({', '.join(behaviour.marks)})" if behaviour.marks else ""
        yield from _wrapped(f"{behaviour.agent:<{width}} {behaviour.summary}{marks}", "  ")
    yield from _wrapped(region_claim(finding), "")
    yield from _wrapped(f"Deciding fields: {', '.join(finding.fields) or 'none, every input differs'}.", "")
    yield from _wrapped(f"Fields that do not matter: {', '.join(free_fields(finding)) or 'none'}.", "")
    for words in finding.confirmation.words if finding.confirmation is not None else ():
        yield from _wrapped(words, "")
    yield ""
    yield "Example:"
    deciding = deciding_fields(finding)
    for name, value in finding.example.values.items():
        yield f"  {name} = {scene.show(name, value)}{'  *' if name in deciding else ''}"
    yield ""
    aligned = rows(finding)
    for number, step in enumerate(finding.example.steps):
        yield from _wrapped(f"Step {number}: {step_words(scene, step)[0]}", "")
        if step.kind != "wait":
            yield from (f"    {line}" for line in text_lines(bytes.fromhex(step.hex)))
        mine = [row for row in aligned if row.step == number]
        for row in mine:
            yield from _row_lines(finding, row)
        if not mine:
            yield "  Neither agent sends anything."
    yield ""
    yield "Repeat it:"
    for behaviour in finding.behaviours:
        yield f"  {run_command(scene, behaviour.agent, finding.example)}"


def _row_lines(finding: Finding, row: Row) -> Iterator[str]:
    left, right = finding.agents
    if row.equal:
        yield from _event_lines("both agents", row.left, frozenset())
        return
    a, b = payload(row.left), payload(row.right)
    yield from _event_lines(left, row.left, differing(a, b) if row.comparable else frozenset())
    yield from _event_lines(right, row.right, differing(b, a) if row.comparable else frozenset())


def _event_lines(who: str, event: EventRecord | None, marked: frozenset[int]) -> Iterator[str]:
    if event is None:
        yield f"  {who}: nothing"
        return
    first, *rest = event.words or (event.kind,)
    port = f"port {event.port}: " if event.port is not None else ""
    yield from _wrapped(f"{who}: {port}{first}", "  ")
    yield from (f"    {line}" for line in rest)
    yield from (f"    {line}" for line in text_lines(payload(event), marked))


def confirmation(finding: Finding) -> str:
    """What the live agents said to it, in a word or two."""
    return "not replayed" if finding.confirmation is None else finding.confirmation.status


def region_claim(finding: Finding) -> str:
    """What is known about a finding's region."""
    region = finding.region
    inside = "Proved: every input in this region" if region.proved else "Found by examples: not every input in it"
    inside += " on which both agents were explored shows the two behaviours" if region.proved else " was checked"
    outside = "; no input outside of it does." if region.exact else "; there may be more inputs outside of it."
    return inside + outside


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False
    ) or [indent.rstrip()]
