"""report.html: one page with everything in it, which asks nobody for anything.

The page is readable without its script; the script filters, follows links and knows the keyboard. A content security
policy allows exactly our style sheet and our script, by their hashes: whatever a stranger's findings contain, nothing
of it can run or be fetched.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib import resources

from soft.crosscheck.model import SEVERITIES, Cluster, Finding, Findings
from soft.report.baseline import Changes
from soft.report.html_finding import CONFIRMATIONS, agent_name, badge, finding_html
from soft.report.html_overview import (
    SEVERITY_WORDS,
    changes_section,
    doubts_section,
    header,
    headline,
    kind_of,
    matrix,
)
from soft.report.markup import Html, safe, tag
from soft.report.picture import Pictures
from soft.report.scenes import Scene
from soft.report.text import confirmation, many

NAME = "report.html"
# Findings of a cluster that show at once; a cluster has one cause, and its first findings tell it.
_MOST_IN_SIGHT = 5
_KEYS = {
    "j or k": "next or previous finding",
    "Enter": "open or close the finding",
    "o": "open or close all that are shown",
    "/": "search",
    "Esc": "leave the search; clear all filters",
    "t": "light or dark",
    "?": "this help",
}


def page(findings: Findings, scenes: Mapping[str, Scene], changes: Changes | None = None) -> str:
    """The whole page."""
    style, script = _resource("report.css"), _resource("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": safe(policy),
        "title": safe(f"{headline(findings)} - SOFT"),
        "style": Html(style),
        "script": Html(script),
        "body": _body(findings, scenes, changes),
    }
    # One pass: a placeholder that comes in with a finding's text is only text.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _resource("report.html"))


def _resource(name: str) -> str:
    return resources.files("soft.report").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _body(findings: Findings, scenes: Mapping[str, Scene], changes: Changes | None) -> Html:
    drawn = _Comparisons(findings, scenes)
    return safe(
        [
            header(findings),
            matrix(findings),
            changes_section(findings, changes) if changes is not None else None,
            _filters(findings, changes) if findings.findings else None,
            tag(
                "main",
                [_cluster(findings, cluster, scenes, changes, drawn) for cluster in findings.clusters],
                tag(
                    "p",
                    "No finding matches. ",
                    tag("button", "Show all", type="button", id="reset"),
                    id="empty",
                    hidden=True,
                ),
                id="findings",
            ),
            doubts_section(findings),
            tag("footer", f"Made by {findings.tool}. The facts behind this page are in findings.json."),
            _help(),
        ]
    )


# ---------------------------------------------------------------------------------------------- clusters


class _Comparisons:
    """What findings of the same two agents in the same scenario have in common."""

    def __init__(self, findings: Findings, scenes: Mapping[str, Scene]) -> None:
        groups: dict[tuple[str, tuple[str, str]], list[Finding]] = {}
        for finding in findings.findings:
            groups.setdefault((finding.scenario, finding.agents), []).append(finding)
        self._pictures = {key: Pictures(group, scenes[key[0]]) for key, group in groups.items()}
        self._doubtful = {(c.scenario, c.agents) for c in findings.comparisons if c.doubts}

    def pictures(self, finding: Finding) -> Pictures:
        return self._pictures[finding.scenario, finding.agents]

    def sure(self, finding: Finding) -> bool:
        """Whether the agents are proved to agree wherever there is no finding."""
        return (finding.scenario, finding.agents) not in self._doubtful


def _cluster(
    findings: Findings, cluster: Cluster, scenes: Mapping[str, Scene], changes: Changes | None, drawn: _Comparisons
) -> Html:
    members = findings.of(cluster)
    labels = [agent.label for agent in findings.agents]
    agents = list(dict.fromkeys(label for finding in members for label in finding.agents))
    notes = [
        tag("span", cluster.scenario),
        tag("span", many(len(members), "finding")),
        tag("span", "decided by ", [tag("code", name) for name in cluster.fields])
        if cluster.fields
        else tag("span", "on every input"),
        tag("span", "odd one out: ", agent_name(cluster.odd_one_out, labels))
        if cluster.odd_one_out in labels and cluster.odd_one_out is not None
        else None,
        None if cluster.covered else tag("span", "there may be more such inputs than the findings cover"),
    ]
    items = [
        finding_html(
            findings,
            finding,
            drawn.pictures(finding),
            scenes[finding.scenario],
            changes.of(finding.id) if changes is not None else None,
            drawn.sure(finding),
        )
        for finding in members
    ]
    if len(items) > _MOST_IN_SIGHT + 1:
        title = tag("summary", f"{len(items) - _MOST_IN_SIGHT} more findings with the same cause")
        items[_MOST_IN_SIGHT:] = [tag("details", title, items[_MOST_IN_SIGHT:], class_="more")]
    return tag(
        "article",
        tag(
            "div",
            badge(cluster.severity, kind_of(cluster.severity), SEVERITY_WORDS[cluster.severity]),
            tag("h3", _named(cluster.heading, agents, labels)),
            tag("p", notes, class_="meta"),
            class_="cluster-head",
        ),
        items,
        class_=f"cluster {kind_of(cluster.severity)}",
        id=f"cluster-{cluster.id}",
    )


def _named(heading: str, agents: Sequence[str], labels: Sequence[str]) -> Html:
    """A heading in which the agents stand out."""
    if not agents:
        return safe(heading)
    # The longest first: one label may begin another.
    pattern = "|".join(re.escape(agent) for agent in sorted(agents, key=len, reverse=True) if agent)
    parts = re.split(rf"(?<![\w.])({pattern})(?![\w.-])", heading) if pattern else [heading]
    return safe([agent_name(part, labels) if place % 2 else safe(part) for place, part in enumerate(parts)])


# ---------------------------------------------------------------------------------------------- filters


def _filters(findings: Findings, changes: Changes | None) -> Html:
    labels = [agent.label for agent in findings.agents]
    agents = [(str(place), label) for place, label in enumerate(labels)] if len(labels) > 2 else []
    pairs = dict.fromkeys(comparison.agents for comparison in findings.comparisons)
    if len(labels) > 2:
        agents += [(" ".join(str(labels.index(label)) for label in pair), " and ".join(pair)) for pair in pairs]
    statuses = {confirmation(finding) for finding in findings.findings}
    return tag(
        "form",
        tag("input", type="search", id="text", placeholder="Search findings  ( / )", aria_label="Search findings"),
        _select("scenario", "all scenarios", [(s.name, s.name) for s in findings.scenarios]),
        _select("agents", "all agents", agents),
        _select("confirmation", "replayed or not", [(name, name) for name in CONFIRMATIONS if name in statuses]),
        _select(
            "change", "new or not", [("new", "new"), ("still there", "still there")] if changes is not None else []
        ),
        tag(
            "span",
            [_severity(findings, name) for name in SEVERITIES],
            class_="severities",
            role="group",
            aria_label="Severity",
        ),
        tag("output", _shown(findings.findings), id="shown", aria_live="polite"),
        id="filters",
        role="search",
    )


def _shown(findings: Sequence[Finding]) -> str:
    return many(len(findings), "finding")


def _select(name: str, everything: str, options: Sequence[tuple[str, str]]) -> Html | None:
    """A choice; none at all if there is nothing to choose."""
    if len(options) < 2:
        return None
    choices = [tag("option", words, value=value) for value, words in options]
    return tag("select", tag("option", everything, value=""), choices, id=name, aria_label=name)


def _severity(findings: Findings, severity: str) -> Html | None:
    number = sum(finding.severity == severity for finding in findings.findings)
    if not number:
        return None
    return tag(
        "button",
        f"{severity} {number}",
        type="button",
        class_=f"badge {kind_of(severity)}",
        data_severity=severity,
        aria_pressed="true",
    )


def _help() -> Html:
    rows = [tag("tr", tag("td", tag("kbd", key)), tag("td", words)) for key, words in _KEYS.items()]
    close = tag("form", tag("button", "Close"), method="dialog")
    return tag("dialog", tag("h2", "Keyboard"), tag("table", rows), close, id="help")
