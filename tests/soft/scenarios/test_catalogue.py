"""Every scenario of the catalogue: it loads, and what it sends by default is a well-formed message."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from soft.errors import SoftError
from soft.openflow.layout import layout_of
from soft.scenarios import loader
from soft.scenarios.model import Probe, Scenario, Send, Wait
from soft.solve.evaluate import evaluate

CATALOGUE = {name: loader.load(name) for name in loader.names()}
TABLE_1 = ["packet_out", "stats_request", "set_config", "flow_mod", "eth_flow_mod", "cs_flow_mods", "concrete"]
TABLE_1 += ["short_symb"]
TABLE_5 = ["fully_symbolic", "concrete_match", "concrete_action", "concrete_probe", "symbolic_probe"]
TIME = ["idle_timeout", "hard_timeout", "timeout_refresh", "echo_idle", "flow_expire_order"]
HANDSHAKE = ["hello", "hello_twice", "first_message"]
# The messages of a controller that os-ken can also read; those that it only writes are compared in test_layout.py.
READ_BY_OS_KEN = {"hello", "echo_request", "vendor", "flow_mod"}


def messages(scenario: Scenario) -> list[tuple[str, bytes]]:
    """The messages under the default input, with their types."""
    types = layout_of(scenario.openflow).types
    found = []
    for step in scenario.bind({}):
        if isinstance(step, Send):
            data = step.payload.concrete()
            assert data is not None
            found.append((types.name(data[1]) or "?", data))
    return found


def test_the_papers_tests_are_there() -> None:
    fourteen = [*TABLE_1, *TABLE_5, "queue_config"]
    assert len(fourteen) == 14
    assert {*fourteen, *TIME, *HANDSHAKE} <= set(CATALOGUE)


@pytest.mark.parametrize("name", CATALOGUE)
def test_it_loads_under_its_own_name(name: str) -> None:
    scenario = CATALOGUE[name]
    assert scenario.name == name
    assert scenario.summary
    assert loader.load(name.upper().replace("_", "-")).digest == scenario.digest


@pytest.mark.parametrize("name", CATALOGUE)
def test_its_file_says_why(name: str) -> None:
    assert CATALOGUE[name].text.startswith("# ")


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_default_input_is_well_formed(name: str) -> None:
    for _, data in messages(CATALOGUE[name]):
        assert data[0] == 1
        assert int.from_bytes(data[2:4], "big") == len(data)


@pytest.mark.parametrize("name", CATALOGUE)
def test_os_ken_reads_the_default_input(name: str) -> None:
    from os_ken.ofproto import ofproto_parser, ofproto_protocol

    logging.getLogger("os_ken").setLevel(logging.CRITICAL)
    for kind, data in messages(CATALOGUE[name]):
        if kind not in READ_BY_OS_KEN:
            continue
        head = ofproto_parser.header(data)
        message: Any = ofproto_parser.msg(ofproto_protocol.ProtocolDesc(version=1), *head, data)
        assert message is not None
        if kind == "flow_mod":
            assert sum(action.len for action in message.actions) == len(data) - 72


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_input_of_the_domain_can_be_sent(name: str) -> None:
    scenario = CATALOGUE[name]
    lowest, highest = {}, {}
    for variable in scenario.variables:
        ends = variable.choices or variable.range or (0, (1 << variable.width) - 1)
        lowest[variable.name], highest[variable.name] = ends[0], ends[-1]
    for values in (lowest, highest):
        for step in scenario.bind(values):
            assert isinstance(step, Wait) or step.payload.concrete()


@pytest.mark.parametrize("name", CATALOGUE)
def test_probes_are_frames_that_no_device_pads(name: str) -> None:
    for step in CATALOGUE[name].steps:
        if isinstance(step, Probe):
            assert step.payload.size == 60


def test_digests_differ() -> None:
    assert len({scenario.digest for scenario in CATALOGUE.values()}) == len(CATALOGUE)


def test_flow_mod_leaves_nothing_concrete_but_its_frame() -> None:
    scenario = CATALOGUE["flow_mod"]
    # Version, type, length and xid; ten reserved wildcard bits, three bytes of padding; types and lengths of actions.
    send = scenario.steps[0]
    assert isinstance(send, Send)
    concrete = 8 * send.payload.size - sum(variable.width for variable in scenario.variables)
    assert concrete == 64 + 10 + 24 + (16 + 32)


def test_every_kind_of_statistics_fits() -> None:
    scenario = CATALOGUE["stats_request"]
    # Header and type; an empty body, a vendor, a port or a queue, a match with table and port.
    assert scenario.variable("m0.size").choices == (12, 12 + 4, 12 + 8, 12 + 44)
    assert scenario.variable("m0.type").range is None


def test_statistics_of_port_0_are_asked_for_and_nicira_is_left_out() -> None:
    scenario = CATALOGUE["stats_request"]
    assert scenario.complete({"m0.body.port_no": 0, "m0.body.wildcards": 0x2321})["m0.body.port_no"] == 0
    with pytest.raises(SoftError, match="not 0x2320"):
        scenario.complete({"m0.body.wildcards": 0x2320})
    (domain,) = [term for term in scenario.domain if "m0.body.wildcards" in term.variables]
    assert [evaluate(domain, {"m0.body.wildcards": value}) for value in (0, 0x2320, 0xFFFF)] == [1, 0, 1]


def test_the_variants_of_table_5_share_their_names() -> None:
    whole = set(CATALOGUE["fully_symbolic"].variable_names)
    assert set(CATALOGUE["concrete_match"].variable_names) < whole
    assert set(CATALOGUE["concrete_action"].variable_names) < whole
    probe = set(CATALOGUE["symbolic_probe"].variable_names) - set(CATALOGUE["concrete_probe"].variable_names)
    assert probe == {"p1.dl_src", "p1.dl_dst", "p1.dl_type"}


def test_short_symb_is_ten_bytes_with_a_concrete_version() -> None:
    scenario = CATALOGUE["short_symb"]
    (send,) = scenario.steps
    assert isinstance(send, Send)
    assert send.payload.size == 10
    assert sum(variable.width for variable in scenario.variables) == 72


@pytest.mark.parametrize("name", HANDSHAKE)
def test_these_begin_before_the_handshake(name: str) -> None:
    assert not CATALOGUE[name].handshake


def test_all_others_begin_after_it() -> None:
    assert [name for name, scenario in CATALOGUE.items() if not scenario.handshake] == sorted(HANDSHAKE)


@pytest.mark.parametrize("name", TIME)
def test_time_is_an_input(name: str) -> None:
    waits = [step for step in CATALOGUE[name].steps if isinstance(step, Wait)]
    assert waits
    assert all(f"{step.id}.ms" in CATALOGUE[name].variable_names for step in waits)
