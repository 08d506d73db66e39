"""`soft verify`: the predictions of a bundle on the live agent."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from soft.replay.verify import Check, Disagreement, Verification
    from soft.trace import Event

# Bytes of a payload that are shown from where it differs.
_SHOWN_BYTES = 12


@click.command()
@click.argument("bundle_path", metavar="BUNDLE")
@click.option("--agent", required=True, metavar="BINARY", help="The agent: a binary, or the name of a profile.")
@click.option("--profile", metavar="PROFILE", help="The launch profile, if it is not the one of the agent's name.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N paths, evenly chosen.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Agents side by side.  [default: as many as the cores bear]")
@click.option("--fresh", is_flag=True, help="Start an agent for every input, and never put one back.")
@click.option("--real-time", is_flag=True, help="Wait in real time, also where the agent's clock could be moved.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def verify(
    bundle_path: str,
    agent: str,
    profile: str | None,
    sample: int | None,
    jobs: int | None,
    fresh: bool,
    real_time: bool,
    as_json: bool,
) -> int:
    """Send the example of every path of BUNDLE to live agents and compare what they do with the prediction.

    Disagreements that look alike are shown once, with the fewest fields that still show them. Where a scenario waits,
    the agent's clock is moved. If that is not possible, time is real, and a path that would need its waits kept to the
    millisecond is skipped, and counted.

    Exit status: 0 all agree, 1 some do not, 2 bad input.

    \b
    Example:
      soft verify results/vswitch/flow_mod --agent agents/build/vswitch
      soft verify bundle.soft --agent ./switchd --profile switchd.toml --sample 500 --json
    """
    from tqdm import tqdm

    from soft.bundle.reader import read
    from soft.launch.find import find
    from soft.launch.process import ended_by_signals
    from soft.replay.verify import sampled
    from soft.replay.verify import verify as verify_bundle

    target = find(agent, profile)
    bundle = read(bundle_path)
    total = len(sampled(len(bundle.paths), sample))
    quiet = as_json or not sys.stderr.isatty()
    with ended_by_signals(), tqdm(total=total, unit=" paths", dynamic_ncols=True, leave=False, disable=quiet) as bar:

        def show(check: Check) -> None:
            bar.update()

        result = verify_bundle(
            bundle, target, sample=sample, jobs=jobs, keep_agents=not fresh, real_time=real_time, watch=show
        )
    if as_json:
        click.echo(json.dumps(_document(result), indent=2))
    else:
        again = _again(result, agent, profile, bundle_path)
        for line in _lines(result, again):
            click.echo(line)
    return 0 if result.good else 1


def _again(result: Verification, agent: str, profile: str | None, bundle_path: str) -> str:
    """The command that plays one input of the bundle, up to its settings; the scenario may be a file of the user's."""
    from soft.scenarios.loader import load, names

    scenario = result.bundle.scenario
    test = scenario.name
    if test not in names() or load(test).digest != scenario.digest:
        test = str(Path(bundle_path) / "scenario.toml") if Path(bundle_path).is_dir() else f"{test}.toml"
    parts = ["soft", "run", agent, *(["--profile", profile] if profile else []), "--test", test]
    return " ".join(map(shlex.quote, parts))


def _lines(result: Verification, again: str) -> Iterator[str]:
    bundle = result.bundle
    total = len(result.checks)
    what = f"{bundle.manifest.agent}, {bundle.scenario.name}"
    yield f"{what}: {total} of {len(bundle.paths)} paths on {result.target.label}"
    if table := result.table():
        width = min(72, max(len(name) for name, _, _ in table))
        yield f"  {'predicted':<{width}}  paths  agreed"
        for name, played, agreed in table:
            mark = "" if played == agreed else f"  {played - agreed} disagreed"
            yield f"  {_short(name, width):<{width}}  {played:>5}  {agreed:>6}{mark}"
    yield (
        f"{result.count('agreed')} agreed, {result.count('disagreed')} disagreed, in {result.seconds:.1f} s "
        f"({total / max(result.seconds, 1e-9):.0f} paths/s)."
    )
    if result.times:
        yield f"Waits passed by: {', '.join(result.times)}."
    if skipped := result.count("skipped"):
        yield f"{skipped} skipped: they hold for waits of a few milliseconds only, which real time cannot be held to."
    if retried := sum(check.retried for check in result.checks):
        yield f"{retried} agreed on a fresh agent only: one that had played other inputs did something else."
    if unsteady := [check.path for check in result.checks if not check.steady]:
        yield f"Fresh agents did not always do the same on {len(unsteady)} paths: {_numbers(unsteady)}."
    for check in result.checks:
        if check.failure:
            yield f"Path {check.path} could not be played: {check.failure}"
    for number, disagreement in enumerate(result.disagreements, 1):
        yield ""
        yield from _disagreement_lines(result, number, disagreement, again)


def _disagreement_lines(result: Verification, number: int, item: Disagreement, again: str) -> Iterator[str]:
    scenario = result.bundle.scenario
    paths = f"path {item.paths[0]}" if len(item.paths) == 1 else f"{len(item.paths)} paths ({_numbers(item.paths)})"
    yield f"Disagreement {number}, {paths}{'' if item.steady else ', and the agent does not always do the same'}:"
    settings = [f"{name}={scenario.variable(name).show(item.values[name])}" for name in item.fields]
    yield "  input: " + ("  ".join(settings) if settings else "all fields at their defaults")
    if before := item.difference.event:
        yield f"  as predicted: {'the first event' if before == 1 else f'the first {before} events'}"
    for title, event in (("predicted", item.difference.expected), ("seen", item.difference.seen)):
        yield f"  {title + ':':<10} {_event(event, item.difference.byte, scenario.openflow)}"
    yield f"  again: {again}" + "".join(f" --set {shlex.quote(setting)}" for setting in settings)


def _event(event: Event | None, byte: int | None, openflow: str) -> str:
    from soft.openflow.decode import describe_event
    from soft.trace import Message, Packet

    if event is None:
        return "nothing more"
    text = f"step {event.step}: {describe_event(event, openflow)}"
    if byte is None or not isinstance(event, Message | Packet):
        return text
    rest = (event.payload.concrete() or b"")[byte:]
    return f"{text}; from byte {byte}: {rest[:_SHOWN_BYTES].hex() or 'none'}{'...' if len(rest) > _SHOWN_BYTES else ''}"


def _document(result: Verification) -> dict[str, Any]:
    bundle = result.bundle
    return {
        "bundle": bundle.source,
        "scenario": bundle.scenario.name,
        "agent": result.target.label,
        "paths": len(bundle.paths),
        "witnesses": len(result.checks),
        "agreed": result.count("agreed"),
        "disagreed": result.count("disagreed"),
        "skipped": result.count("skipped"),
        **({"time": result.times} if result.times else {}),
        "failed": [{"path": check.path, "why": check.failure} for check in result.checks if check.failure],
        "seconds": round(result.seconds, 3),
        "rate": round(len(result.checks) / max(result.seconds, 1e-9), 1),
        "reused": sum(check.again for check in result.checks),
        "retried": sum(check.retried for check in result.checks),
        "unsteady": [check.path for check in result.checks if not check.steady],
        "behaviours": [
            {"predicted": name, "witnesses": played, "agreed": agreed} for name, played, agreed in result.table()
        ],
        "disagreements": [_disagreement_dict(result, item) for item in result.disagreements],
    }


def _disagreement_dict(result: Verification, item: Disagreement) -> dict[str, Any]:
    from soft.openflow.decode import event_dict

    openflow = result.bundle.scenario.openflow
    return {
        "paths": list(item.paths),
        "fields": list(item.fields),
        "input": dict(item.values),
        "event": item.difference.event,
        "byte": item.difference.byte,
        "steady": item.steady,
        "predicted": [event_dict(event, openflow) for event in item.expected],
        "seen": [event_dict(event, openflow) for event in item.seen],
    }


def _numbers(numbers: tuple[int, ...] | list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return shown if len(numbers) <= 8 else f"{shown}, ..."


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
