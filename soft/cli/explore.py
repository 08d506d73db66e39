"""`soft explore`: every path of an agent binary through a scenario, as a bundle."""

from __future__ import annotations

import json
import sys
from dataclasses import replace as replace_field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace as replace_entry

from soft.errors import SoftError

if TYPE_CHECKING:
    from harness.explorer import Progress
    from harness.frozen import Snapshot
    from soft.bundle.model import Manifest
    from soft.scenarios.model import Scenario


# So many paths for one function's results are reason enough to start again without it.
_WORTH_A_STUB = 20


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
@click.option(
    "--auto-stub", is_flag=True, help="Replace a hash that costs many paths by a constant, and start again."
)
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
    auto_stub: bool,
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
    if resume:
        _check_resumable(agent, scenario)
    added: tuple[str, ...] = ()
    with ended_by_signals():
        while True:
            snapshot = _snapshot(agent, profile, scenario, added)
            name = label or snapshot.label
            directory = Path(output) if output else Path("results") / name / scenario.name
            try:
                manifest, progress = _explore(
                    snapshot, scenario, directory, name, jobs, Limits(time_limit, max_paths), resume, replace, engine,
                    solver, watch=not as_json and sys.stderr.isatty(), known=added if auto_stub else None,
                )  # fmt: skip
                break
            except _Again as again:
                click.echo(f'Starting again with stub = ["{again.stub}"].', err=True)
                added, replace, resume = (*added, again.stub), True, False
    if as_json:
        click.echo(json.dumps({**_figures(manifest, progress, directory), "added_stubs": added}, indent=2))
    else:
        for line in _sentences(manifest, progress, directory):
            click.echo(line)
    for line in _advice(progress, snapshot):
        click.echo(line, err=True)


class _Again(Exception):
    """A function was found that is better replaced by a constant."""

    def __init__(self, stub: str) -> None:
        super().__init__(stub)
        self.stub = stub


def _check_resumable(agent: str, scenario: Scenario) -> None:
    """Where time passes, only the very same freeze can be gone on with: the timers of another one stand elsewhere."""
    from harness.snapshot_file import is_snapshot
    from soft.scenarios.model import Wait

    is_file = Path(agent).is_file() and is_snapshot(Path(agent))
    if any(isinstance(step, Wait) for step in scenario.steps) and not is_file:
        raise SoftError(
            f"{scenario.name} waits, and the timers of an agent that is started again stand elsewhere: its paths would "
            "not fit those that are there. Explore a file of `soft snapshot`, which can be resumed, or begin anew with "
            "--replace."
        )


def _snapshot(agent: str, profile: str | None, scenario: Scenario, stubs: tuple[str, ...]) -> Snapshot:
    from harness.snapshot import freeze
    from harness.snapshot_file import is_snapshot, load
    from soft.launch.find import find
    from soft.launch.handshake import VERSIONS

    path = Path(agent)
    if path.is_file() and is_snapshot(path):
        if stubs:
            raise SoftError(f"{agent} is frozen: a stub is applied before an agent starts. Give --auto-stub the agent.")
        snapshot = load(path)
        if snapshot.ports < scenario.ports or snapshot.handshake != scenario.handshake:
            raise SoftError(
                f"{agent} was frozen with {snapshot.ports} ports, {'after' if snapshot.handshake else 'before'} the "
                f"handshake; {scenario.name} needs {scenario.ports} and begins "
                f"{'after' if scenario.handshake else 'before'} it. Freeze again with --test {scenario.name}."
            )
        return snapshot
    version = next(number for number, name in VERSIONS.items() if name == scenario.openflow)
    target = find(agent, profile)
    target = replace_field(target, profile=replace_entry(target.profile, stub=(*target.profile.stub, *stubs)))
    return freeze(target, ports=scenario.ports, handshake=scenario.handshake, version=version)


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
    known: tuple[str, ...] | None,
) -> tuple[Manifest, Progress]:
    from harness.exploration import Exploration
    from harness.explorer import Limits

    assert isinstance(limits, Limits)
    exploration = Exploration(
        snapshot, scenario, directory, label, jobs=jobs, limits=limits, resume=resume, replace=replace, engine=engine,
        solver=solver,
    )  # fmt: skip

    def check(progress: Progress) -> None:
        """Stop where a stub would save many paths, if the user wants that: `known` are the ones added already."""
        if known is None:
            return
        for stub, count in progress.stubs.items():
            if count >= _WORTH_A_STUB and stub not in known:
                raise _Again(stub)

    if not watch:
        return exploration.run(check)
    from tqdm import tqdm

    with tqdm(unit=" paths", desc=f"{label} {scenario.name}", dynamic_ncols=True, leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.set_postfix_str(
                f"frontier {progress.frontier}, outputs {progress.outputs}, crashes {progress.crashes}", refresh=False
            )
            bar.update(progress.paths - bar.n)
            check(progress)

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
        "marks": dict(progress.marks),
        "unsupported": dict(progress.unsupported),
        "hints": dict(progress.hints),
        "stubs": dict(progress.stubs),
    }


def _advice(progress: Progress, snapshot: Snapshot) -> list[str]:
    """What only the person who explores may see: places in the code, and what to write into the profile."""
    lines = [f"{text} ({count} paths)" for text, count in progress.hints.most_common(20)]
    if lines:
        lines.insert(0, "Without a model:")
    for stub, count in progress.stubs.most_common(5):
        lines.append(
            f"{count} paths differ only in what {_words(stub)} gave for a table's index. To replace it by a constant, "
            f'write into the profile: stub = ["{stub}"]   (or explore with --auto-stub)'
        )
    return lines


def _words(stub: str) -> str:
    if stub.startswith("imul:"):
        return f"a multiplication by {stub.removeprefix('imul:')}"
    name = stub.partition("=")[0]
    return f"the function at {name}" if name.startswith("0x") else f"the function {name}"


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
    lines += [f"{count} paths are marked {mark}." for mark, count in progress.marks.most_common()]
    lines.append(f"The bundle is in {directory}.")
    return lines
