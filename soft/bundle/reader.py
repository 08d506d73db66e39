"""Read a bundle. It may come from anybody: every line is checked, and every error is a sentence with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TypeVar

import msgspec

from soft.bundle import files, wire
from soft.bundle.files import DirectorySource, Source
from soft.bundle.model import FORMAT, Bundle, Counts, Manifest, crash_of
from soft.bundle.tables import PathTable
from soft.bundle.terms_file import TermReader
from soft.errors import SoftError
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.solve.smtlib import shorten
from soft.solve.terms import Term
from soft.trace import Trace

# More paths than anybody has explored, fewer than memory holds.
MOST_PATHS = 2_000_000

T = TypeVar("T")


class Start(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known when an exploration begins, kept in its journal."""

    format: int
    digest: str
    agent: str
    tool: str
    normalisation: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def read(path: str | FilePath) -> Bundle:
    """The bundle in a directory or file. Raises SoftError for anything that is not exactly a finished bundle."""
    source = files.open_source(FilePath(path))
    manifest = read_manifest(source)
    scenario = _scenario(source)
    if scenario.digest != manifest.digest:
        raise SoftError(
            f"{source.label}: {files.SCENARIO} is not the scenario that {files.MANIFEST} names (the digests differ)."
        )
    terms, traces, paths = read_tables(source, scenario)
    bundle = Bundle(manifest, scenario, terms.conditions, traces, paths, source.label)
    _check_counts(bundle)
    return bundle


def read_manifest(source: Source) -> Manifest:
    """The manifest alone, for a quick look."""
    text = files.read_text(source, files.MANIFEST)
    where = f"{source.label}: {files.MANIFEST}"
    head = _decoded(msgspec.json.decode, text, where)
    version = head.get("format") if isinstance(head, dict) else None
    if version != FORMAT:
        raise SoftError(f"{where}: the bundle has format {shorten(str(version))}; this version of soft reads {FORMAT}.")
    manifest = _decoded(lambda data: msgspec.json.decode(data, type=Manifest), text, where)
    _explain(where, _check_manifest, manifest)
    return manifest


def recover(directory: str | FilePath) -> Bundle:
    """The finished paths of an exploration that was interrupted, or of a finished one, as a partial bundle.

    A last line that was being written when the exploration was killed is left out.
    """
    directory = FilePath(directory)
    if (directory / files.MANIFEST).is_file():
        return read(directory)
    return read_journal(directory)[0]


def read_journal(directory: FilePath) -> tuple[Bundle, TermReader]:
    """An unfinished exploration, as a partial bundle, and the names of its terms."""
    if not (directory / files.JOURNAL).is_dir():
        raise SoftError(f"{directory}: there is no exploration to continue.")
    source = DirectorySource(directory / files.JOURNAL)
    start = read_start(source)
    scenario = _scenario(DirectorySource(directory))
    if scenario.digest != start.digest:
        raise SoftError(f"{directory}: {files.SCENARIO} was changed since the exploration began.")
    terms, traces, paths = read_tables(source, scenario, torn=True)
    manifest = Manifest(
        format=FORMAT,
        scenario=scenario.name,
        digest=scenario.digest,
        agent=start.agent,
        tool=start.tool,
        counts=count(paths, traces, len(terms.conditions)),
        complete=False,
        reasons=("The exploration has not finished.",),
        normalisation=start.normalisation,
        limits=start.limits,
    )
    return Bundle(manifest, scenario, terms.conditions, traces, paths, str(directory)), terms


def read_start(source: Source) -> Start:
    where = f"{source.label}: {files.START}"
    text = files.read_text(source, files.START)
    start = _decoded(lambda data: msgspec.json.decode(data, type=Start), text, where)
    if start.format != FORMAT:
        raise SoftError(f"{where}: the format is {start.format}; this version of soft writes {FORMAT}.")
    return start


def count(paths: PathTable, traces: list[Trace], conditions: int) -> Counts:
    crashing = {number for number, trace in enumerate(traces) if crash_of(trace)}
    crashes = sum(paths.trace(index) in crashing for index in range(len(paths)))
    return Counts(paths=len(paths), outputs=len(traces), crashes=crashes, conditions=conditions)


# ---------------------------------------------------------------------------------------------- parts


def _scenario(source: Source) -> Scenario:
    text = files.read_text(source, files.SCENARIO)
    return loader.parse(text, f"{source.label}: {files.SCENARIO}")


def read_tables(source: Source, scenario: Scenario, *, torn: bool = False) -> tuple[TermReader, list[Trace], PathTable]:
    """Terms, traces and paths. With `torn`, a last line that was being written is left out."""
    terms = _terms(source, scenario, torn)
    traces = _traces(source, scenario, terms.names, torn)
    return terms, traces, _paths(source, scenario, len(terms.conditions), len(traces), torn)


def _terms(source: Source, scenario: Scenario, torn: bool) -> TermReader:
    reader = TermReader(scenario)
    number = 0
    for number, line in files.lines(source, files.TERMS, torn=torn):
        try:
            reader.line(line.decode("ascii"))
        except UnicodeDecodeError:
            raise SoftError(f"{source.label}: {files.TERMS}, line {number}: this is not ASCII text.") from None
        except SoftError as error:
            raise SoftError(f"{source.label}: {files.TERMS}, line {number}: {error}") from None
    _explain(f"{source.label}: {files.TERMS}, line {number + 1}", reader.end)
    return reader


def _traces(source: Source, scenario: Scenario, names: dict[str, Term], torn: bool) -> list[Trace]:
    traces: list[Trace] = []

    def decode(line: bytes) -> Trace:
        return wire.decode_trace(line, names, len(scenario.steps))

    for number, line in files.lines(source, files.TRACES, torn=torn):
        where = f"{source.label}: {files.TRACES}, line {number}"
        traces.append(_decoded(decode, line, where))
    return traces


def _paths(source: Source, scenario: Scenario, conditions: int, traces: int, torn: bool) -> PathTable:
    table = PathTable(scenario.variable_names)
    limits = [1 << variable.width for variable in scenario.variables]
    for number, line in files.lines(source, files.PATHS, torn=torn):
        where = f"{source.label}: {files.PATHS}, line {number}"
        path, values = _decoded(wire.decode_path, line, where)
        if number > MOST_PATHS:
            raise SoftError(f"{where}: there are more paths than {MOST_PATHS}.")
        indices = path.conditions
        if indices and not (min(indices) >= 0 and max(indices) < conditions):
            wrong = next(index for index in indices if not 0 <= index < conditions)
            raise SoftError(f"{where}: there is no condition {wrong}; {files.TERMS} has {conditions}.")
        if not 0 <= path.trace < traces:
            raise SoftError(f"{where}: there is no trace {path.trace}; {files.TRACES} has {traces}.")
        if len(values) != len(limits):
            raise SoftError(f"{where}: the witness has {len(values)} values; the scenario has {len(limits)} variables.")
        for variable, value, limit in zip(scenario.variables, values, limits, strict=True):
            if not 0 <= value < limit:
                raise SoftError(f"{where}: the witness's value {value} for {variable.name} does not fit its width.")
        if path.marks:
            _explain(where, wire.check_texts, path.marks, "mark")
        table.append(indices, path.trace, bytes(path.witness), path.marks)
    return table


# ---------------------------------------------------------------------------------------------- checks


def _check_manifest(manifest: Manifest) -> None:
    wire.check_texts((manifest.scenario, manifest.digest, manifest.agent, manifest.tool), "name")
    for texts, what in (
        (manifest.reasons, "reason"),
        (manifest.normalisation, "rule"),
        (manifest.limits, "limit"),
        (tuple(manifest.statistics), "statistic"),
    ):
        wire.check_texts(texts, what)
    if manifest.complete and manifest.reasons:
        raise SoftError("A complete bundle has no reasons for being partial.")
    if not manifest.complete and not manifest.reasons:
        raise SoftError("A partial bundle says why it is partial.")


def _check_counts(bundle: Bundle) -> None:
    assert isinstance(bundle.paths, PathTable)
    found = count(bundle.paths, list(bundle.traces), len(bundle.conditions))
    for name in found.__struct_fields__:
        claimed = getattr(bundle.manifest.counts, name)
        if claimed != getattr(found, name):
            raise SoftError(
                f"{bundle.source}: {files.MANIFEST} counts {claimed} {name}, but there are {getattr(found, name)}."
            )


def _decoded(decode: Callable[..., T], data: str | bytes, where: str) -> T:
    try:
        return decode(data)
    except SoftError as error:
        raise SoftError(f"{where}: {error}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise SoftError(f"{where}: this is not what a bundle holds here ({wire.explained(error)}).") from None


def _explain(where: str, check: Callable[..., None], *arguments: object) -> None:
    try:
        check(*arguments)
    except SoftError as error:
        raise SoftError(f"{where}: {error}") from None
