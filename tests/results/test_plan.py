from __future__ import annotations

import pytest

from results.deviations import read_descriptions
from results.plan import DEVIATIONS, SCENARIOS, Plan, plan
from soft.scenarios import loader


@pytest.fixture(params=[False, True], ids=["whole", "quick"])
def whole(request: pytest.FixtureRequest) -> Plan:
    return plan(quick=request.param)


def test_every_scenario_is_in_the_catalogue(whole: Plan) -> None:
    assert {each.scenario for each in whole.explorations} <= set(loader.names())


def test_what_is_compared_is_explored(whole: Plan) -> None:
    explored = {(each.agent, each.scenario) for each in whole.explorations}
    compared = {(agent, each.scenario) for each in whole.crosschecks for agent in each.agents}
    assert compared <= explored


def test_all_fourteen_scenarios_are_explored_on_both_switches() -> None:
    explored = {(each.agent, each.scenario) for each in plan().explorations}
    assert {(agent, scenario) for agent in ("reference", "vswitch") for scenario in SCENARIOS} <= explored
    assert len(SCENARIOS) == 14


def test_every_deviation_has_a_scenario_and_words() -> None:
    assert set(DEVIATIONS) == set(read_descriptions())
