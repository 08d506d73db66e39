"""What crosschecks of our own switches say: each difference is one cluster, and its heading tells which.

For `reference` and `vswitch` these are the differences of section 5.1.2 of the paper, by the paper's names; the inputs
that show them are those of tests/agents/test_paper_differences.py. All headings stand in golden/, as a user reads them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import pytest

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Cluster, Findings
from soft.replay.stage import AgentStage
from soft.scenarios.model import Scenario
from soft.trace import Trace
from tests.end_to_end.lab import explored, target
from tests.end_to_end.lab import scenario as scenario_of

GOLDEN = Path(__file__).with_name("golden")
SCENARIOS = ("packet_out", "stats_request", "queue_config", "flow_to_port", "concrete_probe")
INVALID_ACTION = (
    "flow_mod with actions.0.type = set_vlan_vid and actions.0.vlan_vid ≥ 0x1000, "
    "or actions.0.type = set_vlan_pcp and actions.0.vlan_pcp ≥ 8, "
    "or actions.0.type = set_nw_tos and actions.0.nw_tos & 0x3 ≠ 0"
)


@functools.cache
def compared(left: str, right: str, scenario: str) -> Findings:
    return crosscheck([explored(agent, scenario, solver="bitwuzla") for agent in (left, right)])


def clusters_of(found: Findings, settings: tuple[str, ...]) -> list[Cluster]:
    """The clusters that an input belongs to."""
    scenario = scenario_of(found.scenarios[0].name)
    values = scenario.defaults | scenario.parse_values(settings)
    return [c for c in found.clusters if any(finding.region.holds(values) for finding in found.of(c))]


@pytest.mark.parametrize(
    ("difference", "scenario", "settings", "heading"),
    [
        (
            "packet dropped when action is invalid",
            "packet_out",
            ("m0.actions.0.type=set_nw_tos", "m0.actions.0.body=07000000", "m0.actions.1.port=2"),
            "packet_out with actions.0.type = set_nw_tos, actions.0.nw_tos & 0x3 ≠ 0",
        ),
        (
            "packet dropped when action is invalid, vlan_vid",
            "concrete_probe",
            ("m0.actions.0.type=set_vlan_vid", "m0.actions.0.body=1fff0000"),
            INVALID_ACTION,
        ),
        (
            "packet dropped when action is invalid, vlan_pcp",
            "concrete_probe",
            ("m0.actions.0.type=set_vlan_pcp", "m0.actions.0.body=0a000000"),
            INVALID_ACTION,
        ),
        (
            "packet dropped when action is invalid, nw_tos",
            "concrete_probe",
            ("m0.actions.0.type=set_nw_tos", "m0.actions.0.body=07000000"),
            INVALID_ACTION,
        ),
        (
            "forwarding a packet to an invalid port: the ingress port",
            "flow_to_port",
            ("m0.match.in_port=1", "m0.actions.0.port=1"),
            "match.in_port = actions.0.port: "
            "reference answers with the error bad_action/bad_out_port, vswitch does not",
        ),
        (
            "forwarding a packet to an invalid port: above the maximum",
            "flow_to_port",
            ("m0.match.in_port=1", "m0.actions.0.port=1000"),
            "flow_mod with actions.0.port from 256 to 0xfff7",
        ),
        (
            "lack of error messages",
            "packet_out",
            ("m0.buffer_id=77", "m0.actions.1.port=2"),
            "reference is silent, vswitch answers with the error bad_request/buffer_unknown",
        ),
        (
            "lack of error messages, in a flow_mod",
            "flow_to_port",
            ("m0.match.in_port=1", "m0.buffer_id=77", "m0.actions.0.port=2"),
            "flow_mod with buffer_id ≠ none",
        ),
        (
            "OpenFlow agent terminates with an error: output to the controller",
            "packet_out",
            ("m0.actions.1.port=controller",),
            "packet_out with actions.0.port or actions.1.port = controller, buffer_id = none: reference crashes",
        ),
        (
            "OpenFlow agent terminates with an error: setting the VLAN",
            "packet_out",
            ("m0.actions.0.type=set_vlan_vid", "m0.actions.0.body=00050000", "m0.actions.1.port=2"),
            "packet_out with actions.0.type in {set_vlan_vid, set_vlan_pcp}, buffer_id = none",
        ),
        (
            "OpenFlow agent terminates with an error: queue configuration of port 0",
            "queue_config",
            ("m0.port=0",),
            "queue_get_config_request with port = 0: reference crashes (SIGSEGV)",
        ),
        (
            "different order of message validation",
            "packet_out",
            ("m0.buffer_id=77", "m0.actions.1.port=none"),
            "packet_out with buffer_id ≠ none, and actions.0.type in {set_dl_src to set_dl_dst, enqueue to vendor}, "
            "or actions.0.port or actions.1.port in {256 to 0xfff7, none}: reference is silent",
        ),
        (
            "statistics requests silently ignored: no such type",
            "stats_request",
            ("m0.type=9",),
            "stats_request with type ≥ 6, or type = queue and body.port_no not in {1 to 4, 0xfffc, 0xfffe}",
        ),
        (
            "statistics requests silently ignored: no such port",
            "stats_request",
            ("m0.type=queue", "m0.size=20", "m0.body.port_no=9"),
            "stats_request with type ≥ 6, or type = queue and body.port_no not in {1 to 4, 0xfffc, 0xfffe}",
        ),
        (
            "missing features: emergency flow entries",
            "flow_to_port",
            ("m0.match.in_port=1", "m0.flags=emerg", "m0.actions.0.port=2"),
            "vswitch answers with the error flow_mod_failed/all_tables_full",
        ),
        (
            "missing features: traditional forwarding paths",
            "packet_out",
            ("m0.actions.1.port=normal",),
            "packet_out with actions.0.port or actions.1.port = normal, buffer_id = none: "
            "reference does not, vswitch forwards the packet",
        ),
        (
            "missing features: traditional forwarding paths, in a flow_mod",
            "flow_to_port",
            ("m0.match.in_port=1", "m0.actions.0.port=normal"),
            "actions.0.port = normal, buffer_id = none, flags[2:2] = 0: "
            "reference is silent, vswitch forwards the probe to several ports",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value and "with" not in value else "",
)
def test_each_difference_of_the_paper_is_one_cluster(
    difference: str, scenario: str, settings: tuple[str, ...], heading: str
) -> None:
    found = compared("reference", "vswitch", scenario)
    (cluster,) = clusters_of(found, settings)
    assert heading in cluster.heading, difference
    assert sum(heading in each.heading for each in found.clusters) == 1


def headings(found: Findings) -> str:
    lines = [f"{cluster.severity}: {cluster.heading}\n" for cluster in found.clusters]
    return f"# {found.scenarios[0].name}\n" + "".join(lines)


def test_the_headings_of_the_two_switches() -> None:
    text = "\n".join(headings(compared("reference", "vswitch", scenario)) for scenario in SCENARIOS)
    assert text == (GOLDEN / "reference-vswitch.txt").read_text()


# Where each deviation is injected, and the fields that its one cluster must name.
DEVIATIONS = {
    "modified-01": ("hello", {"m0.version"}),
    "modified-02": ("hard_timeout", {"m0.hard_timeout", "w1.ms"}),
    "modified-03": ("stats_request", {"m0.type"}),
    "modified-04": ("packet_out", {"m0.buffer_id", "m0.actions.0.type", "m0.actions.1.port"}),
    "modified-05": ("ip_flow_mod", {"m0.match.wildcards.nw_src", "m0.match.wildcards.nw_dst"}),
    "modified-06": ("two_flow_mods", {"m0.priority", "m1.priority", "m1.command"}),
    "modified-07": ("packet_out", {"m0.actions.0.type"}),
    "modified-08": ("queue_config", {"m0.port"}),
    "modified-09": ("two_flow_mods", {"m0.priority", "m1.priority"}),
    "modified-10": ("set_config", {"m0.miss_send_len"}),
    "modified-11": ("packet_out", {"m0.actions.0.type"}),
    "modified-12": ("echo", {"m0.size"}),
}


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_each_injected_deviation_is_one_cluster_with_its_fields(deviation: str) -> None:
    scenario, fields = DEVIATIONS[deviation]
    (cluster,) = compared("reference", deviation, scenario).clusters
    assert fields <= set(cluster.fields)


def test_the_headings_of_the_deviations() -> None:
    found = [compared("reference", deviation, scenario) for deviation, (scenario, _) in DEVIATIONS.items()]
    assert "\n".join(map(headings, found)) == (GOLDEN / "deviations.txt").read_text()


def played(agent: str, scenario: Scenario, inputs: Iterable[Mapping[str, int]]) -> list[Trace]:
    """What the live agent does with each input."""
    with AgentStage(target(agent), scenario) as stage:
        return [stage.again(values) or stage.fresh(values) for values in inputs]


@pytest.mark.parametrize("pair", [("reference", "vswitch"), ("figure1-agent1", "figure1-agent2")])
def test_exactly_the_inputs_that_the_live_agents_answer_differently(pair: tuple[str, str]) -> None:
    scenario = scenario_of("every_input")
    inputs = [
        dict(zip(scenario.variable_names, values, strict=True))
        for values in product(*[variable.choices or () for variable in scenario.variables])
    ]
    assert len(inputs) == 3 * 264 * 2
    one, other = (played(agent, scenario, inputs) for agent in pair)
    found = compared(*pair, "every_input")
    assert found.verdict == "differ"
    for values, first, second in zip(inputs, one, other, strict=True):
        claimed = any(finding.region.holds(values) for finding in found.findings)
        assert claimed == (first != second), values


def test_the_agents_of_figure_1_differ_in_the_controllers_port_only() -> None:
    (finding,) = compared("figure1-agent1", "figure1-agent2", "output").findings
    assert finding.region.text == "m0.actions.0.port = controller; everything else free"
    assert finding.region.proved
    assert finding.region.exact
