"""Paths as stand-alone SMT-LIB 2, for any solver: the inputs, their domain, the conditions, and the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from soft.bundle.model import Bundle, Path
from soft.bundle.terms_file import TermWriter
from soft.errors import SoftError
from soft.solve.smtlib import print_constant


def export_path(bundle: Bundle, number: int, *, witness: bool = False) -> Iterator[str]:
    """One path: satisfiable, and every model is an input that takes it. With `witness`, the witness is asserted too."""
    path = _path(bundle, number)
    title = f"path {number}: {len(path.conditions)} conditions, trace {path.trace}"
    lines, names = _definitions(bundle, [path.conditions])
    yield from _head(bundle, title)
    yield from lines
    yield from (f"(assert {name})\n" for name in names[0])
    if witness:
        yield "; the witness\n"
        for variable in bundle.scenario.variables:
            value = print_constant(path.witness[variable.name], variable.width)
            yield f"(assert (= {variable.name} {value}))\n"
    yield from _question(bundle)


def export_group(bundle: Bundle, trace: int) -> Iterator[str]:
    """All paths with one trace: satisfied exactly by the inputs that these paths take."""
    if not 0 <= trace < len(bundle.traces):
        raise SoftError(f"{bundle.source}: there is no trace {trace}; the bundle has {len(bundle.traces)}.")
    numbers = [number for number, path in enumerate(bundle.paths) if path.trace == trace]
    yield from _several(bundle, numbers, f"the {len(numbers)} paths with trace {trace}")


def export_all(bundle: Bundle) -> Iterator[str]:
    """All paths: satisfied exactly by the inputs that were explored."""
    yield from _several(bundle, range(len(bundle.paths)), f"all {len(bundle.paths)} paths")


def _several(bundle: Bundle, numbers: Sequence[int], title: str) -> Iterator[str]:
    lines, names = _definitions(bundle, [bundle.paths[number].conditions for number in numbers])
    yield from _head(bundle, title)
    yield from lines
    for number, conditions in zip(numbers, names, strict=True):
        yield f"(define-fun path{number} () Bool {_junction('and', 'true', conditions)})\n"
    yield f"(assert {_junction('or', 'false', [f'path{number}' for number in numbers])})\n"
    yield from _question(bundle)


def _head(bundle: Bundle, title: str) -> Iterator[str]:
    yield f"; {bundle.manifest.agent}, {bundle.manifest.scenario}: {title}\n"
    yield "(set-option :produce-models true)\n"


def _definitions(bundle: Bundle, paths: Sequence[Sequence[int]]) -> tuple[list[str], list[list[str]]]:
    writer = TermWriter(bundle.scenario)
    lines = [writer.head()]
    names = [[f"c{writer.condition(bundle.conditions[index], lines)}" for index in path] for path in paths]
    return lines, names


def _question(bundle: Bundle) -> Iterator[str]:
    yield "(check-sat)\n"
    if bundle.scenario.variables:
        yield f"(get-value ({' '.join(bundle.scenario.variable_names)}))\n"


def _junction(operation: str, unit: str, parts: Sequence[str]) -> str:
    return f"({operation} {' '.join(parts)})" if len(parts) > 1 else parts[0] if parts else unit


def _path(bundle: Bundle, number: int) -> Path:
    if not 0 <= number < len(bundle.paths):
        raise SoftError(f"{bundle.source}: there is no path {number}; the bundle has {len(bundle.paths)}.")
    return bundle.paths[number]
