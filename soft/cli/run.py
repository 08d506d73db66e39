"""`soft run`: one scenario with given values on a live agent, and what the agent did."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from soft.launch.find import Target
    from soft.replay.runner import Run
    from soft.scenarios.model import Scenario, Step
    from soft.trace import Trace


@click.command()
@click.argument("agent")
@click.option("--test", "scenario_name", required=True, metavar="NAME", help="A scenario's name, or a file.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A symbolic field's value; repeat it.")
@click.option("--profile", metavar="PROFILE", help="The launch profile, if it is not the one of AGENT's name.")
@click.option("--real-time", is_flag=True, help="Wait in real time, also where the agent's clock could be moved.")
@click.option("--raw", is_flag=True, help="The trace as it came, not normalised.")
@click.option("--details", is_flag=True, help="Every field of every message.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def run(
    agent: str,
    scenario_name: str,
    settings: tuple[str, ...],
    profile: str | None,
    real_time: bool,
    raw: bool,
    details: bool,
    as_json: bool,
) -> None:
    """Start AGENT, send it a scenario, and print its normalised trace.

    AGENT is the path of a binary or a name that `soft agents` lists. An agent that crashes, hangs, closes or floods is
    an outcome: the exit status is 0.

    \b
    Example:
      soft run reference --test packet_out --set m0.buffer_id=7
      soft run ./switchd --profile switchd.toml --test flow_mod --set m0.match.dl_type=ip --json
    """
    from soft.launch.find import find
    from soft.launch.process import ended_by_signals
    from soft.replay.runner import run as run_scenario
    from soft.scenarios.loader import load

    scenario = load(scenario_name)
    values = scenario.parse_values(settings)
    target = find(agent, profile)
    with ended_by_signals():
        done = run_scenario(target, scenario, values, real_time=real_time)
    if as_json:
        click.echo(json.dumps(_document(target, scenario, values, done, raw), indent=2))
    else:
        for line in _lines(target, scenario, values, done, raw, details):
            click.echo(line)


def _lines(
    target: Target, scenario: Scenario, values: Mapping[str, int], done: Run, raw: bool, details: bool
) -> Iterator[str]:
    yield f"{target.label}, scenario {scenario.name}"
    yield from _input_lines(scenario, values)
    if done.time:
        yield f"  waits: {done.time}"
    trace = done.raw if raw else done.trace
    for number, step in enumerate(done.steps):
        yield f"step {number}: {_describe_step(step, scenario.openflow)}"
        yield from _event_lines(trace, number, scenario.openflow, details)


def _input_lines(scenario: Scenario, values: Mapping[str, int]) -> Iterator[str]:
    """What was set, each in a line, then the defaults of the rest."""
    shown = {v.name: f"{v.name} = {v.show(values.get(v.name, v.default))}" for v in scenario.variables}
    yield from (f"  {text}" for name, text in shown.items() if name in values)
    if defaults := ", ".join(text for name, text in shown.items() if name not in values):
        yield from textwrap.wrap(f"defaults: {defaults}", 110, initial_indent="  ", subsequent_indent="    ")


def _describe_step(step: Step, openflow: str) -> str:
    from soft.openflow.decode import describe_message, describe_packet
    from soft.scenarios.model import Probe, Send

    if isinstance(step, Send):
        return f"send {describe_message(step.payload, openflow)}"
    if isinstance(step, Probe):
        return f"probe port {step.port} with {describe_packet(step.payload)}"
    return f"wait {step.milliseconds} ms"


def _event_lines(trace: Trace, step: int, openflow: str, details: bool) -> Iterator[str]:
    from soft.openflow.decode import describe, describe_event
    from soft.trace import Message

    events = [event for event in trace if event.step == step]
    if not events:
        yield "  nothing"
    for event in events:
        if details and isinstance(event, Message):
            yield from (f"  {line}" for line in describe(event.payload, openflow))
        else:
            yield f"  {describe_event(event, openflow)}"


def _document(target: Target, scenario: Scenario, values: Mapping[str, int], done: Run, raw: bool) -> dict[str, Any]:
    from soft.openflow.decode import event_dict
    from soft.openflow.normalise import RULES

    trace = done.raw if raw else done.trace
    return {
        "agent": target.label,
        "scenario": scenario.name,
        "digest": scenario.digest,
        "input": scenario.complete(values),
        "set": sorted(values),
        "normalisation": [] if raw else list(RULES),
        **({"time": done.time} if done.time else {}),
        "steps": [
            {
                **_step_dict(step, scenario.openflow),
                "events": [event_dict(event, scenario.openflow) for event in trace if event.step == number],
            }
            for number, step in enumerate(done.steps)
        ],
    }


def _step_dict(step: Step, openflow: str) -> dict[str, Any]:
    from soft.scenarios.model import Probe, Wait

    result: dict[str, Any] = {"id": step.id, "text": _describe_step(step, openflow)}
    if isinstance(step, Wait):
        return {**result, "milliseconds": step.milliseconds}
    if isinstance(step, Probe):
        result["port"] = step.port
    return {**result, "bytes": (step.payload.concrete() or b"").hex()}
