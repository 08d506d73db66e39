"""The habits of vswitch where the specification leaves room, by the headings of section 5.1.2 of the paper."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.agents.lab import (
    ALL_TABLES_FULL,
    BAD_LEN,
    BAD_OUT_PORT,
    BAD_QUEUE,
    BAD_STAT,
    BAD_VENDOR,
    BUFFER_UNKNOWN,
    CONTROLLER,
    DELETE,
    EMERG,
    FEATURES_REQUEST,
    FLOOD,
    IN_PORT,
    NONE,
    NORMAL,
    PACKET_IN,
    QUEUE_BAD_PORT,
    QUEUE_BAD_QUEUE,
    QUEUE_GET_CONFIG_REPLY,
    QUEUE_GET_CONFIG_REQUEST,
    SET_CONFIG,
    STATS_REPLY,
    TABLE,
    TOO_MANY,
    Controller,
    Lab,
    Message,
    binary,
    enqueue,
    flow_mod,
    flow_stats_request,
    match,
    output,
    packet_out,
    running,
    set_nw_tos,
    set_vlan_pcp,
    set_vlan_vid,
    stats_request,
)

FRAME = bytes.fromhex("0200000000bb0200000000aa88b5") + bytes(46)
INVALID_VALUES = [
    pytest.param(set_vlan_vid(0x1000), id="vlan_vid of 13 bits"),
    pytest.param(set_vlan_vid(0xFFFF), id="vlan_vid of 16 bits"),
    pytest.param(set_vlan_pcp(8), id="vlan_pcp of 4 bits"),
    pytest.param(set_nw_tos(1), id="nw_tos with bit 0"),
    pytest.param(set_nw_tos(2), id="nw_tos with bit 1"),
]
VALID_VALUES = [
    pytest.param(set_vlan_vid(0x0FFF), id="vlan_vid of 12 bits"),
    pytest.param(set_vlan_pcp(7), id="vlan_pcp of 3 bits"),
    pytest.param(set_nw_tos(0xFC), id="nw_tos of six high bits"),
]


@pytest.fixture
def agent() -> str:
    return "vswitch"


class TestPacketDroppedWhenActionIsInvalid:
    @pytest.mark.parametrize("action", INVALID_VALUES)
    def test_packet_out_is_dropped_without_an_error(self, lab: Lab, controller: Controller, action: bytes) -> None:
        assert controller.exchange(packet_out(FRAME, action, output(2))) == []
        assert lab.received() == {}

    @pytest.mark.parametrize("action", INVALID_VALUES)
    def test_the_whole_packet_out_is_dropped_even_what_came_before(
        self, lab: Lab, controller: Controller, action: bytes
    ) -> None:
        assert controller.exchange(packet_out(FRAME, output(1), action, output(2))) == []
        assert lab.received() == {}

    @pytest.mark.parametrize("action", INVALID_VALUES)
    def test_flow_mod_is_dropped_without_an_error(self, controller: Controller, action: bytes) -> None:
        assert controller.exchange(flow_mod(match(), action, output(2))) == []
        assert controller.flows() == []

    @pytest.mark.parametrize("action", VALID_VALUES)
    def test_values_that_fit_are_taken(self, lab: Lab, controller: Controller, action: bytes) -> None:
        assert controller.exchange(packet_out(FRAME, action, output(2)), flow_mod(match(), action, output(2))) == []
        assert list(lab.received()) == [2]
        assert len(controller.flows()) == 1


class TestForwardingAPacketToAnInvalidPort:
    def test_a_rule_back_to_its_own_ingress_port_is_accepted_and_drops(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(in_port=1), output(1))) == []
        lab.ports[1].send(FRAME)
        assert controller.settle() == []  # neither a packet_in ...
        assert lab.received() == {}  # ... nor the packet

    def test_the_in_port_port_sends_it_back(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(in_port=1), output(IN_PORT))) == []
        lab.ports[1].send(FRAME)
        assert controller.settle() == []
        assert lab.received() == {1: [FRAME]}

    @pytest.mark.parametrize("port", [256, 0xFEFF, 0xFF00, 0xFFF7, NONE])
    def test_a_port_above_the_maximum_is_an_error(self, controller: Controller, port: int) -> None:
        assert controller.error(packet_out(FRAME, output(port))) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), output(port))) == BAD_OUT_PORT
        assert controller.flows() == []

    @pytest.mark.parametrize("port", [0, 5, 255])
    def test_a_port_that_may_come_later_is_accepted(self, lab: Lab, controller: Controller, port: int) -> None:
        assert controller.exchange(flow_mod(match(), output(port)), packet_out(FRAME, output(port))) == []
        assert lab.received() == {}
        assert len(controller.flows()) == 1

    def test_the_maximum_can_be_configured(self, tmp_path: Path) -> None:
        with running(Lab(tmp_path, [binary("vswitch")], ["--max-port=10"])) as lab:
            controller = lab.controller()
            assert controller.exchange(packet_out(FRAME, output(10))) == []
            assert controller.error(packet_out(FRAME, output(11))) == BAD_OUT_PORT

    def test_a_port_of_its_own_above_the_maximum_is_refused(self) -> None:
        command = [binary("vswitch"), "--listen=unix:x", "--port=300=eth0"]
        result = subprocess.run(command, capture_output=True, text=True)
        assert (result.returncode, "above the maximum" in result.stderr) == (2, True)


class TestLackOfErrorMessages:
    def test_packet_out_with_an_unknown_buffer_is_an_error(self, lab: Lab, controller: Controller) -> None:
        assert controller.error(packet_out(FRAME, output(2), buffer_id=12345)) == BUFFER_UNKNOWN
        assert lab.received() == {}

    def test_flow_mod_with_an_unknown_buffer_is_an_error_and_installs_the_flow(self, controller: Controller) -> None:
        assert controller.error(flow_mod(match(), output(2), buffer_id=12345)) == BUFFER_UNKNOWN
        assert len(controller.flows()) == 1


class TestOpenFlowAgentTerminatesWithAnError:
    """The other agent of the paper crashes in each of these."""

    def test_packet_out_to_the_controller_comes_back_as_packet_in(self, controller: Controller) -> None:
        (packet_in,) = controller.exchange(packet_out(FRAME, output(CONTROLLER, max_len=0xFFFF), in_port=3))
        assert packet_in.type == PACKET_IN
        total_len, in_port, reason = struct.unpack_from("!HHB", packet_in.body, 4)
        assert (total_len, in_port, reason) == (len(FRAME), 3, 1)
        assert packet_in.body[10:] == FRAME

    def test_packet_out_sets_the_vlan(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(FRAME, set_vlan_vid(5), output(2))) == []
        assert lab.received() == {2: [FRAME[:12] + bytes.fromhex("81000005") + FRAME[12:]]}

    @pytest.mark.parametrize("port", [0, 5, 0xFF00, NONE])
    def test_queue_configuration_of_a_port_that_does_not_exist_is_an_error(
        self, controller: Controller, port: int
    ) -> None:
        request = Message(QUEUE_GET_CONFIG_REQUEST, 9, struct.pack("!Hxx", port))
        assert controller.error(request) == QUEUE_BAD_PORT

    def test_queue_configuration_of_a_port(self, controller: Controller) -> None:
        reply = controller.answer(Message(QUEUE_GET_CONFIG_REQUEST, 9, struct.pack("!Hxx", 1)))
        assert reply.type == QUEUE_GET_CONFIG_REPLY
        assert reply.body == struct.pack("!H6xIHxx", 1, 0, 8)

    def test_a_rule_that_outputs_to_the_table_does_not_recurse_for_ever(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), output(TABLE), output(2))) == []
        lab.ports[1].send(FRAME)
        assert controller.settle() == []
        assert lab.received() == {2: [FRAME, FRAME]}


class TestLimits:
    """What this switch refuses and the other does not look at."""

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            (Message(FEATURES_REQUEST, 5, b"x"), BAD_LEN),
            (packet_out(FRAME, *[output(1)] * 513), TOO_MANY),
            (packet_out(FRAME, enqueue(1, 1)), BAD_QUEUE),
        ],
    )
    def test_errors(self, controller: Controller, message: Message, error: tuple[int, int]) -> None:
        assert controller.error(message) == error

    def test_every_controller_has_its_own_miss_send_len(self, lab: Lab, controller: Controller) -> None:
        other = lab.controller()
        other.exchange(Message(SET_CONFIG, 3, struct.pack("!HH", 0, 20)))
        lab.ports[1].send(FRAME)
        assert [len(message.body) for message in controller.settle()] == [10 + len(FRAME)]
        assert [len(message.body) for message in other.settle()] == [10 + 20]


class TestDifferentOrderOfMessageValidation:
    def test_actions_are_validated_before_the_buffer(self, controller: Controller) -> None:
        assert controller.error(packet_out(b"", output(300), buffer_id=12345)) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), output(300), buffer_id=12345)) == BAD_OUT_PORT

    def test_values_are_validated_before_the_buffer_too(self, controller: Controller) -> None:
        assert controller.exchange(packet_out(b"", set_vlan_vid(0x1000), output(2), buffer_id=12345)) == []

    def test_ports_are_validated_before_values(self, controller: Controller) -> None:
        assert controller.error(packet_out(FRAME, set_vlan_vid(0x1000), output(300))) == BAD_OUT_PORT

    def test_an_emergency_flow_is_refused_before_its_actions_are_looked_at(self, controller: Controller) -> None:
        assert controller.error(flow_mod(match(), output(300), flags=EMERG)) == ALL_TABLES_FULL


class TestStatisticsRequestsSilentlyIgnored:
    @pytest.mark.parametrize("kind", [6, 7, 0x1000, 0xFFFE])
    def test_an_unknown_kind_is_an_error(self, controller: Controller, kind: int) -> None:
        assert controller.error(stats_request(kind)) == BAD_STAT

    @pytest.mark.parametrize("port", [0, 5, 0xFF00])
    def test_statistics_of_a_port_that_does_not_exist_are_an_error(self, controller: Controller, port: int) -> None:
        assert controller.error(stats_request(4, struct.pack("!H6x", port))) == BAD_STAT

    def test_a_vendors_kind_is_an_error(self, controller: Controller) -> None:
        assert controller.error(stats_request(0xFFFF, bytes(4))) == BAD_VENDOR

    @pytest.mark.parametrize(("port", "queue", "error"), [(9, 0, QUEUE_BAD_PORT), (1, 1, QUEUE_BAD_QUEUE)])
    def test_statistics_of_a_queue_that_does_not_exist_are_an_error(
        self, controller: Controller, port: int, queue: int, error: tuple[int, int]
    ) -> None:
        assert controller.error(stats_request(5, struct.pack("!HxxI", port, queue))) == error

    def test_statistics_of_a_table_that_does_not_exist_are_an_error(self, controller: Controller) -> None:
        assert controller.error(flow_stats_request(table=1)) == BAD_STAT

    @pytest.mark.parametrize("kind", [1, 2, 4, 5])
    def test_a_body_of_the_wrong_size_is_an_error(self, controller: Controller, kind: int) -> None:
        assert controller.error(stats_request(kind, bytes(1))) == BAD_LEN


class TestMissingFeatures:
    def test_emergency_flows_are_refused(self, controller: Controller) -> None:
        assert controller.error(flow_mod(match(), output(2), flags=EMERG)) == ALL_TABLES_FULL
        assert controller.error(flow_mod(match(), command=DELETE, flags=EMERG)) == ALL_TABLES_FULL
        assert controller.flows() == []

    def test_the_emergency_table_is_empty(self, controller: Controller) -> None:
        controller.exchange(flow_mod(match(), output(2)))
        reply = controller.answer(flow_stats_request(table=0xFE))
        assert (reply.type, reply.body[4:]) == (STATS_REPLY, b"")

    def test_the_normal_port_floods_until_it_has_learnt(self, lab: Lab, controller: Controller) -> None:
        answer = FRAME[6:12] + FRAME[:6] + FRAME[12:]
        controller.exchange(flow_mod(match(), output(NORMAL)))
        lab.ports[1].send(FRAME)  # the destination is unknown
        controller.settle()
        assert lab.received() == {2: [FRAME], 3: [FRAME], 4: [FRAME]}
        lab.ports[2].send(answer)  # to a station seen on port 1
        controller.settle()
        assert lab.received() == {1: [answer]}
        lab.ports[1].send(FRAME)
        controller.settle()
        assert lab.received() == {2: [FRAME]}

    def test_the_normal_port_follows_a_station_that_moves(self, lab: Lab, controller: Controller) -> None:
        to_station = b"\x02\0\0\0\0\xcc" + FRAME[6:12]
        controller.exchange(flow_mod(match(), output(NORMAL)))
        for port in (1, 3):
            lab.ports[port].send(FRAME)
        controller.settle()
        lab.received()
        lab.ports[2].send(to_station[6:] + to_station[:6] + FRAME[12:])
        controller.settle()
        assert list(lab.received()) == [3]

    def test_the_normal_port_works_in_packet_out(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(FRAME, output(NORMAL))) == []
        assert list(lab.received()) == [1, 2, 3, 4]

    def test_flooding_leaves_out_the_ingress_port(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(FRAME, output(FLOOD), in_port=2)) == []
        assert list(lab.received()) == [1, 3, 4]
