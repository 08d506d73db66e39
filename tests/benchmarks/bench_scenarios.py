"""How long a scenario takes from the command to the bundle, and what a second process and a second time are worth.

    python -m tests.benchmarks.bench_scenarios [--quick]

prints one JSON object a line. `seconds` are those of the whole command, interpreter and start of the switch included,
and without what is kept of the binary. `first` and `again` are from the freeze of Debian's Open vSwitch to the bundle.
What must be kept: 10 seconds for the small scenarios on one core; 5 minutes and 50 paths a second for eth_flow_mod of
`reference`; two processes find the same paths as one in a scenario of over 30 s, at least 1.7 times as fast on two
cores; explored again, 0.8 seconds for set_config and 1.2 for queue_config.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from soft.bundle.model import Bundle
from soft.bundle.reader import read
from tests.agents.conftest import make
from tests.agents.lab import BUILD

SMALL = ("packet_out", "stats_request", "set_config", "short_symb", "queue_config")
AGENTS = ("reference", "vswitch")
# Over 30 seconds on one core; quick is one that is not worth a second process.
LONG, QUICK_LONG = ("vswitch", "cs_flow_mods"), ("vswitch", "packet_out")


# Where the paths are few, the start is what takes time.
KEPT_AGENT, KEPT_SCENARIOS = "ovs-vswitchd", ("concrete", "set_config", "queue_config")


def explored(agent: str, scenario: str, jobs: int, directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "soft", "explore", str(BUILD / agent), "--test", scenario, "--jobs", str(jobs)]
    begin, before = time.monotonic(), os.times()
    environment = {**os.environ, "SOFT_CACHE": "off"}
    command += ["-o", str(directory), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    seconds, after = time.monotonic() - begin, os.times()
    told = json.loads(done.stdout)
    processor = sum(after[2:4]) - sum(before[2:4])
    return {
        "agent": agent,
        "scenario": scenario,
        "jobs": jobs,
        "paths": told["paths"],
        "complete": told["complete"],
        "seconds": round(seconds, 1),
        # Of all processes together: on a busy machine this tells more.
        "processor_seconds": round(processor, 1),
        "paths_per_second": round(told["paths"] / seconds, 1),
    }


def explored_again(place: Path) -> Iterator[dict[str, Any]]:
    """Each scenario twice, the first time with nothing kept of the binary."""
    frozen = place / "snapshot"
    soft = [sys.executable, "-m", "soft"]
    subprocess.run([*soft, "snapshot", KEPT_AGENT, "-o", str(frozen)], check=True, stdout=subprocess.DEVNULL)
    for scenario in KEPT_SCENARIOS:
        environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache" / scenario)}
        seconds = []
        for name in ("first", "again"):
            command = [*soft, "explore", str(frozen), "--test", scenario, "-o", str(place / scenario / name), "--json"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
            seconds.append(json.loads(done.stdout)["seconds"])
        first, again = seconds
        yield {"agent": KEPT_AGENT, "scenario": scenario, "first": round(first, 2), "again": round(again, 2)}


def paths_of(bundle: Bundle) -> set[Any]:
    return {(frozenset(bundle.terms_of(path)), bundle.traces[path.trace]) for path in bundle.paths}


def measures(quick: bool) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        for agent in AGENTS[:1] if quick else AGENTS:
            for scenario in SMALL[-1:] if quick else SMALL:
                yield explored(agent, scenario, 1, Path(place) / agent / scenario)
        if not quick:
            yield explored("reference", "eth_flow_mod", 1, Path(place) / "eth_flow_mod")
        yield from explored_again(Path(place))
        one, two = Path(place) / "one", Path(place) / "two"
        agent, scenario = QUICK_LONG if quick else LONG
        alone = explored(agent, scenario, 1, one)
        yield alone
        together = explored(agent, scenario, 2, two)
        yield together
        yield {
            "times_faster_with_two_jobs": round(alone["seconds"] / together["seconds"], 2),
            "same_paths": paths_of(read(one)) == paths_of(read(two)),
        }


def main() -> None:
    make("all")
    for measure in measures("--quick" in sys.argv):
        print(json.dumps(measure), flush=True)


if __name__ == "__main__":
    main()
