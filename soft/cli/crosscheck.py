"""`soft crosscheck`: compare bundles; say where the agents differ, or that they do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soft.errors import SoftError

if TYPE_CHECKING:
    from soft.crosscheck.model import Comparison, Findings

STATUS = {"agree": 0, "differ": 1, "unknown": 3}


@click.command()
@click.argument("bundles", nargs=-1, required=True, metavar="A B [C ...]")
@click.option("-o", "--output", type=click.Path(file_okay=False), help="Folder for findings.json and the rest.")
@click.option("--solver", default="bitwuzla", show_default=True, help="bitwuzla or z3.")
@click.option("--timeout", default=20.0, show_default=True, help="Seconds for one question to the solver.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 256), help="Scenarios at a time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def crosscheck(
    bundles: tuple[str, ...], output: str | None, solver: str, timeout: float, jobs: int, as_json: bool
) -> None:
    """Compare bundles: the inputs that two agents answer differently.

    A, B, ... are bundles of one scenario, or folders of bundles that are compared scenario by scenario.

    \b
    Example:
      soft crosscheck results/reference/packet_out results/vswitch/packet_out -o findings/
      soft crosscheck results/reference results/vswitch --jobs 2

    Exit status: 0 all agree (proved), 1 differences, 2 bad input, 3 no difference found but a part is unknown.
    """
    from tqdm import tqdm

    from soft.crosscheck.folder import write_findings
    from soft.crosscheck.run import run
    from soft.crosscheck.sources import plan

    if timeout <= 0:
        raise SoftError("--timeout takes a number of seconds above 0.")
    work = plan(bundles)
    with tqdm(bar_format="{desc}", disable=not sys.stderr.isatty(), leave=False) as bar:
        found, files = run(work, solver=solver, timeout=timeout, jobs=jobs, progress=bar.set_description_str)
    if output is not None:
        write_findings(Path(output), found, files)
    for sentence in work.alone:
        click.echo(f"soft: {sentence}", err=True)
    if as_json:
        click.echo(json.dumps(_summary(found)))
    else:
        for line in summary_lines(found):
            click.echo(line)
    sys.exit(STATUS[found.verdict])


def _summary(found: Findings) -> dict[str, object]:
    return {
        "verdict": found.verdict,
        "findings": len(found.findings),
        "clusters": [
            {
                "id": cluster.id,
                "scenario": cluster.scenario,
                "severity": cluster.severity,
                "heading": cluster.heading,
                "findings": len(cluster.findings),
                "fields": cluster.fields,
                "odd_one_out": cluster.odd_one_out,
            }
            for cluster in found.clusters
        ],
        "unknown": [
            {
                "scenario": comparison.scenario,
                "agents": comparison.agents,
                "kind": doubt.kind,
                "agent": doubt.agent,
                "sentence": doubt.sentence,
                "example": None if doubt.example is None else doubt.example.values,
            }
            for comparison in found.comparisons
            for doubt in comparison.doubts
        ],
        "seconds": round(found.seconds, 3),
        "queries": found.queries,
    }


def summary_lines(found: Findings) -> Iterator[str]:
    """What the terminal shows: one line a cluster, then a line for each comparison."""
    scenarios = len(found.scenarios) > 1
    for cluster in found.clusters:
        where = f"{cluster.scenario}: " if scenarios else ""
        more = f" ({len(cluster.findings)} findings)" if len(cluster.findings) > 1 else ""
        odd = f" [odd one out: {cluster.odd_one_out}]" if cluster.odd_one_out else ""
        yield f"{cluster.severity}: {where}{cluster.heading}{more}{odd}"
    if found.clusters:
        yield ""
    for comparison in found.comparisons:
        yield _verdict(found, comparison)
        for doubt in comparison.doubts:
            yield f"  {doubt.sentence}"
            if doubt.kind == "unexplored" and doubt.example is not None:
                yield f"  for example {', '.join(doubt.example.settings) or 'the default input'}"


def _verdict(found: Findings, comparison: Comparison) -> str:
    left, right = comparison.agents
    statistics = comparison.statistics
    took = f"{statistics.seconds:.1f} s, {statistics.queries} queries"
    pair = f"{comparison.scenario}: {left} and {right}"
    if comparison.verdict == "agree":
        return f"{pair} agree on every input, proved ({took})."
    if comparison.verdict == "unknown":
        return f"{pair}: no difference found, but not every input was compared ({took})."
    clusters = {f.cluster for f in found.findings if f.id in set(comparison.findings)}
    return f"{pair} differ in {_many(len(clusters), 'way')} ({_many(len(comparison.findings), 'finding')}, {took})."


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
