"""Make the evaluation again: explore, crosscheck, verify and replay, then write the tables.

    python -m results.make                  everything, an hour on two cores
    python -m results.make --quick          only what takes seconds
    python -m results.make --from verify    only the stages from this one on; what the others left is used
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from results import delays, deviations, exploration, findings, verification
from results.commands import Command, Result, run_all
from results.delays_plot import plot
from results.exploration import Explored
from results.markdown import write
from results.plan import (
    CROSSCHECK_LIMIT,
    DELAYS,
    DEVIATIONS,
    FIGURE_1,
    NARROW,
    REPLAY_LIMIT,
    VERIFY_LIMIT,
    Crosscheck,
    Exploration,
    Plan,
    binary,
    plan,
)
from soft.bundle.reader import read
from soft.crosscheck.model import Findings, read_findings

# Bundles that are kept in git are for trying things out: small ones of the two switches that differ most.
SAMPLES = (
    *((agent, "packet_out") for agent in FIGURE_1),
    *(
        (agent, scenario)
        for agent in ("reference", "vswitch")
        for scenario in ("packet_out", "queue_config", "short_symb")
    ),
)


def explore(place: Path, todo: Plan) -> list[Command]:
    commands = []
    for each in todo.explorations:
        limit = todo.time_limit(each)
        target = place / each.place
        shutil.rmtree(target, ignore_errors=True)
        arguments: tuple[str, ...] = ("explore", binary(each.agent), "--test", each.scenario, "-o", str(target))
        arguments += ("--time-limit", f"{limit:g}")
        commands.append(Command(f"explore {each.agent} {each.scenario}", arguments, weight=limit))
    return commands


def crosscheck(place: Path, todo: Plan) -> list[Command]:
    commands = []
    for each in todo.crosschecks:
        bundles = [place / agent / each.scenario for agent in each.agents]
        there = [bundle for bundle in bundles if (bundle / "manifest.json").is_file()]
        # With itself, only what is complete can be proved to agree.
        if len(there) < len(bundles) or (each.with_itself and not _is_complete(there[0])):
            continue
        shutil.rmtree(place / each.place, ignore_errors=True)
        arguments = ("crosscheck", *map(str, bundles), "-o", str(place / each.place))
        arguments += ("--time-limit", f"{CROSSCHECK_LIMIT:g}")
        name = f"crosscheck {' '.join(each.agents)} {each.scenario}"
        # What it does after its own limit, telling what it has found, takes seconds.
        commands.append(Command(name, arguments, _paths(there), 2 * CROSSCHECK_LIMIT, good=frozenset({0, 1, 3})))
    return commands


def _is_partial(found: Explored | None) -> bool:
    return found is not None and not found.manifest.complete


def _is_complete(bundle: Path) -> bool:
    return bool(json.loads((bundle / "manifest.json").read_text())["complete"])


def _paths(bundles: Sequence[Path]) -> float:
    return float(sum(json.loads((bundle / "manifest.json").read_text())["counts"]["paths"] for bundle in bundles))


def verify(place: Path, todo: Plan) -> list[Command]:
    commands = []
    for each in todo.explorations:
        bundle = place / each.place
        if (bundle / "manifest.json").is_file():
            arguments = ("verify", str(bundle), "--agent", binary(each.agent), "--sample", str(todo.sample(each)))
            output = _verified(place, each)
            output.unlink(missing_ok=True)
            # Status 1 says that a prediction did not hold: that is a result, and stands in the table.
            commands.append(
                Command(
                    f"verify {each.agent} {each.scenario}", (*arguments, "--json"), _paths([bundle]),
                    VERIFY_LIMIT, good=frozenset({0, 1}), output=output,
                )
            )  # fmt: skip
    return commands


def _verified(place: Path, each: Exploration) -> Path:
    return place / "verifications" / f"{each.agent}-{each.scenario}.json"


def replay(place: Path, todo: Plan) -> list[Command]:
    commands = []
    for each in todo.crosschecks:
        folder = place / each.place
        if (folder / "findings.json").is_file() and (found := read_findings(folder)).findings:
            agents = [part for agent in each.agents for part in ("--agent", f"{agent}={binary(agent)}")]
            name = f"replay {' '.join(each.agents)} {each.scenario}"
            commands.append(
                Command(
                    name, ("replay", str(folder), *agents), len(found.findings), REPLAY_LIMIT, good=frozenset({0, 1})
                )
            )
    return commands


def _random(place: Path, each: Exploration) -> Path:
    return place / "delays" / f"{each.place}.json"


def random_delays(place: Path, todo: Plan) -> list[Command]:
    """Native runs with random delays, beside the explorations with symbolic ones."""
    return [
        Command(
            f"random delays {each.agent} {each.scenario}", (str(place / each.place), binary(each.agent)),
            2 * delays.BUDGET, output=_random(place, each), module="results.delays",
        )
        for each in todo.explorations
        if each.agent in ("reference", "vswitch") and each.scenario in DELAYS
        and (place / each.place / "manifest.json").is_file()
    ]  # fmt: skip


def _narrow(place: Path, modified: Mapping[str, Findings], cases: Sequence[delays.Case]) -> delays.Deviation | None:
    """How likely random delays show the narrow deviation; nothing if it was not compared."""
    scenario = DEVIATIONS[NARROW]
    beside = [case for case in cases if (case.agent, case.scenario) == ("reference", scenario)]
    if NARROW not in modified or not modified[NARROW].findings or not beside:
        return None
    found, (case,) = modified[NARROW], beside
    bundles = [read(place / agent / scenario) for agent in ("reference", NARROW)]
    likely = {each: delays.likelihood(bundles[0], bundles[1], each) for each in (delays.UNIFORM, delays.INFORMED)}
    spent = sum(float(bundle.manifest.statistics["seconds"]) for bundle in bundles) + found.seconds
    run = 2 * sum(each.seconds for each in case.records) / sum(each.runs for each in case.records)
    return delays.Deviation(NARROW, scenario, found.findings[0].region.text, likely, spent, run)


def tables(place: Path, todo: Plan) -> None:
    """Write the pages from what is on disk."""
    done: dict[tuple[str, str], Explored] = {}
    for each in todo.explorations:
        found = exploration.explored(place / each.place)
        if found is not None:
            done[each.agent, each.scenario] = found
    write(place / "exploration.md", exploration.page(done))
    compared: dict[Crosscheck, Findings] = {
        each: read_findings(place / each.place)
        for each in todo.crosschecks
        if (place / each.place / "findings.json").is_file()
    }
    missing = [
        each for each in todo.crosschecks
        if each not in compared and not (each.with_itself and _is_partial(done.get((each.agents[0], each.scenario))))
    ]  # fmt: skip
    write(place / "findings.md", findings.page(compared, missing))
    modified = {
        each.agents[1]: found
        for each, found in compared.items()
        if each.agents[0] == "reference" and each.agents[1] in DEVIATIONS and not each.all_with_all
    }  # fmt: skip
    write(place / "deviations.md", deviations.page(deviations.read_descriptions(), done, modified))
    random = [
        delays.read_case(each.agent, each.scenario, place / each.place, _random(place, each))
        for each in todo.explorations
    ]
    if cases := [case for case in random if case is not None]:
        write(place / "delays.md", delays.page(cases, _narrow(place, modified, cases)))
        write(place / "delays.svg", [plot(cases)])
    checked = {
        (each.agent, each.scenario): json.loads(_verified(place, each).read_text())
        for each in todo.explorations
        if _verified(place, each).is_file()
    }
    write(place / "verification.md", verification.page(checked))


def pack(place: Path, todo: Plan) -> list[Command]:
    """Pack the bundles that are kept in git."""
    commands = []
    for agent, scenario in SAMPLES:
        bundle = place / agent / scenario
        if (bundle / "manifest.json").is_file():
            target = place / "samples" / agent / f"{scenario}.soft"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            commands.append(Command(f"pack {agent} {scenario}", ("bundle", "pack", str(bundle), "-o", str(target))))
    return commands


STAGES = {
    "explore": explore,
    "crosscheck": crosscheck,
    "verify": verify,
    "replay": replay,
    "delays": random_delays,
    "pack": pack,
}


def _failures(results: Sequence[Result]) -> list[str]:
    return [f"{result.command.name}: {result.failure}." for result in results if result.failure]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--from", dest="first", choices=[*STAGES, "tables"], default="explore", help="where to begin")
    parser.add_argument("--jobs", type=int, default=2, help="commands at a time")
    parser.add_argument("--output", type=Path, default=Path("results"), help="where everything goes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    place, todo = options.output, plan(options.quick)
    failures: list[str] = []
    begin = time.monotonic()
    names = list(STAGES)
    # What was explored here before is not to show in the figures.
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for name in names[names.index(options.first) :] if options.first in STAGES else []:
            print(f"== {name}", flush=True)
            commands = STAGES[name](place, todo)
            failures += _failures(run_all(commands, options.jobs, lambda line: print(line, flush=True)))
    tables(place, todo)
    print(f"The tables are in {place}/ ({time.monotonic() - begin:.0f} s).")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped; what is done is there, and --from goes on.")
