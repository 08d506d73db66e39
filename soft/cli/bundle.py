"""`soft bundle`: look into a bundle, check it, and give it away."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from soft.errors import SoftError

BUNDLE = click.argument("bundle_path", metavar="BUNDLE")
# A stranger's conditions may be a puzzle; real ones take milliseconds.
SECONDS_PER_QUERY = 60.0
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@click.group()
def bundle() -> None:
    """Look into a bundle: show, check, audit, export, pack. BUNDLE is a directory or a .soft file."""


@bundle.command()
@BUNDLE
@JSON
@click.option("--all", "everything", is_flag=True, help="Show every output, not only the most frequent.")
def show(bundle_path: str, as_json: bool, everything: bool) -> None:
    """Counts, distinct outputs, and the input bytes of crashes."""
    from soft.bundle.reader import read
    from soft.bundle.show import describe_trace, input_lines, summary

    loaded = read(bundle_path)
    if not as_json:
        _print(summary(loaded, most=len(loaded.traces) + 1 if everything else 20))
        return
    manifest = loaded.manifest
    frequency = [0] * len(loaded.traces)
    for path in loaded.paths:
        frequency[path.trace] += 1
    _json(
        scenario=manifest.scenario,
        agent=manifest.agent,
        complete=manifest.complete,
        reasons=manifest.reasons,
        paths=manifest.counts.paths,
        conditions=manifest.counts.conditions,
        statistics=manifest.statistics,
        outputs=[
            {"trace": number, "paths": count, "events": list(describe_trace(loaded.traces[number]))}
            for number, count in enumerate(frequency)
        ],
        crashes=[
            {"path": number, "step": crash.step, "reason": crash.reason, "input": list(input_lines(loaded, path))}
            for number, path, crash in loaded.crashes()
        ],
    )


@bundle.command()
@BUNDLE
@JSON
@click.option("--partition", is_flag=True, help="Prove that the paths are disjoint and cover the input space.")
@click.option("--solver", default="z3", show_default=True, help="z3 or bitwuzla.")
def check(bundle_path: str, as_json: bool, partition: bool, solver: str) -> None:
    """Check that every witness takes its path; with --partition, that the paths are a partition.

    Exit status: 0 the bundle is sound, 1 it is not.
    """
    from tqdm import tqdm

    from soft.bundle.check import check as verdict_on
    from soft.bundle.reader import read
    from soft.solve.solver import Solver

    engine = Solver(solver, timeout=SECONDS_PER_QUERY)
    loaded = read(bundle_path)
    quiet = as_json or not partition or not sys.stderr.isatty()
    with tqdm(total=len(loaded.paths), unit=" paths", disable=quiet, leave=False) as bar:
        verdict = verdict_on(loaded, partition=partition, solver=engine, progress=bar.update)
    if as_json:
        _json(
            sound=verdict.sound,
            witnesses=verdict.witnesses,
            disjoint=verdict.disjoint,
            covered=verdict.covered,
            queries=verdict.queries,
            problems=[
                {"kind": p.kind, "sentence": p.sentence, "paths": p.paths, "input": p.input} for p in verdict.problems
            ],
        )
    else:
        for problem in verdict.problems:
            click.echo(problem.sentence)
            if problem.input is not None:
                for name, value in problem.input.items():
                    click.echo(f"  {name} = {loaded.scenario.variable(name).show(value)}")
        _print(_conclusions(verdict, len(loaded.paths), loaded.manifest.complete))
    sys.exit(0 if verdict.sound else 1)


def _conclusions(verdict: Any, paths: int, complete: bool) -> Iterable[str]:
    if verdict.witnesses:
        yield f"The witnesses of all {paths} paths take their paths."
    if verdict.disjoint:
        yield "No input takes two paths (proved)."
    if verdict.covered:
        yield "Every input of the scenario takes a path (proved)."
    elif verdict.disjoint is not None and not complete:
        yield "The bundle is partial and does not claim to cover the input space."


@bundle.command()
@BUNDLE
@JSON
@click.option(
    "--binary", type=click.Path(exists=True, dir_okay=False), help="Look for this agent's strings and symbols."
)
def audit(bundle_path: str, as_json: bool, binary: str | None) -> None:
    """Everything that leaves the house: all strings, fields and sizes.

    Exit status: 1 if a string of --binary stands in the bundle.
    """
    from dataclasses import asdict

    from soft.bundle.audit import audit as audit_of
    from soft.bundle.audit import leaks

    found = audit_of(bundle_path)
    hits = leaks(bundle_path, binary) if binary else []
    if as_json:
        _json(**asdict(found), leaks=[asdict(hit) for hit in hits] if binary else None)
    else:
        for title, values in asdict(found).items():
            click.echo(f"{title}:" if values else f"{title}: none")
            if isinstance(values, dict):
                _print(f"  {name}: {value}" for name, value in values.items())
            else:
                _print(f"  {value}" for value in values)
        if binary:
            _print(f"LEAK in {hit.file}: {hit.text!r}" for hit in hits)
            click.echo(f"{len(hits)} strings or symbols of {binary} stand in the bundle.")
    sys.exit(1 if hits else 0)


@bundle.command()
@BUNDLE
@click.option("--path", "path_number", type=int, metavar="N", help="Only path N.")
@click.option("--trace", "trace_number", type=int, metavar="N", help="Only the group of paths with trace N.")
@click.option("--witness", is_flag=True, help="With --path: also assert the witness.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="File to write, not stdout.")
def export(
    bundle_path: str, path_number: int | None, trace_number: int | None, witness: bool, output: str | None
) -> None:
    """A path, a group or the whole bundle as stand-alone SMT-LIB 2."""
    from soft.bundle.export import export_all, export_group, export_path
    from soft.bundle.reader import read

    if path_number is not None and trace_number is not None:
        raise SoftError("Choose --path or --trace, not both.")
    if witness and path_number is None:
        raise SoftError("--witness needs --path: a group has many witnesses.")
    loaded = read(bundle_path)
    if path_number is not None:
        lines = export_path(loaded, path_number, witness=witness)
    elif trace_number is not None:
        lines = export_group(loaded, trace_number)
    else:
        lines = export_all(loaded)
    if output is None:
        for line in lines:
            click.echo(line, nl=False)
        return
    try:
        with Path(output).open("w") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise SoftError(f"{output}: the file cannot be written ({error.strerror}).") from None


@bundle.command()
@BUNDLE
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The .soft file to write.")
def pack(bundle_path: str, output: str) -> None:
    """Compress a bundle's directory into one file."""
    from soft.bundle import files
    from soft.bundle.reader import read

    read(bundle_path)
    files.pack(Path(bundle_path), Path(output))
    click.echo(f"{output}: {Path(output).stat().st_size} bytes")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _json(**values: Any) -> None:
    click.echo(json.dumps(values, indent=2))
