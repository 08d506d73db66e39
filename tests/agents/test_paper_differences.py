"""Section 5.1.2 of the paper between our `reference` (its Reference Switch) and `vswitch` (its Open vSwitch).

A test is named after the paper's heading and shows each difference by a pair of runs.
"""

from __future__ import annotations

import pytest

from tests.agents.live import behaviour

PACKET = "TCP 10.0.0.1:1025 → 10.0.0.2:80"
MISSED = f"1: packet_in: 60 bytes from port 1, no_match, buffered, quoting {PACKET}, 60 bytes, xid 0"
IN_PORT = "m0.match.in_port=1"


def pair(name: str, *settings: str) -> tuple[list[str], list[str]]:
    """What `reference` does, and what `vswitch` does."""
    return behaviour("reference", name, *settings), behaviour("vswitch", name, *settings)


def action(kind: str, body: str) -> tuple[str, str]:
    return f"m0.actions.0.type={kind}", f"m0.actions.0.body={body}"


# A value that does not fit, and how `reference` makes it fit.
INVALID = {
    "set_vlan_vid": ("1fff0000", "VLAN 4095, 64 bytes"),
    "set_vlan_pcp": ("0a000000", "VLAN 0 priority 2, 64 bytes"),
    "set_nw_tos": ("07000000", "TOS 4, 60 bytes"),
}
VALID = {"set_vlan_vid": "0fff0000", "set_vlan_pcp": "02000000", "set_nw_tos": "04000000"}


def test_packet_dropped_when_action_is_invalid() -> None:
    """In a packet_out: `vswitch` ignores the whole message, without a word."""
    assert pair("packet_out", *action("set_nw_tos", "07000000")) == ([f"0: port 2: {PACKET}, TOS 4, 60 bytes"], [])
    same, valid = pair("packet_out", *action("set_nw_tos", "04000000"))
    assert same == valid == [f"0: port 2: {PACKET}, TOS 4, 60 bytes"]


@pytest.mark.parametrize("kind", INVALID)
def test_packet_dropped_when_action_is_invalid_in_a_flow_mod(kind: str) -> None:
    """`reference` modifies the value to fit; `vswitch` installs no rule and says nothing."""
    body, fitted = INVALID[kind]
    assert pair("flow_with_action", *action(kind, body)) == ([f"1: port 2: {PACKET}, {fitted}"], [MISSED])
    same, valid = pair("flow_with_action", *action(kind, VALID[kind]))
    assert same == valid == [f"1: port 2: {PACKET}, {fitted}"]


def test_forwarding_a_packet_to_an_invalid_port_which_is_the_ingress_port() -> None:
    reference, vswitch = pair("flow_to_port", IN_PORT, "m0.actions.0.port=1")
    assert reference == ["0: error: bad_action/bad_out_port, xid 1", MISSED]
    assert vswitch == []


def test_forwarding_a_packet_to_an_invalid_port_which_is_above_the_maximum() -> None:
    reference, vswitch = pair("flow_to_port", IN_PORT, "m0.actions.0.port=1000")
    assert reference == []
    assert vswitch == ["0: error: bad_action/bad_out_port, xid 1", MISSED]


def test_lack_of_error_messages_for_a_buffer_that_does_not_exist() -> None:
    """`vswitch` says so, and installs the flow as well."""
    assert pair("packet_out", "m0.buffer_id=77") == ([], ["0: error: bad_request/buffer_unknown, xid 1"])
    forwarded = f"1: port 2: {PACKET}, 60 bytes"
    reference, vswitch = pair("flow_to_port", IN_PORT, "m0.buffer_id=77")
    assert reference == [forwarded]
    assert vswitch == ["0: error: bad_request/buffer_unknown, xid 1", forwarded]


def test_openflow_agent_terminates_with_an_error_on_a_packet_out_to_the_controller() -> None:
    reference, vswitch = pair("packet_out", "m0.actions.1.port=controller")
    assert reference[-1] == "0: crash: SIGABRT"
    assert vswitch[0].startswith("0: packet_in: 60 bytes from port none, action")


def test_openflow_agent_terminates_with_an_error_on_setting_the_vlan_in_a_packet_out() -> None:
    reference, vswitch = pair("packet_out", *action("set_vlan_vid", "00050000"))
    assert reference == ["0: crash: SIGABRT"]
    assert vswitch == [f"0: port 2: {PACKET}, VLAN 5, 64 bytes"]


def test_openflow_agent_terminates_with_an_error_on_queue_configuration_of_port_0() -> None:
    reference, vswitch = pair("queue_config", "m0.port=0")
    assert reference == ["0: crash: SIGSEGV"]
    assert vswitch == ["0: error: queue_op_failed/bad_port, xid 1"]


def test_different_order_of_message_validation() -> None:
    """Two mistakes in one packet_out, which both agents see when each stands alone or has precedence."""
    bad_port = ["0: error: bad_action/bad_out_port, xid 1"]
    assert pair("packet_out", "m0.actions.1.port=none") == (bad_port, bad_port)
    assert pair("packet_out", "m0.buffer_id=77") == ([], ["0: error: bad_request/buffer_unknown, xid 1"])
    assert pair("packet_out", "m0.buffer_id=77", "m0.actions.1.port=none") == ([], bad_port)


@pytest.mark.parametrize(("kind", "code"), [("9", "bad_stat"), ("vendor", "bad_vendor")])
def test_statistics_requests_silently_ignored(kind: str, code: str) -> None:
    assert pair("stats_request", f"m0.type={kind}") == ([], [f"0: error: bad_request/{code}, xid 1"])


def test_missing_features_emergency_flow_entries() -> None:
    reference, vswitch = pair("flow_to_port", IN_PORT, "m0.flags=emerg")
    assert reference == [MISSED]
    assert vswitch == ["0: error: flow_mod_failed/all_tables_full, xid 1", MISSED]


def test_missing_features_traditional_forwarding_paths() -> None:
    reference, vswitch = pair("flow_to_port", IN_PORT, "m0.actions.0.port=normal")
    assert reference == []
    assert vswitch == [f"1: port {number}: {PACKET}, 60 bytes" for number in (2, 3, 4)]
