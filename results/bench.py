"""Run every benchmark in tests/benchmarks/ and write what they print to bench.json and bench.md.

    python -m results.bench                 all of them, one after the other
    python -m results.bench --quick         the quick form of each, where it has one
    python -m results.bench bench_cli       these only; the others' numbers stay

A benchmark is a module `tests.benchmarks.bench_*` that prints JSON objects.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from results.markdown import machine, table, write

PLACE = Path("tests/benchmarks")
PAIR = ("results/reference/eth_flow_mod", "results/vswitch/eth_flow_mod")
# Beside its plain form, what else a benchmark is run with.
FORMS: dict[str, tuple[tuple[str, ...], ...]] = {"bench_crosscheck": (PAIR, ("--growth",))}
QUICK_FORMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "bench_bundle": (("2000",),),
    "bench_crosscheck": (("--budget", "5"),),
    "bench_explore": (("--quick",),),
    "bench_machine": (("--quick",),),
    "bench_scenarios": (("--quick",),),
    "bench_verify": (("--quick",),),
}
# Seconds for a bundle of PAIR that is not there yet.
EXPLORE_LIMIT = 240


def names() -> list[str]:
    return sorted(path.stem for path in PLACE.glob("bench_*.py"))


def explore_pair() -> None:
    """Make the two bundles that crosscheck is measured on, unless `make results` left them."""
    for place in PAIR:
        if not (Path(place) / "manifest.json").is_file():
            agent, scenario = place.split("/")[1:]
            command = ["explore", f"agents/build/{agent}", "--test", scenario, "-o", place, "--jobs", "2", "--replace"]
            command += ["--time-limit", str(EXPLORE_LIMIT)]
            subprocess.run([sys.executable, "-m", "soft", *command], check=True)


def measured(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run one benchmark. What it prints on stderr is shown; a failure is part of the result."""
    begin = time.monotonic()
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = {"arguments": list(arguments), "seconds": round(time.monotonic() - begin, 1)}
    if done.returncode:
        result["failed"] = f"ended with status {done.returncode}"
    return {**result, "measures": list(objects(done.stdout))}


def objects(text: str) -> Iterator[Any]:
    """The JSON objects in a text, one after the other."""
    decoder = json.JSONDecoder()
    position = 0
    while rest := text[position:].lstrip():
        position = len(text) - len(rest)
        value, position = decoder.raw_decode(text, position)
        yield value


# ---------------------------------------------------------------------------------------------- the page


def page(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """The lines of bench.md."""
    yield "# Benchmarks"
    yield ""
    yield "Written by `make bench`; bench.json has the same numbers."
    for name, forms in sorted(runs.items()):
        yield ""
        yield f"## {name}"
        yield ""
        yield summary(name)
        for form in forms:
            yield ""
            yield f"`python -m tests.benchmarks.{' '.join((name, *form['arguments']))}`, {form['seconds']} s"
            if "failed" in form:
                yield f"**failed**: {form['failed']}"
            yield ""
            yield from tables(form["measures"])
    yield ""
    yield f"Measured on {machine()}."


def summary(name: str) -> str:
    """The first paragraph of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((PLACE / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def tables(measures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Measures of the same keys, one after the other, are one table; lists of measures get tables of their own."""
    flat: list[dict[str, Any]] = []
    nested: list[tuple[str, list[Any]]] = []
    for measure in measures:
        row, lists = _flattened(measure)
        nested += lists
        if row:
            flat.append(row)
    for keys, rows in groupby(flat, key=list[str]):
        yield from table(keys, [list(row.values()) for row in rows])
        yield ""
    for key, values in nested:
        yield f"{key}:"
        yield ""
        yield from tables(values)


def _flattened(measure: Mapping[str, Any], stem: str = "") -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
    row: dict[str, Any] = {}
    lists: list[tuple[str, list[Any]]] = []
    for key, value in measure.items():
        name = stem + key
        if isinstance(value, dict):
            inner, more = _flattened(value, name + ".")
            row |= inner
            lists += more
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            lists.append((name, value))
        else:
            row[name] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return row, lists


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks; all by default")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("results"), help="where bench.json and bench.md go")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names()):
        parser.error(f"there is no benchmark {unknown.pop()}; there are {', '.join(names())}")
    store = options.output / "bench.json"
    runs: dict[str, list[dict[str, Any]]] = json.loads(store.read_text()) if options.names and store.is_file() else {}
    for name in options.names or names():
        forms = (QUICK_FORMS if options.quick else FORMS).get(name, ((),))
        if PAIR in forms:
            explore_pair()
        runs[name] = []
        for form in forms:
            print(f"== {' '.join((name, *form))}", flush=True)
            result = measured(name, form)
            print(json.dumps(result["measures"], indent=1), flush=True)
            runs[name].append(result)
            write(store, [json.dumps(runs, indent=1, sort_keys=True)])
    write(options.output / "bench.md", page(runs))
    print(f"The numbers are in {options.output}/bench.md.")
    return 1 if any("failed" in form for forms in runs.values() for form in forms) else 0


if __name__ == "__main__":
    sys.exit(main())
