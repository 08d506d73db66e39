"""findings.md: what differs, beside the paper's Table 3. All of it is read from the crosschecks' findings.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from results import paper
from results.markdown import machine, seconds, table
from results.plan import Crosscheck
from soft.crosscheck.compare import STOPPED
from soft.crosscheck.model import Cluster, Comparison, Findings

PAIR = ("reference", "vswitch")
_INTRO = """\
# Findings

Written by `make results` from the crosschecks. An inconsistency is the paper's unit: a pair of distinct outputs that
some input leads to. A finding is a region of inputs with one pair of behaviours; a cluster is what has one cause.
Confirmed: the live agents were sent the finding's example, and did what was predicted. Stopped: there may be more, as
the crosscheck was given no more time.

## reference and vswitch, beside the paper's Reference Switch and Open vSwitch 1.0 (Table 3)
"""
# A heading that names every value of a field is cut in the list; findings.json has it whole.
_LONGEST = 400
_VERDICTS = ("differ", "agree", "unknown")


def page(done: Mapping[Crosscheck, Findings], missing: Sequence[Crosscheck] = ()) -> Iterator[str]:
    """The lines of findings.md; `missing` are crosschecks that gave no result."""
    yield _INTRO
    yield from _table_3({key.scenario: found for key, found in done.items() if key.agents == PAIR})
    three = {key.scenario: found for key, found in done.items() if len(key.agents) == 3 and not key.all_with_all}
    if three:
        yield ""
        yield "## Three ways: reference, vswitch and Debian's Open vSwitch 3.1"
        yield ""
        yield from _three_ways(three)
    if together := {key: found for key, found in done.items() if key.all_with_all}:
        yield ""
        yield "## All with all: every pair of these, and of the builds with a deviation"
        yield ""
        yield from _all_with_all(together)
    if alone := {key: found for key, found in done.items() if key.with_itself}:
        yield ""
        yield "## Each complete bundle with itself"
        yield ""
        yield from _with_themselves(alone)
    if missing:
        yield ""
        yield "No result, because a bundle was missing or the crosscheck failed:"
        yield ""
        yield from (f"- {', '.join(each.agents)}: {each.scenario}" for each in missing)
    yield ""
    yield "## What differs between reference and vswitch"
    for key, found in done.items():
        if key.agents == PAIR and found.clusters:
            yield ""
            yield f"### {key.scenario}"
            yield ""
            yield from _clusters(found)
    if three:
        yield ""
        yield "## What is odd about Open vSwitch, or about ours"
        for scenario, found in three.items():
            if found.clusters:
                yield ""
                yield f"### {scenario}"
                yield ""
                yield from _clusters(found)
    yield ""
    yield f"Measured on {machine()}."


def _table_3(done: Mapping[str, Findings]) -> Iterator[str]:
    head = ["scenario", "verdict", "outputs: reference", "vswitch", "inconsistencies", "findings", "clusters"]
    head += ["confirmed", "time", "paper: outputs", "paper: inconsistencies", "paper: time"]
    rows = []
    for scenario, found in done.items():
        (comparison,) = found.comparisons
        quoted = paper.TABLE_3.get(scenario)
        row: list[object] = [scenario, comparison.verdict, *comparison.counts.outputs, comparison.counts.differing]
        row += [len(comparison.findings), len(found.clusters), confirmed(found), _spent(found)]
        outputs = f"{quoted.reference}, {quoted.open_vswitch}" if quoted else None
        row += [outputs, quoted.inconsistencies, quoted.time] if quoted else [None] * 3
        rows.append(row)
    yield from table(head, rows, left=2)


def _three_ways(done: Mapping[str, Findings]) -> Iterator[str]:
    rows = []
    for scenario, found in done.items():
        odd = Counter(cluster.odd_one_out or "none" for cluster in found.clusters)
        row: list[object] = [scenario, found.verdict, len(found.findings), len(found.clusters)]
        row += [odd[agent] for agent in ("reference", "vswitch", "ovs-vswitchd")]
        rows.append([*row, confirmed(found), _spent(found)])
    head = ["scenario", "verdict", "findings", "clusters", "odd: reference", "odd: vswitch", "odd: Open vSwitch"]
    yield from table([*head, "confirmed", "time"], rows, left=2)


def _all_with_all(done: Mapping[Crosscheck, Findings]) -> Iterator[str]:
    rows = []
    for key, found in done.items():
        verdicts = Counter[str](comparison.verdict for comparison in found.comparisons)
        row: list[object] = [key.scenario, ", ".join(key.agents), *(verdicts[each] for each in _VERDICTS)]
        rows.append([*row, len(found.findings), confirmed(found), _spent(found)])
    head = ["scenario", "agents", *(f"pairs: {verdict}" for verdict in _VERDICTS), "findings", "confirmed", "time"]
    yield from table(head, rows, left=2)


def _with_themselves(done: Mapping[Crosscheck, Findings]) -> Iterator[str]:
    verdicts = Counter(found.verdict for found in done.values())
    yield f"{verdicts['agree']} of {len(done)} agree, proved; {verdicts['differ']} differ."
    for key, found in done.items():
        if found.verdict != "agree":
            doubts = dict.fromkeys(doubt.sentence for comparison in found.comparisons for doubt in comparison.doubts)
            yield f"- {key.agents[0]}, {key.scenario}: {found.verdict}. {' '.join(doubts)}"


def _spent(found: Findings) -> str:
    """How long it took, and if that was not enough."""
    doubts = {doubt.sentence for comparison in found.comparisons for doubt in comparison.doubts}
    return seconds(found.seconds) + (", stopped" if STOPPED in doubts else "")


def confirmed(found: Findings) -> str | None:
    """How many findings the live agents confirmed; nothing if none was sent to them."""
    statuses = Counter(finding.confirmation.status for finding in found.findings if finding.confirmation)
    return f"{statuses['confirmed']} of {len(found.findings)}" if statuses else None


def _clusters(found: Findings) -> Iterator[str]:
    for cluster in found.clusters:
        more = f" ({len(cluster.findings)} findings)" if len(cluster.findings) > 1 else ""
        odd = f" *Odd one out: {cluster.odd_one_out}.*" if cluster.odd_one_out else ""
        yield f"- **{cluster.severity}**: {shown(cluster)}{more}{odd}"


def shown(cluster: Cluster) -> str:
    heading = cluster.heading
    return heading if len(heading) <= _LONGEST else heading[: _LONGEST - 1] + "…"


def only(found: Findings) -> Comparison:
    """The comparison of a crosscheck of two bundles."""
    (comparison,) = found.comparisons
    return comparison
