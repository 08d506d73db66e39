"""`soft explore`: every path of an agent binary through a scenario, as a bundle."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soft.errors import SoftError

if TYPE_CHECKING:
    from harness.explorer import Progress
    from harness.frozen import Snapshot
    from soft.bundle.model import Manifest
    from soft.scenarios.model import Scenario


@click.command()
@click.argument("agent")
@click.option("--test", "scenario_name", required=True, metavar="NAME", help="A scenario's name, or a file with one.")
@click.option("-o", "--output", metavar="DIR", help="Where the bundle goes.  [default: results/AGENT/SCENARIO]")
@click.option("--profile", metavar="PROFILE", help="The launch profile, if it is not the one of AGENT's name.")
@click.option("--label", metavar="TEXT", help="What the bundle calls the agent.  [default: the binary's name]")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes side by side.")
@click.option("--time-limit", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop with a partial bundle.")
@click.option("--max-paths", type=click.IntRange(min=1), metavar="N", help="Stop with a partial bundle.")
@click.option("--resume", is_flag=True, help="Go on with an exploration that was interrupted or limited.")
@click.option("--replace", is_flag=True, help="Throw away an unfinished exploration in DIR.")
@click.option(
    "--engine", type=click.Choice(["compiled", "angr"]), default="compiled", show_default=True,
    help="angr: the stock engine, an oracle; slow, same result.",
)  # fmt: skip
@click.option("--solver", type=click.Choice(["z3", "bitwuzla"]), default="z3", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def explore(
    agent: str,
    scenario_name: str,
    output: str | None,
    profile: str | None,
    label: str | None,
    jobs: int,
    time_limit: float | None,
    max_paths: int | None,
    resume: bool,
    replace: bool,
    engine: str,
    solver: str,
    as_json: bool,
) -> None:
    """Follow every path of AGENT through a scenario and write a bundle.

    AGENT is a binary (its launch profile is found by its name, or given with --profile), the name of a profile, or a
    file made by `soft snapshot`. Ctrl-C, a limit and a full disk keep all finished paths in a partial bundle.

    \b
    Example:
      soft explore agents/build/reference --test flow_mod
      soft explore ./switchd --profile switchd.toml --test packet_out --jobs 2 -o bundles/switchd
    """
    from soft.launch.process import ended_by_signals
    from soft.scenarios import loader

    try:
        from harness.explorer import Limits
    except ImportError as error:
        raise SoftError(
            f"Exploring needs the vendor's half, which is not installed here ({error.name} is missing); "
            "install it with `pip install soft-openflow[explore]`."
        ) from None
    scenario = loader.load(scenario_name)
    with ended_by_signals():
        snapshot = _snapshot(agent, profile, scenario)
        name = label or snapshot.label
        directory = Path(output) if output else Path("results") / name / scenario.name
        manifest, progress = _explore(
            snapshot, scenario, directory, name, jobs, Limits(time_limit, max_paths), resume, replace, engine, solver,
            watch=not as_json and sys.stderr.isatty(),
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(_figures(manifest, progress, directory), indent=2))
    else:
        for line in _sentences(manifest, progress, directory):
            click.echo(line)


def _snapshot(agent: str, profile: str | None, scenario: Scenario) -> Snapshot:
    from harness.snapshot import freeze
    from harness.snapshot_file import is_snapshot, load
    from soft.launch.find import find
    from soft.launch.handshake import VERSIONS

    path = Path(agent)
    if path.is_file() and is_snapshot(path):
        snapshot = load(path)
        if snapshot.ports < scenario.ports or snapshot.handshake != scenario.handshake:
            raise SoftError(
                f"{agent} was frozen with {snapshot.ports} ports, {'after' if snapshot.handshake else 'before'} the "
                f"handshake; {scenario.name} needs {scenario.ports} and begins "
                f"{'after' if scenario.handshake else 'before'} it. Freeze again with --test {scenario.name}."
            )
        return snapshot
    version = next(number for number, name in VERSIONS.items() if name == scenario.openflow)
    return freeze(find(agent, profile), ports=scenario.ports, handshake=scenario.handshake, version=version)


def _explore(
    snapshot: Snapshot,
    scenario: Scenario,
    directory: Path,
    label: str,
    jobs: int,
    limits: object,
    resume: bool,
    replace: bool,
    engine: str,
    solver: str,
    watch: bool,
) -> tuple[Manifest, Progress]:
    from harness.exploration import Exploration
    from harness.explorer import Limits

    assert isinstance(limits, Limits)
    exploration = Exploration(
        snapshot, scenario, directory, label, jobs=jobs, limits=limits, resume=resume, replace=replace, engine=engine,
        solver=solver,
    )  # fmt: skip
    if not watch:
        return exploration.run()
    from tqdm import tqdm

    with tqdm(unit=" paths", desc=f"{label} {scenario.name}", dynamic_ncols=True, leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.set_postfix_str(
                f"frontier {progress.frontier}, outputs {progress.outputs}, crashes {progress.crashes}", refresh=False
            )
            bar.update(progress.paths - bar.n)

        return exploration.run(show)


def _figures(manifest: Manifest, progress: Progress, directory: Path) -> dict[str, object]:
    statistics = manifest.statistics
    return {
        "bundle": str(directory),
        "scenario": manifest.scenario,
        "agent": manifest.agent,
        "paths": manifest.counts.paths,
        "complete": manifest.complete,
        "reasons": manifest.reasons,
        "outputs": manifest.counts.outputs,
        "crashes": manifest.counts.crashes,
        "conditions": manifest.counts.conditions,
        **{key: statistics[key] for key in ("seconds", "paths_per_second", "blocks_per_second", "queries", "coverage")},
        "unsupported": dict(progress.unsupported),
    }


def _sentences(manifest: Manifest, progress: Progress, directory: Path) -> list[str]:
    counts, statistics = manifest.counts, manifest.statistics
    lines = [
        f"{manifest.agent}, {manifest.scenario}: {counts.paths} paths, {counts.outputs} distinct outputs, "
        f"{counts.crashes} crashing paths, in {statistics['seconds']:.1f} s "
        f"({statistics['paths_per_second']:.0f} paths/s, {statistics['blocks_per_second']:,.0f} blocks/s, "
        f"{statistics['queries']} solver queries); {statistics['coverage']:.1%} of the binary's code ran."
    ]
    if manifest.complete:
        lines.append("Complete: the paths cover the scenario's whole input space.")
    else:
        lines += ["Partial:", *[f"  {reason}" for reason in manifest.reasons]]
    lines.append(f"The bundle is in {directory}.")
    return lines
