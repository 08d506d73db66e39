"""Experiments with system calls: the same ones natively and under the model.

Each C file in tests/harness/agents is an agent that does one experiment for a message and reports what its calls
returned (agent.h). The experiment's number is an input, so that one snapshot of an agent serves all of them.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.frozen import Snapshot
from harness.path import Job
from harness.run import Outcome, Runner
from harness.snapshot import freeze
from soft.launch.find import Target
from soft.launch.profile import Profile
from soft.replay.runner import run
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.trace import Event, Message, Packet, Trace, evaluate_trace

SOURCES = Path(__file__).resolve().parents[1] / "agents"
_COMMAND = """
[[step]]
send = "echo_request"
data = [{ name = "experiment", bits = 8, value = "symbolic" }, "00"]
"""
_ECHO = '[[step]]\nsend = "echo_request"\ndata = "ff616263"\n'
SCENARIOS = {
    "SPEAKING": _COMMAND + _ECHO + '[[step]]\nprobe = 1\npacket = "tcp"\n' + _ECHO,
    "WAITING": _COMMAND + "[[step]]\nwait = 400\n" + _ECHO,
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """One function of one agent's source."""

    family: str
    name: str
    number: int
    kind: str

    @property
    def scenario(self) -> Scenario:
        return _scenario(self.kind)

    @property
    def values(self) -> dict[str, int]:
        (name,) = self.scenario.variable_names
        return {name: self.number}


@functools.cache
def _scenario(kind: str) -> Scenario:
    return parse(f'name = "{kind.lower()}"\nsummary = "x"\nports = 1\n{SCENARIOS[kind]}', "experiment.toml")


def experiments(family: str) -> list[Experiment]:
    """All experiments of a source file, in its order."""
    text = (SOURCES / f"{family}.c").read_text()
    found = re.findall(r"^(SPEAKING|WAITING)\((\w+)\)", text, re.MULTILINE)
    return [Experiment(family, name, number, kind) for number, (kind, name) in enumerate(found)]


def each(family: str) -> pytest.MarkDecorator:
    """A test for every experiment of a source file."""
    found = experiments(family)
    return pytest.mark.parametrize("experiment", found, ids=[each.name for each in found])


@functools.cache
def target(family: str) -> Target:
    # One build for the whole session; its directory goes away with the interpreter.
    directory = _directory()
    binary = Path(directory.name) / family
    source = SOURCES / f"{family}.c"
    flags = ["-O2", "-w", "-pthread", "-fno-toplevel-reorder", "-D_FORTIFY_SOURCE=0"]
    subprocess.run(["gcc", *flags, "-o", str(binary), str(source)], check=True)
    profile = Profile(
        command=("{binary}", "{controller}", "{ports}"), name=family, address="unix", ports="unix-datagram",
        settle_ms=0, source=str(source),
    )  # fmt: skip
    return Target(family, binary, profile)


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def snapshot(family: str) -> Snapshot:
    return freeze(target(family), ports=1, handshake=True, version=1)


@functools.cache
def runner(family: str, kind: str) -> Runner:
    return Runner(snapshot(family), _scenario(kind))


def under_the_model(experiment: Experiment) -> Outcome:
    return runner(experiment.family, experiment.kind).run(Job(experiment.values))


def natively(experiment: Experiment) -> Trace:
    return run(target(experiment.family), experiment.scenario, experiment.values, real_time=True).trace


def text(trace: Trace) -> list[str]:
    """A trace for people: what the calls returned."""
    return [line for event in trace for line in _lines(event)]


def _lines(event: Event) -> list[str]:
    if not isinstance(event, Message | Packet):
        return [str(event)]
    data = event.payload.concrete()
    assert data is not None
    head = f"{type(event).__name__} in step {event.step}, {data[:8].hex()}"
    return [head, *[f"  {line}" for line in data[8:].decode("latin-1").split("; ")]]


def compare(experiment: Experiment) -> None:
    """The model's trace under this input is the native one."""
    outcome = under_the_model(experiment)
    assert outcome.unsupported is None
    model = evaluate_trace(outcome.trace, experiment.values)
    native = natively(experiment)
    assert text(model) == text(native)
    assert model == native
