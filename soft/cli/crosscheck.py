"""`soft crosscheck`: compare bundles; say where the agents differ, or that they do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soft.errors import SoftError

if TYPE_CHECKING:
    from soft.crosscheck.model import Findings
    from soft.launch.find import Target

STATUS = {"agree": 0, "differ": 1, "unknown": 3}


@click.command()
@click.argument("bundles", nargs=-1, required=True, metavar="A B [C ...]")
@click.option("-o", "--output", type=click.Path(file_okay=False), help="Folder for findings.json and the report.")
@click.option("--confirm", "live", multiple=True, metavar="LABEL=BINARY", help="Replay the findings on it; repeat it.")
@click.option("--solver", default="bitwuzla", show_default=True, help="bitwuzla or z3.")
@click.option("--timeout", default=20.0, show_default=True, help="Seconds for one question to the solver.")
@click.option("--time-limit", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop with what was found by then.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 256), help="Scenarios at a time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def crosscheck(
    bundles: tuple[str, ...],
    output: str | None,
    live: tuple[str, ...],
    solver: str,
    timeout: float,
    time_limit: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Compare bundles: the inputs that two agents answer differently.

    A, B, ... are bundles of one scenario, or folders of bundles that are compared scenario by scenario. With -o, the
    folder gets findings.json, report.html, junit.xml, and for each finding its text, script, captures and conditions.
    With --confirm for both agents of a finding, its example is sent to the live agents at once. Ctrl-C and a time limit
    keep what was found; a second Ctrl-C does not.

    \b
    Example:
      soft crosscheck results/reference/packet_out results/vswitch/packet_out -o findings/
      soft crosscheck results/reference results/vswitch --jobs 2
      soft crosscheck A/hello B/hello -o findings/ --confirm A=builds/A --confirm B=builds/B

    Exit status: 0 all agree (proved), 1 differences, 2 bad input, 3 no difference found but a part is unknown.
    """
    from tqdm import tqdm

    from soft.crosscheck.crosscheck import unique_labels
    from soft.crosscheck.folder import write_findings
    from soft.crosscheck.run import run
    from soft.crosscheck.sources import plan
    from soft.report.text import summary
    from soft.report.write import write_report

    if timeout <= 0:
        raise SoftError("--timeout takes a number of seconds above 0.")
    work = plan(bundles)
    targets = _targets(live, unique_labels(work.labels))
    with tqdm(bar_format="{desc}", disable=not sys.stderr.isatty(), leave=False) as bar:
        found, files = run(
            work, solver=solver, timeout=timeout, jobs=jobs, progress=bar.set_description_str, time_limit=time_limit
        )
    if targets:
        found = _confirmed(found, targets)
    if output is not None:
        write_findings(Path(output), found, files)
        write_report(found, Path(output))
    for sentence in work.alone:
        click.echo(f"soft: {sentence}", err=True)
    if as_json:
        click.echo(json.dumps(_summary(found)))
    else:
        for line in summary(found):
            click.echo(line)
    sys.exit(STATUS[found.verdict])


def _targets(live: tuple[str, ...], labels: Sequence[str]) -> dict[str, Target]:
    """What to start for each agent that --confirm names."""
    from soft.cli.replay import pairs
    from soft.launch.find import find

    named = pairs(live, "--confirm", "LABEL=BINARY")
    if unknown := [label for label in named if label not in labels]:
        raise SoftError(f"--confirm names {unknown[0]}, but the bundles are of {' and '.join(labels)}.")
    return {label: find(binary) for label, binary in named.items()}


def _confirmed(found: Findings, targets: Mapping[str, Target]) -> Findings:
    """The findings with what the live agents did."""
    from soft.launch.process import ended_by_signals
    from soft.replay.confirm import confirm

    with ended_by_signals():
        return confirm(found, targets)


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
