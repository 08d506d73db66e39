"""How fast verify plays the examples of a bundle: on our switches, rewound, and on Open vSwitch, reset.

Run as a module: `python -m tests.benchmarks.bench_verify [--quick] [AGENT...]`. One JSON object a line. What must be
kept on two cores: 200 a second on our switches, 20 on Debian's ovs-vswitchd.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.exploration import Exploration
from harness.explorer import Limits
from harness.snapshot import freeze
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.launch.find import Target, find
from soft.replay.verify import verify
from soft.scenarios.loader import load

BUILD = Path(__file__).resolve().parents[2] / "agents" / "build"
# Agent, scenario, and how many paths of it are enough.
CASES = (
    ("reference", "packet_out", 1000),
    ("reference", "stats_request", 1000),
    ("vswitch", "packet_out", 1000),
    ("vswitch", "stats_request", 1000),
    ("ovs-vswitchd", "packet_out", 150),
    ("ovs-vswitchd", "stats_request", 200),
    ("ovs-vswitchd", "eth_flow_mod", 150),
    # Some of these close the channel or leave half a message in it.
    ("ovs-vswitchd", "short_symb", 75),
)


def target_of(agent: str) -> Target:
    return find(str(BUILD / agent) if (BUILD / agent).exists() else agent)


def explored(target: Target, scenario_name: str, paths: int, directory: Path) -> Bundle:
    scenario = load(scenario_name)
    snapshot = freeze(target, ports=scenario.ports, handshake=scenario.handshake, version=1)
    limits = Limits(seconds=60, paths=paths)
    Exploration(snapshot, scenario, directory, target.label, jobs=2, limits=limits).run()
    return read(directory)


def measure(agent: str, scenario: str, paths: int) -> dict[str, Any]:
    target = target_of(agent)
    with tempfile.TemporaryDirectory() as place:
        bundle = explored(target, scenario, paths, Path(place) / "bundle")
    result = verify(bundle, target)
    return {
        "agent": agent,
        "scenario": scenario,
        "witnesses": len(result.checks),
        "agreed": result.count("agreed"),
        "disagreed": result.count("disagreed"),
        "seconds": round(result.seconds, 2),
        "witnesses_per_second": round(len(result.checks) / result.seconds, 1),
    }


def main() -> None:
    quick = "--quick" in sys.argv
    chosen = {argument for argument in sys.argv[1:] if not argument.startswith("-")}
    for agent, scenario, paths in CASES:
        if not chosen or agent in chosen:
            print(json.dumps(measure(agent, scenario, paths // 5 if quick else paths)), flush=True)


if __name__ == "__main__":
    main()
