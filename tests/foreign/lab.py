"""Agents that nobody here has seen: compiled from the C files beside this one, started from profiles of a few lines."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from harness.exploration import Exploration
from harness.explorer import Limits, Progress
from harness.snapshot import freeze
from soft.bundle.model import Bundle, Manifest
from soft.bundle.reader import read
from soft.launch.find import Target
from soft.launch.profile import parse_profile
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario

HERE = Path(__file__).parent
# A packet to any port, and what the agent does with a frame.
PACKETS = """
name = "packets"
summary = "packet_out from any port to any port, then a probe"
[[step]]
send = "packet_out"
in_port = "symbolic"
actions = [{ type = "output", port = "symbolic", max_len = 0 }]
data = { packet = "tcp" }
[[step]]
probe = 1
packet = "tcp"
"""
# A rule for any hardware address, and a frame that it may be for.
FLOWS = """
name = "flows"
summary = "A rule for any destination to any port, then a probe"
[[step]]
send = "flow_mod"
command = { in = [0, 1] }
actions = [{ type = "output", port = "symbolic", max_len = 0 }]
[step.match]
dl_dst = "symbolic"
[[step]]
probe = 1
packet = "tcp"
"""
# The agent reads a header, and then as many bytes as that says.
SHORT = """
name = "short"
summary = "An echo of any length, of which ten bytes come"
[[step]]
send = "message"
type = 2
length = "symbolic"
body = "0102"
"""
# Time passes.
WAITING = """
name = "waiting"
summary = "A barrier, and a second"
[[step]]
send = "barrier_request"
[[step]]
wait = 1000
"""


@functools.cache
def directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


# How an agent is compiled, if not like most of them.
_COMPILED = {
    "crewd": ["gcc", "-O2", "-pthread"],
    "edged": ["g++", "-O2", "-std=c++17"],
    "forkd": ["gcc", "-static", "-O3", "-march=x86-64-v2"],
    "peekd": ["gcc", "-O0", "-D_GNU_SOURCE"],
    "talkd": ["gcc", "-O2", "-D_GNU_SOURCE", "-pthread"],
}


@functools.cache
def binary(name: str) -> Path:
    place = Path(directory().name) / name
    (source,) = HERE.glob(f"{name}.c*")
    subprocess.run([*_COMPILED.get(name, ["gcc", "-O1"]), "-w", "-o", place, source], check=True)
    return place


def target(name: str, *changes: tuple[str, str]) -> Target:
    """An agent and its profile, in which some texts are replaced by others."""
    text = (HERE / f"{name}.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Target(name, binary(name), parse_profile(text.encode(), str(HERE / f"{name}.toml")))


def scenario(text: str) -> Scenario:
    return parse(text, "scenario.toml")


def explore(
    target: Target, scene: Scenario, limits: Limits | None = None
) -> tuple[Bundle, Manifest, Progress]:
    """Freeze an agent and follow all its paths."""
    snapshot = freeze(target, ports=scene.ports, handshake=scene.handshake, version=1)
    with tempfile.TemporaryDirectory() as place:
        manifest, progress = Exploration(snapshot, scene, Path(place) / "bundle", target.label, limits=limits).run()
        return read(Path(place) / "bundle"), manifest, progress
