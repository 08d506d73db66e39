"""deviations.md: the injected deviations, and what finding each took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from results import paper
from results.exploration import Explored
from results.findings import confirmed, only, shown
from results.markdown import machine, seconds, table
from results.plan import DEVIATIONS
from soft.crosscheck.model import Findings

_INTRO = """\
# Injected deviations

Written by `make results`. Each `modified-NN` is `reference` with one deviation; it is explored in one scenario and
crosschecked against `reference`. Time is that of both explorations and of the crosscheck.

Found: {found} of {all}. The paper found {paper_found} of its {paper_all}: it missed the one in the hello exchange and
the one that shows only when a rule times out. Here these are modified-01 and modified-02.
"""
_ROW = re.compile(r"\| (modified-\d\d) \| ([^|]+) \| ([^|]+) \|")


def described(text: str) -> dict[str, tuple[str, str]]:
    """Build → where the deviation is, and what: the table of agents/reference/DEVIATIONS.md."""
    return {match[1]: (match[2].strip(), match[3].strip()) for match in _ROW.finditer(text)}


def page(
    words: Mapping[str, tuple[str, str]],
    explored: Mapping[tuple[str, str], Explored],
    found: Mapping[str, Findings],
) -> Iterator[str]:
    """The lines of deviations.md; `found` has the crosscheck of each build against reference."""
    rows = [_row(build, words, explored, found.get(build)) for build in DEVIATIONS]
    good = sum(1 for build in DEVIATIONS if build in found and found[build].clusters)
    yield _INTRO.format(found=good, all=len(DEVIATIONS), paper_found=paper.FOUND, paper_all=paper.INJECTED)
    head = ["build", "where", "deviation", "scenario", "most serious finding"]
    head += ["findings", "clusters", "confirmed", "time"]
    yield from table(head, rows, left=5)
    yield ""
    yield f"Measured on {machine()}."


def _row(
    build: str,
    words: Mapping[str, tuple[str, str]],
    explored: Mapping[tuple[str, str], Explored],
    found: Findings | None,
) -> list[object]:
    scenario = DEVIATIONS[build]
    row: list[object] = [build, *words[build], scenario]
    if found is None:
        return [*row, "not compared", None, None, None, None]
    total = only(found).statistics.seconds
    total += sum(explored[agent, scenario].seconds for agent in ("reference", build))
    first = shown(found.clusters[0]) if found.clusters else f"none: {found.verdict}"
    return [*row, first, len(found.findings), len(found.clusters), confirmed(found), seconds(total)]


def read_descriptions() -> dict[str, tuple[str, str]]:
    return described(Path("agents/reference/DEVIATIONS.md").read_text(encoding="utf-8"))
