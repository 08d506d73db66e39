"""`--engine angr`: the stock engine gives the same behaviour of our switches over the same inputs."""

from __future__ import annotations

import pytest

from tests.end_to_end.lab import explored
from tests.harness.test_oracle import same_behaviour

SMALL = [("reference", "queue_config"), ("reference", "set_config"), ("figure1-agent1", "queue_config")]


@pytest.mark.parametrize(("agent", "scenario"), SMALL)
def test_the_same_behaviour_over_all_inputs(agent: str, scenario: str) -> None:
    oracle = explored(agent, scenario, engine="angr")
    ours = explored(agent, scenario)
    assert same_behaviour(ours, oracle)
    # The compiled machine merges short branches: its parts are unions of the oracle's.
    assert len(ours.paths) <= len(oracle.paths)
