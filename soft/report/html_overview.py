"""The top and the bottom of the page: the verdict, the matrix, what changed, and what is not proved."""

from __future__ import annotations

from collections.abc import Sequence

from soft.crosscheck.model import SEVERITIES, Comparison, Finding, Findings
from soft.report.baseline import Changes, heading
from soft.report.html_finding import agent_name, badge
from soft.report.markup import Html, safe, tag
from soft.report.text import many

# What each degree of seriousness means, for a person who meets the word first on this page.
SEVERITY_WORDS = {
    "crash": "One agent ends, hangs, floods or closes the connection; the other does not.",
    "forwarding": "Packets leave through other ports, or go to the controller instead.",
    "lost error": "One agent answers with an error that the other does not send.",
    "lost message": "One agent sends a message that the other does not send.",
    "different error": "Both send messages, but of different kinds.",
    "content": "The same events with other bytes.",
}


def kind_of(severity: str) -> str:
    """A severity as the name of a style."""
    return f"sev-{severity.replace(' ', '-')}"


def headline(findings: Findings) -> str:
    """The whole crosscheck in a sentence."""
    labels = [agent.label for agent in findings.agents]
    who = f"{labels[0]} and {labels[1]}" if len(labels) == 2 else many(len(labels), "agent")
    if findings.verdict == "agree":
        return f"{who} agree on every input"
    if findings.verdict == "unknown":
        return f"{who}: no difference found, but not everything was compared"
    return f"{who} differ in {many(len(findings.clusters), 'way')}"


def header(findings: Findings) -> Html:
    pairs = len(findings.comparisons)
    facts = [
        many(len(findings.findings), "finding"),
        many(len(findings.clusters), "cluster"),
        many(len(findings.scenarios), "scenario"),
        many(pairs, "comparison"),
        f"{findings.seconds:,.1f} s",
        many(findings.queries, "solver query").replace("querys", "queries"),
    ]
    return tag(
        "header",
        tag(
            "div",
            tag("p", "SOFT crosscheck", class_="brand"),
            tag("h1", headline(findings)),
            tag("p", " · ".join(facts), class_="note"),
        ),
        tag(
            "div",
            tag("button", "?", type="button", id="help-button", aria_label="Keyboard shortcuts", title="Keyboard (?)"),
            tag("button", "◐", type="button", id="theme", aria_label="Light or dark", title="Light or dark (t)"),
            class_="buttons",
        ),
        class_="top",
    )


def matrix(findings: Findings) -> Html:
    """Scenarios down, pairs of agents across; each cell filters the list below."""
    labels = [agent.label for agent in findings.agents]
    pairs = list(dict.fromkeys(comparison.agents for comparison in findings.comparisons))
    by_place = {(comparison.scenario, comparison.agents): comparison for comparison in findings.comparisons}
    known = {finding.id: finding for finding in findings.findings}
    head = tag(
        "tr",
        tag("th", "scenario", scope="col"),
        [tag("th", agent_name(a, labels), " and ", agent_name(b, labels), scope="col") for a, b in pairs],
    )
    body = [
        tag(
            "tr",
            tag("th", tag("span", scenario.name), tag("small", scenario.summary), scope="row"),
            [_cell(by_place.get((scenario.name, pair)), known, labels) for pair in pairs],
        )
        for scenario in findings.scenarios
    ]
    table = tag("table", tag("thead", head), tag("tbody", body), class_="matrix")
    return tag("section", tag("h2", "Overview"), tag("div", table, class_="scroll"), _key(findings), id="overview")


def _cell(comparison: Comparison | None, known: dict[str, Finding], labels: Sequence[str]) -> Html:
    if comparison is None:
        return tag("td", tag("span", "not compared", class_="note"))
    mine = [known[id] for id in comparison.findings]
    counts = comparison.counts
    details = (
        f"{counts.paths[0]:,} and {counts.paths[1]:,} paths, {counts.outputs[0]:,} and {counts.outputs[1]:,} outputs, "
        f"{many(counts.differing, 'differing pair')}, {comparison.statistics.seconds:.1f} s"
    )
    if comparison.verdict == "differ":
        words = [tag("b", many(len({f.cluster for f in mine}), "way")), f" {many(len(mine), 'finding')}"]
    elif comparison.verdict == "agree":
        words = [tag("b", "agree"), " proved"]
    else:
        words = [tag("b", "unknown"), " no difference found"]
    doubts = tag("span", "not everything compared", class_="doubt") if comparison.doubts else None
    return tag(
        "td",
        tag(
            "button",
            tag("span", words, class_="count"),
            _bar(mine),
            doubts,
            type="button",
            class_=f"cell {comparison.verdict}",
            title=details,
            data_scenario=comparison.scenario,
            data_agents=" ".join(str(labels.index(label)) for label in comparison.agents),
        ),
    )


def _bar(findings: Sequence[Finding]) -> Html | None:
    """How many findings there are of each severity, as a bar."""
    parts, at = [], 0.0
    for severity in SEVERITIES:
        number = sum(finding.severity == severity for finding in findings)
        if number:
            width = 100 * number / len(findings)
            title = tag("title", f"{severity}: {number}")
            parts.append(tag("rect", title, class_=kind_of(severity), x=at, y=0, width=width, height=6))
            at += width
    if not parts:
        return None
    return tag("svg", parts, class_="bar", viewBox="0 0 100 6", preserveAspectRatio="none", aria_hidden="true")


def _key(findings: Findings) -> Html | None:
    present = [severity for severity in SEVERITIES if any(f.severity == severity for f in findings.findings)]
    if not present:
        return None
    items = [tag("li", badge(severity, kind_of(severity)), " ", SEVERITY_WORDS[severity]) for severity in present]
    return tag("ul", items, class_="key")


def changes_section(findings: Findings, changes: Changes) -> Html:
    """What became of the baseline's findings."""
    parts: list[Html | None] = [tag("h2", "Since the baseline"), tag("p", changes.sentence, class_="lead")]
    for title, group, source, here in (
        ("new", changes.new, findings, True),
        ("gone", changes.gone, changes.old, False),
        ("not compared this time", changes.not_compared, changes.old, False),
    ):
        if not group:
            continue
        items = []
        for finding in group:
            words = heading(source, finding)
            name = tag("a", words, href=f"#finding-{finding.id}") if here else safe(words)
            items.append(tag("li", badge(finding.severity, kind_of(finding.severity)), " ", name))
        parts.append(
            tag("details", tag("summary", f"{len(group)} {title}"), tag("ul", items), open=here, class_="same")
        )
    unsure = sorted({f.scenario for f in changes.gone} & set(changes.doubtful))
    if unsure:
        parts.append(
            tag("p", f"Not every input of {', '.join(unsure)} was compared: what is gone there may only be unseen.")
        )
    return tag("section", *parts, id="baseline")


def doubts_section(findings: Findings) -> Html | None:
    """The parts of the input space about which nothing is proved."""
    items = []
    for comparison in findings.comparisons:
        for doubt in comparison.doubts:
            example = ", ".join(doubt.example.settings) or "the default input" if doubt.example is not None else ""
            items.append(
                tag(
                    "li",
                    badge(doubt.kind, "doubt"),
                    " ",
                    tag("b", comparison.scenario),
                    f", {comparison.agents[0]} and {comparison.agents[1]}: {doubt.sentence}",
                    tag("div", "for example ", tag("code", example), class_="note") if example else None,
                )
            )
    if not items:
        return None
    lead = tag("p", "Where nothing is proved, the agents may differ or agree.", class_="note")
    return tag("section", tag("h2", "What is not proved"), lead, tag("ul", items, class_="doubts"), id="doubts")
