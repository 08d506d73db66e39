"""Scenarios on our agents as `soft run` plays them: short traces to compare and to read."""

from __future__ import annotations

from pathlib import Path

from soft.launch.find import find
from soft.openflow.decode import describe_event
from soft.replay.runner import run
from soft.scenarios.loader import load
from soft.trace import Trace
from tests.agents.lab import binary

SCENARIOS = Path(__file__).with_name("scenarios")


def trace_of(agent: str, name: str, *settings: str) -> Trace:
    """The normalised trace of an agent of ours under a scenario of the catalogue, or of tests/agents/scenarios."""
    own = SCENARIOS / f"{name}.toml"
    scenario = load(str(own) if own.exists() else name)
    return run(find(binary(agent)), scenario, scenario.parse_values(settings)).trace


def behaviour(agent: str, name: str, *settings: str) -> list[str]:
    """The same in words: a line for each event, with its step."""
    return [f"{event.step}: {describe_event(event)}" for event in trace_of(agent, name, *settings)]
