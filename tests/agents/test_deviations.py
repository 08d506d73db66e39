"""Each injected deviation shows in a concrete scenario, and there only."""

from __future__ import annotations

import re

import pytest

from tests.agents.lab import ROOT
from tests.agents.live import trace_of

Case = tuple[str, ...]  # a scenario's name and its settings

SHOWS: dict[str, Case] = {
    "modified-01": ("hello_version", "m0.version=0"),
    "modified-02": ("late_timeout", "m0.hard_timeout=1"),
    "modified-03": ("stats_request", "m0.type=table"),
    "modified-04": ("packet_out", "m0.buffer_id=77", "m0.actions.1.port=none"),
    "modified-05": ("source_address", "m0.match.nw_src=192.0.0.1", "m0.match.wildcards.nw_src=32"),
    "modified-06": ("two_flow_mods", "m1.match.wildcards.in_port=0"),
    "modified-07": ("vendor_action", "m0.actions.0.vendor=0x2320"),
    "modified-08": ("queue_config", "m0.port=9"),
    "modified-09": ("two_flow_mods", "m0.priority=5", "m1.priority=6", "m1.match.wildcards.in_port=1"),
    "modified-10": ("set_config", "m0.miss_send_len=0"),
    "modified-11": ("rewritten_port", "m0.actions.0.tp_port=443"),
    "modified-12": ("echo",),
}

# The same scenarios a step away from what is injected: nothing differs.
NEARBY: dict[str, Case] = {
    "modified-01": ("hello_version", "m0.version=1"),
    "modified-02": ("late_timeout", "m0.hard_timeout=0"),
    "modified-03": ("stats_request", "m0.type=desc"),
    "modified-04": ("packet_out", "m0.buffer_id=77", "m0.actions.1.port=2"),
    "modified-05": ("source_address", "m0.match.nw_src=192.0.0.1", "m0.match.wildcards.nw_src=33"),
    "modified-06": ("two_flow_mods", "m1.match.wildcards.in_port=0", "m1.priority=7"),
    "modified-07": ("packet_out", "m0.actions.0.type=12"),
    "modified-08": ("queue_config", "m0.port=1"),
    "modified-09": ("two_flow_mods", "m0.priority=6", "m1.priority=5", "m1.match.wildcards.in_port=1"),
    "modified-10": ("set_config", "m0.miss_send_len=1"),
    "modified-11": ("flow_mod", "m0.actions.0.type=set_tp_src", "m0.actions.0.body=01bb0000"),
    "modified-12": ("echo", "m0.size=8"),
}


def test_every_deviation_has_its_scenario() -> None:
    table = (ROOT / "agents" / "reference" / "DEVIATIONS.md").read_text()
    assert re.findall(r"^\| (modified-\d+) ", table, re.M) == list(SHOWS) == list(NEARBY)
    assert len(SHOWS) >= 10


@pytest.mark.parametrize("agent", SHOWS)
def test_the_deviation_shows(agent: str) -> None:
    assert trace_of(agent, *SHOWS[agent]) != trace_of("reference", *SHOWS[agent])


@pytest.mark.parametrize("agent", SHOWS)
def test_a_step_away_the_traces_are_equal(agent: str) -> None:
    assert trace_of(agent, *NEARBY[agent]) == trace_of("reference", *NEARBY[agent])


@pytest.mark.parametrize("agent", SHOWS)
def test_where_another_deviation_shows_the_traces_are_equal(agent: str) -> None:
    """Only what needs a wait is left to the test above."""
    for other, case in SHOWS.items():
        if other != agent and case[0] != "late_timeout":
            assert trace_of(agent, *case) == trace_of("reference", *case), (agent, case)


def test_runs_of_one_agent_are_equal() -> None:
    for case in SHOWS.values():
        if case[0] != "late_timeout":
            assert trace_of("reference", *case) == trace_of("reference", *case), case
