"""`--engine angr`: the stock engine gives the same partition of our switches on small scenarios."""

from __future__ import annotations

import pytest

from tests.end_to_end.lab import explored
from tests.harness.test_oracle import same_behaviour

SMALL = [("reference", "queue_config"), ("reference", "set_config"), ("figure1-agent1", "queue_config")]


@pytest.mark.parametrize(("agent", "scenario"), SMALL)
def test_the_same_partition(agent: str, scenario: str) -> None:
    oracle = explored(agent, scenario, engine="angr")
    ours = explored(agent, scenario)
    assert same_behaviour(ours, oracle)
    assert len(oracle.paths) == len(ours.paths)
