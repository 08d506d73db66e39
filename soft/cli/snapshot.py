"""`soft snapshot`: freeze an agent and keep it as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soft.errors import SoftError

if TYPE_CHECKING:
    from harness.snapshot import Snapshot
    from soft.scenarios.model import Scenario


@click.command()
@click.argument("agent")
@click.option("--profile", metavar="PROFILE", help="The launch profile, if it is not the one of AGENT's name.")
@click.option("--test", "scenario_name", metavar="NAME", help="The scenario that it is for: its ports and handshake.")
@click.option("--ports", type=click.IntRange(min=0), metavar="N", help="How many ports it gets if no --test; else 4.")
@click.option("-o", "--output", required=True, metavar="FILE", help="The file to write.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def snapshot(
    agent: str, profile: str | None, scenario_name: str | None, ports: int | None, output: str, as_json: bool
) -> None:
    """Freeze AGENT after its handshake, when it waits for its controller, and write all of it to FILE.

    `soft explore FILE` goes on from there, on this machine or another. The file holds the agent's code and memory:
    unlike a bundle, it is not for strangers.

    \b
    Example:
      soft snapshot agents/build/reference -o reference.snapshot
      soft snapshot ./switchd --profile switchd.toml --test hello -o switchd.snapshot
    """
    from harness.snapshot import freeze, save
    from soft.launch.find import find
    from soft.launch.handshake import VERSIONS
    from soft.launch.process import ended_by_signals

    if scenario_name is not None and ports is not None:
        raise SoftError("Choose --test or --ports, not both: a scenario says how many ports it has.")
    scenario = _scenario(scenario_name)
    target = find(agent, profile)
    wanted = scenario.openflow if scenario is not None else "1.0"
    with ended_by_signals():
        frozen = freeze(
            target,
            ports=scenario.ports if scenario is not None else 4 if ports is None else ports,
            handshake=scenario is None or scenario.handshake,
            version=next(number for number, name in VERSIONS.items() if name == wanted),
        )
        save(frozen, Path(output))
    if as_json:
        click.echo(json.dumps(_summary(frozen, Path(output)), indent=2))
    else:
        click.echo(_sentence(frozen, Path(output)))


def _scenario(name: str | None) -> Scenario | None:
    if name is None:
        return None
    from soft.scenarios.loader import load

    return load(name)


def _summary(frozen: Snapshot, path: Path) -> dict[str, object]:
    return {
        "agent": frozen.label,
        "file": str(path),
        "file_bytes": path.stat().st_size,
        "memory_bytes": sum(len(region.content) for region in frozen.regions if region.content is not None),
        "threads": len(frozen.threads),
        "descriptors": len(frozen.descriptors),
        "ports": frozen.ports,
        "handshake": frozen.handshake,
        "stubs": list(frozen.stubs),
    }


def _sentence(frozen: Snapshot, path: Path) -> str:
    facts = _summary(frozen, path)
    when = "after its handshake" if frozen.handshake else "before its handshake"
    threads = "1 thread" if len(frozen.threads) == 1 else f"{len(frozen.threads)} threads"
    parts = [threads, f"{frozen.ports} port{'s' * (frozen.ports != 1)}", f"{facts['descriptors']} descriptors"]
    parts += [f"{_megabytes(facts['memory_bytes'])} of memory", *frozen.stubs]
    return f"{path}: {frozen.label} {when}, {', '.join(parts)}; the file has {_megabytes(facts['file_bytes'])}."


def _megabytes(size: object) -> str:
    assert isinstance(size, int)
    return f"{size / 1e6:.1f} MB"
