"""exploration.md: what exploring took, beside the paper's Tables 2, 4 and 5. All of it is read from the bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from results import paper
from results.markdown import machine, percent, seconds, table
from results.plan import SCENARIOS
from soft.bundle.model import Bundle, Manifest
from soft.bundle.reader import read
from soft.solve.terms import Term
from soft.solve.walk import post_order

_INTRO = """\
# Exploration

Written by `make results` from the bundles. The paper's figures are quoted: its switches were the reference switch and
Open vSwitch 1.0 of 2010, run from source under Cloud9, with tests of the same names. Time is from the frozen agent to
the finished bundle, on one core. What is compiled of a binary's code is kept for its next exploration, as it is for any
user: here the longest came first, with nothing kept. Size is the number of Boolean operations in a path condition
(comparisons, connectives, and the conjunction of the path's conditions): the average and the largest."""
_COVERAGE = """\
## Coverage, beside the paper's Table 4

Ours is the share of the binary's code that ran after the freeze, in percent; start-up and the handshake do not count.
The paper's is the share of instructions in the parts that concern OpenFlow, start-up included (12.21 and 19.03 with no
message at all).
"""


@dataclass(frozen=True, slots=True)
class Explored:
    """What a table says about one bundle."""

    manifest: Manifest
    average: float
    largest: int

    @property
    def seconds(self) -> float:
        return float(self.manifest.statistics["seconds"])

    @property
    def whole(self) -> str:
        return "yes" if self.manifest.complete else "partial"


def operations(term: Term) -> int:
    """The Boolean operations in a condition: comparisons and connectives, each distinct one once."""
    return sum(1 for each in post_order([term]) if each.width == 0 and each.op not in ("const", "var"))


def sizes(bundle: Bundle) -> tuple[float, int]:
    """The average and the largest number of Boolean operations in a path condition, the conjunctions included."""
    each = [operations(term) for term in bundle.conditions]
    whole = [sum(each[c] for c in path.conditions) + max(0, len(path.conditions) - 1) for path in bundle.paths]
    return (sum(whole) / len(whole), max(whole)) if whole else (0.0, 0)


def explored(place: Path) -> Explored | None:
    """The figures of the bundle at a place; nothing if there is none."""
    if not (place / "manifest.json").is_file():
        return None
    bundle = read(place)
    return Explored(bundle.manifest, *sizes(bundle))


def page(found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    """The lines of exploration.md. `found` is by agent and scenario."""
    agents = list(dict.fromkeys(agent for agent, _ in found))
    yield _INTRO
    for agent in ("reference", "vswitch", "ovs-vswitchd"):
        if agent in agents:
            yield ""
            yield from _table_2(agent, found)
    yield ""
    yield from _coverage(found)
    yield ""
    yield from _variants(found)
    yield ""
    yield from _others(agents, found)
    yield ""
    yield from _partial(found)
    yield f"Measured on {machine()}."


def _names(agent: str, found: Mapping[tuple[str, str], Explored]) -> list[str]:
    """The scenarios of an agent, those of the paper first and in its order."""
    mine = [scenario for owner, scenario in found if owner == agent]
    return sorted(mine, key=lambda name: (SCENARIOS.index(name) if name in SCENARIOS else len(SCENARIOS), name))


def _table_2(agent: str, found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    theirs = paper.TABLE_2_REFERENCE if agent == "reference" else paper.TABLE_2_OPEN_VSWITCH
    title = "Reference Switch" if agent == "reference" else "Open vSwitch 1.0"
    yield f"## {agent}, beside the paper's {title} (Table 2)"
    yield ""
    head = ["scenario", "paths", "time", "paths/s", "average size", "largest", "outputs", "crashing", "whole space"]
    head += ["paper: paths", "paper: time", "paper: average", "paper: largest"]
    rows = []
    for scenario in _names(agent, found):
        mine, quoted = found[agent, scenario], theirs.get(scenario)
        counts = mine.manifest.counts
        rate = counts.paths / max(mine.seconds, 1e-9)
        row: list[object] = [scenario, counts.paths, seconds(mine.seconds), f"{rate:.0f}", f"{mine.average:.1f}"]
        row += [mine.largest, counts.outputs, counts.crashes, mine.whole]
        row += [quoted.paths, quoted.time, quoted.average, quoted.largest] if quoted else [None] * 4
        rows.append(row)
    yield from table(head, rows)


def _coverage(found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    yield _COVERAGE
    agents = ("reference", "vswitch", "ovs-vswitchd")
    rows = []
    for scenario in SCENARIOS:
        mine = [found.get((agent, scenario)) for agent in agents]
        if any(mine):
            row: list[object] = [scenario, *(_covered(each) for each in mine)]
            rows.append([*row, *paper.TABLE_4.get(scenario, (None, None))])
    yield from table(["scenario", *agents, "paper: Reference Switch", "paper: Open vSwitch"], rows)


def _covered(each: Explored | None) -> str | None:
    return None if each is None else percent(float(each.manifest.statistics["coverage"]))


def _variants(found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    yield "## What concrete fields save, beside the paper's Table 5"
    yield ""
    rows = []
    for scenario, quoted in paper.TABLE_5.items():
        mine = found.get(("reference", scenario))
        if mine is not None:
            paths = mine.manifest.counts.paths
            rows.append([scenario, seconds(mine.seconds), paths, _covered(mine), mine.whole, *quoted])
    head = ["scenario", "time", "paths", "coverage", "whole space", "paper: time", "paper: paths", "paper: coverage"]
    yield from table(head, rows)


def _others(agents: Sequence[str], found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    yield "## The modified builds"
    yield ""
    rows = []
    for agent in agents:
        if agent.startswith("modified-"):
            for scenario in _names(agent, found):
                mine = found[agent, scenario]
                counts = mine.manifest.counts
                rows.append([agent, scenario, counts.paths, seconds(mine.seconds), counts.outputs, mine.whole])
    yield from table(["build", "scenario", "paths", "time", "outputs", "whole space"], rows, left=2)


def _partial(found: Mapping[tuple[str, str], Explored]) -> Iterator[str]:
    partial = [(key, mine) for key, mine in found.items() if not mine.manifest.complete]
    if not partial:
        return
    yield "## Why bundles are partial"
    yield ""
    for (agent, scenario), mine in partial:
        yield f"- {agent}, {scenario}: {' '.join(mine.manifest.reasons)}"
    yield ""
