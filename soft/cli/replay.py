"""`soft replay`: the findings of a crosscheck on the live agents."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from soft.errors import SoftError

if TYPE_CHECKING:
    from soft.crosscheck.model import Finding, Findings
    from soft.replay.confirm import Resemblance
    from soft.replay.device import Device, DevicePlan


@click.command()
@click.argument("directory", metavar="FINDINGS")
@click.option("--agent", "agents", multiple=True, metavar="LABEL=BINARY", help="What to start for an agent; repeat it.")
@click.option("--profile", "profiles", multiple=True, metavar="LABEL=PROFILE", help="Its launch profile, if unusual.")
@click.option("--tries", type=click.IntRange(1, 100), default=3, show_default=True, help="How often each is played.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Agents side by side.  [default: as many as the cores bear]")
@click.option("--connect", metavar="tcp:HOST:PORT", help="A switch that listens there is the agent.")
@click.option("--listen", metavar="tcp:PORT", help="A switch that connects here is the agent.")
@click.option("--as", "label", metavar="LABEL", help="Which agent of the findings the switch is.")
@click.option("--port", "ports", multiple=True, metavar="N=INTERFACE", help="Our end of a port's cable; repeat it.")
@click.option("--settle", type=click.IntRange(1, 60_000), default=200, show_default=True, metavar="MS",
              help="Silence after which the switch counts as quiet.")  # fmt: skip
@click.option("--patience", type=click.FloatRange(min=0.1), default=10.0, show_default=True, metavar="SECONDS",
              help="Until the switch must be there, after a crash too.")  # fmt: skip
@click.option("--tls", is_flag=True, help="The control channel is encrypted.")
@click.option("--cert", type=click.Path(exists=True, dir_okay=False), help="Our certificate (PEM).")
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="Its key (PEM).")
@click.option("--ca", type=click.Path(exists=True, dir_okay=False), help="Who signed the switch's certificate (PEM).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def replay(
    directory: str,
    agents: tuple[str, ...],
    profiles: tuple[str, ...],
    tries: int,
    jobs: int | None,
    connect: str | None,
    listen: str | None,
    label: str | None,
    ports: tuple[str, ...],
    settle: int,
    patience: float,
    tls: bool,
    cert: str | None,
    key: str | None,
    ca: str | None,
    as_json: bool,
) -> int:
    """Send the example of every finding in FINDINGS to the live agents, and note what came of it.

    Each finding becomes confirmed, not reproduced or flaky, in findings.json, the report and junit.xml. With --connect
    or --listen the agent is a switch on a cable; without --as it is compared with every agent of the findings, and
    nothing is noted. Our interfaces must be up and silent (no IPv6 or address of their own).

    Exit status: 0 all findings are confirmed, 1 some are not, 2 bad input.

    \b
    Example:
      soft replay findings/ --agent reference=agents/build/reference --agent vswitch=agents/build/vswitch
      soft replay findings/ --connect tcp:192.0.2.1:6653 --port 1=veth1 --port 2=veth3
      soft replay findings/ --listen tcp:6653 --as vswitch --port 1=eth1 --port 2=eth2
    """
    from soft.crosscheck.model import read_findings
    from soft.launch.process import ended_by_signals
    from soft.replay.confirm import check_labels, compare_device
    from soft.replay.device import Device

    findings = read_findings(directory)
    plan = _device_plan(connect, listen, ports, tls, cert, key, ca, settle / 1000, patience)
    named = pairs(agents, "--agent", "LABEL=BINARY")
    check_labels(findings, named | ({label: ""} if label else {}))
    if plan is None and (label or ports or tls):
        raise SoftError("--as, --port and --tls are for a switch on a cable: say where with --connect or --listen.")
    if plan is None and not named:
        raise SoftError("Say what to replay on: --agent LABEL=BINARY for each agent, or --connect for a switch.")
    if plan is not None and label is None and named:
        raise SoftError("Say with --as which agent of the findings the switch is.")
    with ended_by_signals():
        if plan is None:
            return _confirm(findings, Path(directory), named, profiles, None, None, tries, jobs, as_json)
        device = Device(plan)
        try:
            if label is not None:
                return _confirm(findings, Path(directory), named, profiles, label, device, tries, 1, as_json)
            return _show_resemblances(list(compare_device(findings, device)), as_json)
        finally:
            device.close()


def _device_plan(
    connect: str | None,
    listen: str | None,
    ports: tuple[str, ...],
    tls: bool,
    cert: str | None,
    key: str | None,
    ca: str | None,
    settle: float,
    patience: float,
) -> DevicePlan | None:
    from soft.replay.device import DevicePlan, parse_address, parse_interfaces
    from soft.replay.tls import TlsFiles

    if connect and listen:
        raise SoftError("Either the switch listens (--connect) or we do (--listen), not both.")
    if not connect and not listen:
        return None
    host, tcp_port = parse_address(connect or listen or "", host_needed=bool(connect))
    files = TlsFiles(*(Path(name) if name else None for name in (cert, key, ca))) if tls else None
    return DevicePlan(
        "connect" if connect else "listen", host, tcp_port, parse_interfaces(ports), files, settle, patience
    )  # fmt: skip


def pairs(settings: tuple[str, ...], option: str, form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for setting in settings:
        label, equals, value = setting.partition("=")
        if not equals or not label or not value:
            raise SoftError(f"{option} takes {form}, not {setting!r}.")
        if label in found:
            raise SoftError(f"{option} names {label} twice.")
        found[label] = value
    return found


def _confirm(
    findings: Findings,
    directory: Path,
    named: dict[str, str],
    profiles: tuple[str, ...],
    label: str | None,
    device: Device | None,
    tries: int,
    jobs: int | None,
    as_json: bool,
) -> int:
    from tqdm import tqdm

    from soft.launch.find import find
    from soft.replay.confirm import agent_opener, confirm_with, device_opener

    launch = pairs(profiles, "--profile", "LABEL=PROFILE")
    if unknown := [name for name in launch if name not in named]:
        raise SoftError(f"--profile names {unknown[0]}, for which there is no --agent.")
    openers = {name: agent_opener(find(binary, launch.get(name))) for name, binary in named.items()}
    if label is not None and device is not None:
        if label in openers:
            raise SoftError(f"{label} cannot be both an agent to start and the switch.")
        openers[label] = device_opener(device)
    quiet = as_json or not sys.stderr.isatty()
    with tqdm(total=len(findings.findings), unit=" findings", dynamic_ncols=True, leave=False, disable=quiet) as bar:

        def show(finding: Finding) -> None:
            bar.update()

        confirmed = confirm_with(findings, openers, tries=tries, jobs=jobs, alone=device is not None, watch=show)
    write_confirmed(directory, confirmed)
    if as_json:
        click.echo(json.dumps(_document(confirmed), indent=2))
    else:
        for line in confirmation_lines(confirmed):
            click.echo(line)
    return 0 if all(f.confirmation and f.confirmation.status == "confirmed" for f in confirmed.findings) else 1


def write_confirmed(directory: Path, findings: Findings) -> None:
    """Write findings.json and the report anew, beside whatever else the folder holds."""
    from soft.crosscheck.folder import add
    from soft.crosscheck.model import NAME, encode
    from soft.report.write import write_report

    folder = directory if directory.is_dir() else directory.parent
    add(folder, {NAME: encode(findings)})
    write_report(findings, folder)


def confirmation_lines(findings: Findings) -> Iterator[str]:
    """How many findings are confirmed, and what was seen of each that is not."""
    counts = _counts(findings)
    yield f"{len(findings.findings)} findings: {', '.join(f'{count} {status}' for status, count in counts.items())}."
    for finding in findings.findings:
        status = _status(finding)
        if status in ("confirmed", "not replayed"):
            continue
        yield ""
        yield f"Finding {finding.id}, {finding.scenario}, {status}:"
        yield from (f"  {sentence}" for sentence in (finding.confirmation.words if finding.confirmation else ()))
        yield f"  input: {'  '.join(finding.example.settings) or 'all fields at their defaults'}"


def _status(finding: Finding) -> str:
    return finding.confirmation.status if finding.confirmation is not None else "not replayed"


def _counts(findings: Findings) -> dict[str, int]:
    counted = Counter(map(_status, findings.findings))
    always = ("confirmed", "not reproduced", "flaky")
    return {status: counted[status] for status in (*always, *sorted(counted.keys() - set(always)))}


def _document(findings: Findings) -> dict[str, Any]:
    return {
        **{status.replace(" ", "_"): count for status, count in _counts(findings).items()},
        "findings": [
            {
                "id": finding.id,
                "scenario": finding.scenario,
                "agents": finding.agents,
                "status": _status(finding),
                "runs": finding.confirmation.runs if finding.confirmation else 0,
                "words": finding.confirmation.words if finding.confirmation else [],
            }
            for finding in findings.findings
        ],
    }


def _show_resemblances(found: list[Resemblance], as_json: bool) -> int:
    if as_json:
        rows = [
            {"id": one.finding.id, "scenario": one.finding.scenario, "like": one.like, "failure": one.failure}
            for one in found
        ]
        click.echo(json.dumps({"findings": rows}, indent=2))
    else:
        for one in found:
            said = one.failure or (f"like {' and '.join(one.like)}" if one.like else "like none of them")
            click.echo(f"{one.finding.id} {one.finding.scenario}, {' against '.join(one.finding.agents)}: {said}")
        counts = Counter(label for one in found for label in one.like)
        click.echo(f"{len(found)} findings: " + ", ".join(
            [f"{count} like {label}" for label, count in counts.most_common()]
            + [f"{sum(not one.like and not one.failure for one in found)} like none"]
            + [f"{sum(bool(one.failure) for one in found)} could not be played"]
        ) + ".")  # fmt: skip
    return 1 if any(one.failure or not one.like for one in found) else 0
