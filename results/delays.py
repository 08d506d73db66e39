"""delays.md: random delays against symbolic ones, as Figure 5 of SPD (Symbolic Packet Dynamics) compares them.

    python -m results.delays BUNDLE BINARY      native runs with random inputs, on one core; their record as JSON

A class of behaviour is a path of the bundle: the inputs on which the agent does the same for the same reasons. Random
runs are native ones with the agent's clock moved, so that a wait of a minute costs milliseconds; which class an input
belongs to is looked up in the bundle, and that the agent did as the class says is checked.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from results.markdown import machine, seconds, table
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.bundle.tree import PathTree
from soft.launch.find import Target, find
from soft.replay.stage import AgentStage
from soft.scenarios.model import Scenario, Variable, Wait
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.solve.vector import Array, evaluate_vector
from soft.trace import evaluate_trace

MOST_RUNS = 10_000
# Seconds for each way of drawing: as long as the exploration took that it is compared with, within these bounds.
BUDGET, MOST_BUDGET = 5.0, 40.0
UNIFORM, INFORMED = "uniform", "informed"
# Inputs that are drawn to see how likely a deviation is. Three in a million still show as a dozen.
_DRAWS = 1 << 22
_SEED = 7

_INTRO = """\
# Random delays against symbolic ones

Written by `make results`, after Figure 5 of SPD (*Symbolic Packet Dynamics*). A class of behaviour is a path of the
complete bundle: a range of delays and timeouts with which the agent does one and the same. Exploring finds all of them.
Beside it the same agent runs natively, under one random input after the other, its clock moved so that no run waits:
*uniform* draws every field from its whole domain, *informed* knows that only timeouts of up to the longest wait can
show, and draws no others. Both are on one core; starting an agent anew for each input is part of a run.
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """So many classes, with so many different outputs, had been seen after so many runs and seconds."""

    run: int
    seconds: float
    classes: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Record:
    """Random runs of one agent. `marks` has one entry for each run that showed something new."""

    drawing: str
    runs: int
    seconds: float
    disagreed: int
    """Runs in which the agent did not do as the class of its input says."""
    marks: tuple[Mark, ...]

    def after(self, limit: float) -> Mark:
        """What was seen within a time."""
        return next((mark for mark in reversed(self.marks) if mark.seconds <= limit), Mark(0, 0.0, 0, 0))

    def runs_within(self, limit: float) -> int:
        return self.runs if limit >= self.seconds else round(self.runs * limit / max(self.seconds, 1e-9))


# ------------------------------------------------------------------------------------------------ drawing


def longest_wait(scenario: Scenario) -> int:
    """Seconds that all waits of a scenario can take together, rounded up."""
    total = 0
    for step in scenario.steps:
        if isinstance(step, Wait):
            total += step.milliseconds if isinstance(step.milliseconds, int) else step.milliseconds.most
    ranges = [variable.range for variable in scenario.variables if variable.name.endswith(".ms")]
    total = min(total, sum(high for _, high in filter(None, ranges))) if all(ranges) and ranges else total
    return -(-total // 1000)


def bounds(variable: Variable, drawing: str, longest: int) -> tuple[int, int]:
    """The least and the greatest value that are drawn."""
    least, most = variable.range or (0, (1 << variable.width) - 1)
    if drawing == INFORMED and variable.name.endswith("_timeout"):
        most = min(most, longest)
    return least, most


def draws(scenario: Scenario, drawing: str, seed: int = _SEED) -> Iterator[dict[str, int]]:
    """Random inputs, without end."""
    source, longest = random.Random(seed), longest_wait(scenario)
    while True:
        values = {
            variable.name: source.choice(variable.choices)
            if variable.choices is not None
            else source.randint(*bounds(variable, drawing, longest))
            for variable in scenario.variables
        }
        if all(evaluate(condition, values) for condition in scenario.domain):
            yield values


# ------------------------------------------------------------------------------------------------ running


def record(bundle: Bundle, target: Target, drawing: str, budget: float, most: int = MOST_RUNS) -> Record:
    """Random runs until the time is up, or enough of them were made."""
    tree = PathTree(bundle)
    classes: set[int] = set()
    outputs: set[int] = set()
    marks: list[Mark] = []
    disagreed = count = 0
    begin = time.monotonic()
    spent = 0.0
    with AgentStage(target, bundle.scenario) as stage:
        for values in draws(bundle.scenario, drawing):
            seen = stage.fresh(values)
            count += 1
            spent = time.monotonic() - begin
            for number in tree.locate(values):
                path = bundle.paths[number]
                if evaluate_trace(bundle.traces[path.trace], values) != seen:
                    disagreed += 1
                elif number not in classes:
                    classes.add(number)
                    outputs.add(path.trace)
                    marks.append(Mark(count, round(spent, 4), len(classes), len(outputs)))
            if count >= most or spent >= budget:
                break
    return Record(drawing, count, round(spent, 3), disagreed, tuple(marks))


def read_record(data: Mapping[str, object]) -> Record:
    marks = data["marks"]
    assert isinstance(marks, list)
    return Record(**{**data, "marks": tuple(Mark(**mark) for mark in marks)})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ a narrow deviation


def likelihood(first: Bundle, second: Bundle, drawing: str, count: int = _DRAWS) -> float:
    """The share of random inputs on which two agents differ, by what their bundles say."""
    scenario, source = first.scenario, np.random.default_rng(_SEED)
    longest = longest_wait(scenario)
    values: dict[str, Array] = {}
    for variable in scenario.variables:
        least, most = bounds(variable, drawing, longest)
        values[variable.name] = source.integers(least, most, count, dtype=np.uint64, endpoint=True)
    mine, other = _outputs(first, values, count), _outputs(second, values, count)
    alike = {(i, k) for i, a in enumerate(first.traces) for k, b in enumerate(second.traces) if a == b}
    differ = sum(
        int(np.count_nonzero((mine == i) & (other == k)))
        for i in range(len(first.traces))
        for k in range(len(second.traces))
        if (i, k) not in alike
    )
    return differ / count


def _outputs(bundle: Bundle, values: Mapping[str, Array], count: int) -> np.ndarray:
    """For each input the number of the output that it leads to; -1 where no path takes it."""
    memo: dict[Term, Array] = {}
    found = np.full(count, -1, dtype=np.int64)
    for path in bundle.paths:
        takes = np.ones(count, dtype=bool)
        for term in bundle.terms_of(path):
            if term not in memo:
                result = evaluate_vector(term, values)
                assert result is not None, "a condition on a timeout and a wait fits a machine word"
                memo[term] = result
            takes &= memo[term] != 0
        found[takes] = path.trace
    return found


# ------------------------------------------------------------------------------------------------ the page


@dataclass(frozen=True, slots=True)
class Case:
    """One agent and scenario: what exploring took and found, and the random runs beside it."""

    agent: str
    scenario: str
    seconds: float
    classes: int
    outputs: int
    complete: bool
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Deviation:
    """A narrow one: how likely a random input shows it, by the way of drawing, and what finding it took."""

    build: str
    scenario: str
    region: str
    likely: Mapping[str, float]
    seconds: float
    """Both explorations and the crosscheck."""
    run_seconds: float
    """Of one random run on each of the two agents."""


def page(cases: Sequence[Case], deviation: Deviation | None) -> Iterator[str]:
    """The lines of delays.md."""
    yield _INTRO
    yield "![Classes of behaviour over time](delays.svg)"
    yield ""
    yield "## Classes of behaviour covered"
    yield ""
    yield "In the time that exploring took, and in the whole budget, which is as long"
    yield f"but {BUDGET:g} to {MOST_BUDGET:g} s, and at most {MOST_RUNS:,} runs."
    yield "Not as predicted: runs in which the agent did something else than the bundle says."
    yield ""
    head = ["agent", "scenario", "symbolic: classes", "outputs", "time", "drawing", "same time: runs", "classes"]
    head += ["whole budget: runs", "classes", "outputs", "last new one in run", "not as predicted"]
    rows: list[list[object]] = []
    for case in cases:
        for each in case.records:
            same, last = each.after(case.seconds), each.after(float("inf"))
            classes = f"{case.classes}{'' if case.complete else ' (partial)'}"
            row: list[object] = [case.agent, case.scenario, classes, case.outputs, seconds(case.seconds), each.drawing]
            row += [each.runs_within(case.seconds), same.classes, each.runs, last.classes, last.outputs, last.run]
            rows.append([*row, each.disagreed])
    yield from table(head, rows, left=2)
    if deviation is not None:
        yield ""
        yield from _deviation(deviation)
    yield ""
    yield f"Measured on {machine()}."


def _deviation(found: Deviation) -> Iterator[str]:
    yield f"## A narrow deviation: {found.build} in {found.scenario}"
    yield ""
    yield (
        f"It shows for {found.region}. Exploring both builds and comparing them took {seconds(found.seconds)}, "
        f"and gave the whole region. How likely a random input shows it is taken from {_DRAWS:,} of them, looked up in "
        f"the two bundles; a random run of both agents took {1000 * found.run_seconds:.0f} ms."
    )
    yield ""
    rows: list[list[object]] = []
    for drawing, share in found.likely.items():
        runs = 1 / share if share else None
        row: list[object] = [drawing, f"{share:.2e}", None if runs is None else f"{runs:,.0f}"]
        row.append(None if runs is None else seconds(runs * found.run_seconds))
        rows.append([*row, f"{100 * (1 - (1 - share) ** MOST_RUNS):.1f} %"])
    head = ["drawing", "likelihood", "runs until it shows, on average", "time", f"shows in {MOST_RUNS:,} runs"]
    yield from table(head, rows)


def read_case(agent: str, scenario: str, bundle: Path, runs: Path) -> Case | None:
    """What is on disk about one agent and scenario; nothing if a part is missing."""
    if not (bundle / "manifest.json").is_file() or not runs.is_file():
        return None
    manifest = read(bundle).manifest
    records = tuple(map(read_record, json.loads(runs.read_text())))
    counts, spent = manifest.counts, float(manifest.statistics["seconds"])
    return Case(agent, scenario, spent, counts.paths, counts.outputs, manifest.complete, records)


def main(arguments: Sequence[str] | None = None, say: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("binary")
    parser.add_argument("--budget", type=float, help="seconds for each way of drawing, if not what exploring took")
    options = parser.parse_args(arguments)
    bundle, target = read(options.bundle), find(options.binary)
    budget = options.budget or min(max(float(bundle.manifest.statistics["seconds"]), BUDGET), MOST_BUDGET)
    say(json.dumps([asdict(record(bundle, target, each, budget)) for each in (UNIFORM, INFORMED)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
