"""`soft tests`: the scenarios that there are, and what one of them sends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from soft.scenarios.model import Scenario, Step, Variable

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@click.group(invoke_without_command=True)
@JSON
@click.pass_context
def tests(ctx: click.Context, as_json: bool) -> None:
    """List the scenarios, or show one.

    \b
    Example:
      soft tests
      soft tests show flow_mod
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("--json belongs behind the subcommand: soft tests show flow_mod --json.")
        return
    from soft.scenarios import loader

    scenarios = [loader.load(name) for name in loader.names()]
    if as_json:
        _json(tests=[_summary(scenario) for scenario in scenarios])
        return
    rows = [("name", "steps", "variables", "summary")]
    rows += [(s.name, str(len(s.steps)), str(len(s.variables)), s.summary) for s in scenarios]
    _print(_aligned(rows, right=(1, 2)))


@tests.command()
@click.argument("scenario_name", metavar="SCENARIO")
@JSON
def show(scenario_name: str, as_json: bool) -> None:
    """The steps and variables of a scenario. SCENARIO is a name of the list or a TOML file.

    \b
    Example:
      soft tests show flow_mod
      soft tests show ./mine.toml --json
    """
    from soft.scenarios import loader

    scenario = loader.load(scenario_name)
    if as_json:
        _json(**_details(scenario))
    else:
        _print(_description(scenario))


def _description(scenario: Scenario) -> Iterator[str]:
    begin = "after" if scenario.handshake else "before"
    yield f"{scenario.name}: {scenario.summary}" if scenario.summary else scenario.name
    yield f"OpenFlow {scenario.openflow}, {scenario.ports} ports, begins {begin} the handshake"
    yield f"digest {scenario.digest}"
    yield ""
    yield "Steps:"
    yield from (f"  {step.id:<4}{_step_words(scenario, step)}" for step in scenario.steps)
    yield ""
    if not scenario.variables:
        yield "No variables: every run sends the same."
        return
    yield f"Variables, {sum(variable.width for variable in scenario.variables)} bits in all:"
    rows = [("name", "bits", "default", "domain")]
    rows += [
        (v.name, str(v.width), _shortened(v.show(v.default)), v.describe_domain() or "any") for v in scenario.variables
    ]
    yield from (f"  {line}" for line in _aligned(rows, right=(1,)))


def _step_words(scenario: Scenario, step: Step) -> str:
    from soft.scenarios.model import Probe, Send, Wait

    match step:
        case Send(message_type=kind, payload=payload):
            most = "" if payload.length is None else "up to "
            return f"send {kind}, {most}{payload.size} bytes"
        case Probe(port=port, payload=payload):
            return f"probe port {port} with a packet of {payload.size} bytes"
        case Wait(id=name, milliseconds=duration):
            shown = str(duration) if isinstance(duration, int) else scenario.variable(f"{name}.ms").describe_domain()
            return f"wait {shown} ms"


def _shortened(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."


def _details(scenario: Scenario) -> dict[str, Any]:
    return {
        **_summary(scenario),
        "openflow": scenario.openflow,
        "ports": scenario.ports,
        "handshake": scenario.handshake,
        "digest": scenario.digest,
        "steps": [_step(step, bound) for step, bound in zip(scenario.steps, scenario.bind({}), strict=True)],
        "variables": [_variable(variable) for variable in scenario.variables],
    }


def _summary(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "steps": len(scenario.steps),
        "variables": len(scenario.variables),
    }


def _step(step: Step, bound: Step) -> dict[str, Any]:
    """A step, and under `default` what it sends or how long it takes if no variable is set."""
    from soft.scenarios.model import Probe, Send, Wait

    if isinstance(step, Wait):
        assert isinstance(bound, Wait)
        variable = None if isinstance(step.milliseconds, int) else f"{step.id}.ms"
        return {"id": step.id, "kind": "wait", "variable": variable, "default": bound.milliseconds}
    assert isinstance(bound, Send | Probe)
    sent = (bound.payload.concrete() or b"").hex()
    if isinstance(step, Probe):
        return {"id": step.id, "kind": "probe", "port": step.port, "default": sent}
    return {"id": step.id, "kind": "send", "message": step.message_type, "default": sent}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "width": variable.width,
        "default": variable.default,
        "range": variable.range,
        "in": variable.choices,
        "except": variable.excluded or None,
        "domain": variable.describe_domain(),
    }


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _json(**values: Any) -> None:
    click.echo(json.dumps(values, indent=2))
