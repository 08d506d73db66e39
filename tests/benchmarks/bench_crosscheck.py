"""How fast a crosscheck is: against the paper's way on the same bundles, and as the number of paths grows.

    python -m tests.benchmarks.bench_crosscheck [A B]          two bundles, or synthetic ones
    python -m tests.benchmarks.bench_crosscheck --growth       10^3 to 10^5 paths

prints one JSON object. `detecting` answers the paper's question, which pairs of outputs differ, in our way; `ours` is
the whole crosscheck, with both bundles checked and every difference explained. The paper's way is one query for each
pair of distinct outputs, on the disjunctions of all path conditions of each; it is stopped after --budget seconds, and
then its time is a lower bound. So that it can be stopped, a query of it gets a fifth of the budget at most; what it
then leaves unanswered is counted. `times_faster` compares processor time, which other work on the machine stretches
less than the clock's.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

from soft.bundle.model import FORMAT, Bundle, Counts, Manifest
from soft.bundle.model import Path as BundlePath
from soft.bundle.reader import read
from soft.crosscheck.compare import differing
from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.outputs import Outputs, difference
from soft.crosscheck.slices import slices_of
from soft.crosscheck.space import Space
from soft.crosscheck.walk import Side, overlaps
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term
from soft.trace import Crash, Message, Payload, Trace

ACTIONS = 17
SCENARIO = f"""\
name = "synthetic"
summary = "A packet_out with {ACTIONS} output actions"
openflow = "1.0"

[[step]]
send = "packet_out"
actions = [
{chr(10).join(['  { type = "output", port = "symbolic", max_len = "symbolic" },'] * ACTIONS)}
]
data = {{ packet = "tcp" }}
"""


# ---------------------------------------------------------------------------------------------- the paper's way


def paper(left: Bundle, right: Bundle, budget: float, solver: str = "z3") -> dict[str, object]:
    """One query for each pair of outputs: both disjunctions of path conditions, and that the outputs differ."""
    start, begin = time.perf_counter(), time.process_time()
    groups = [_groups(left), _groups(right)]
    engine = Solver(solver, timeout=budget / 5)
    for term in left.scenario.domain:
        engine.add(term)
    asked = found = unanswered = 0
    total = len(groups[0]) * len(groups[1])
    for a, mine in groups[0].items():
        engine.push()
        engine.add(mine)
        for b, theirs in groups[1].items():
            differ = difference(left.traces[a], right.traces[b])
            if differ:
                asked += 1
                answer = engine.check([theirs, t.disj(*differ)])
                found += answer is Answer.SAT
                unanswered += answer is Answer.UNKNOWN
            if time.perf_counter() - start > budget:
                break
        else:
            engine.pop()
            continue
        break
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(time.process_time() - begin, 3),
        "queries": asked,
        "pairs": total,
        "differing": found,
        "unanswered": unanswered,
        "finished": seconds <= budget,
    }


def _groups(bundle: Bundle) -> dict[int, Term]:
    groups: dict[int, list[Term]] = {}
    for path in bundle.paths:
        groups.setdefault(path.trace, []).append(t.conj(*bundle.terms_of(path)))
    return {trace: t.disj(*conditions) for trace, conditions in groups.items()}


def detecting(left: Bundle, right: Bundle, solver: str) -> dict[str, object]:
    """Which pairs of outputs differ, by walking both trees at once."""
    start, begin = time.perf_counter(), time.process_time()
    slices, outputs, engine = slices_of([left, right]), Outputs(), Solver(solver)
    space = Space(slices.scenario, engine, slices.headed)
    sides = [Side(slices.bundle(bundle), outputs, space, whole=bundle.manifest.complete) for bundle in (left, right)]
    found = set()
    for overlap in overlaps(space, sides[0], sides[1], outputs, space.everything):
        pair = overlap.left.output, overlap.right.output
        if pair not in found and any(differing(space, outputs, overlap)):
            found.add(pair)
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(time.process_time() - begin, 3),
        "queries": engine.queries,
        "differing": len(found),
    }


def ours(left: Bundle, right: Bundle, solver: str = "z3") -> dict[str, object]:
    start = time.perf_counter()
    found = crosscheck([left, right], solver=solver)
    comparison = found.comparisons[0]
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "comparing": round(comparison.statistics.seconds, 3),
        "queries": found.queries,
        "overlaps": comparison.counts.overlaps,
        "differing": comparison.counts.differing,
        "findings": len(found.findings),
        "clusters": len(found.clusters),
        "verdict": found.verdict,
    }


def versus(left: Bundle, right: Bundle, budget: float) -> dict[str, object]:
    result: dict[str, object] = {"scenario": left.scenario.name, "paths": [len(left.paths), len(right.paths)]}
    for solver in ("bitwuzla", "z3"):
        quick, whole = detecting(left, right, solver), ours(left, right, solver)
        theirs = paper(left, right, budget, solver)
        faster = float(str(theirs["cpu_seconds"])) / max(1e-3, float(str(quick["cpu_seconds"])))
        result[solver] = {"detecting": quick, "ours": whole, "paper": theirs, "times_faster": round(faster, 1)}
    return result


# ---------------------------------------------------------------------------------------------- growth


def synthetic(levels: int, label: str, *, backwards: bool = False, crashes: bool = False) -> Bundle:
    """An agent that tests one port after the other and answers differently for each combination: 2^levels paths.

    `backwards` makes the same tests in the other order, so that the two trees have nothing in common; with `crashes`,
    one combination in 1024 ends in a crash.
    """
    scene = scenario()
    order = range(levels - 1, -1, -1) if backwards else range(levels)
    tests = [t.ult(t.var(f"m0.actions.{n}.port", 16), t.const(5 + n, 16)) for n in range(levels)]
    conditions = [term for test in tests for term in (test, t.negate(test))]
    paths, traces = [], []
    for number in range(1 << levels):
        bits = [number >> n & 1 for n in range(levels)]
        witness = dict(scene.defaults)
        witness.update({f"m0.actions.{n}.port": 1000 if bits[n] else 1 for n in range(levels)})
        if crashes and number % 1024 == 7:
            trace: Trace = (Crash(0, "SIGSEGV"),)
        else:
            trace = (Message(0, Payload.of(b"\1\3\0\x10\0\0\0\0" + number.to_bytes(8, "big"))),)
        traces.append(trace)
        paths.append(BundlePath(tuple(2 * n + bits[n] for n in order), number, witness))
    manifest = Manifest(
        format=FORMAT,
        scenario=scene.name,
        digest=scene.digest,
        agent=label,
        tool="bench",
        counts=Counts(paths=len(paths), outputs=len(traces), crashes=0, conditions=len(conditions)),
        complete=True,
    )
    return Bundle(manifest, scene, conditions, traces, paths, label)


def scenario() -> Scenario:
    return loader.parse(SCENARIO, "synthetic")


def growth(most: int) -> Iterator[dict[str, object]]:
    for levels in (10, 13, 15, 17):
        if 1 << levels > most:
            return
        for crashes in (False, True):
            left, right = synthetic(levels, "left"), synthetic(levels, "right", backwards=True, crashes=crashes)
            result = ours(left, right)
            pairs = 1 << levels
            cost = 1e6 * float(str(result["comparing"])) / (pairs * math.log2(pairs))
            yield {"paths": pairs, **result, "microseconds_per_n_log_n": round(cost, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="*", type=Path)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--most", type=int, default=1 << 17)
    options = parser.parse_args()
    if options.growth:
        print(json.dumps({"growth": list(growth(options.most))}, indent=2))
        return
    if options.bundles:
        left, right = map(read, options.bundles)
    else:
        left, right = synthetic(8, "left"), synthetic(8, "right", backwards=True, crashes=True)
    print(json.dumps(versus(left, right, options.budget), indent=2))


if __name__ == "__main__":
    main()
