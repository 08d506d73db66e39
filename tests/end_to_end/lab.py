"""Our own agents, frozen and explored once for all tests that look at the bundles."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from harness.exploration import Exploration
from harness.frozen import Snapshot
from harness.snapshot import freeze
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.launch.find import Target, find
from soft.scenarios.loader import load, parse
from soft.scenarios.model import Scenario
from tests.agents.lab import BUILD
from tests.agents.live import SCENARIOS

# The packets that end the reference switch (section 5.1.2 of the paper), in few paths: an action of four types.
PACKET_CRASHES = """
name = "packet_crashes"
summary = "packet_out with one of four actions, and an output to port 2"
[[step]]
send = "packet_out"
actions = [
    { type = { in = [0, 1, 2, 3] }, body = "symbolic" },
    { type = "output", port = 2, max_len = 0 },
]
data = { packet = "tcp" }
"""

# Small enough to try every input: the highest ports, which have names, and some others.
EVERY_INPUT = """
name = "every_input"
summary = "packet_out from one of three ports to one of 264"
[[step]]
send = "packet_out"
in_port = { in = [1, 2, 0xffff], default = 0xffff }
actions = [{ type = "output", port = { in = [0, 1, 2, 3, 4, 5, 255, 256, NAMED] }, max_len = { in = [0, 64] } }]
data = { packet = "tcp" }
""".replace("NAMED", ", ".join(map(str, range(0xff00, 0x10000))))

# Of tests/agents/scenarios.
OWN = ("flow_to_port", "output")


@functools.cache
def scenario(name: str) -> Scenario:
    """A scenario of the catalogue, one of those above, or one of OWN."""
    if name == "packet_crashes":
        return parse(PACKET_CRASHES, "packet_crashes.toml")
    if name == "every_input":
        return parse(EVERY_INPUT, "every_input.toml")
    return load(str(SCENARIOS / f"{name}.toml") if name in OWN else name)


@functools.cache
def target(agent: str, profile: str | None = None) -> Target:
    return find(str(BUILD / agent), profile)


@functools.cache
def snapshot(agent: str, ports: int = 4, handshake: bool = True) -> Snapshot:
    # A variant of a program is started like the program.
    profile = agent.rpartition("/")[2].partition("-")[0] if "/" in agent else None
    return freeze(target(agent, profile), ports=ports, handshake=handshake, version=1)


@functools.cache
def directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def explored(agent: str, name: str, engine: str = "compiled", solver: str = "z3") -> Bundle:
    """The bundle of an agent and a scenario: complete."""
    place = Path(directory().name) / agent.replace("/", "_") / f"{name}-{engine}-{solver}"
    scene = scenario(name)
    frozen = snapshot(agent, scene.ports, scene.handshake)
    exploration = Exploration(frozen, scene, place, agent.rpartition("/")[2], engine=engine, solver=solver)
    manifest, _ = exploration.run()
    assert manifest.complete, manifest.reasons
    return read(place)
