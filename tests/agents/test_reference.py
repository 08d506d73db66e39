"""The habits of reference where the specification leaves room, by the headings of section 5.1.2 of the paper."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.lab import (
    BAD_ACTION_TYPE,
    BAD_EMERG_TIMEOUT,
    BAD_OUT_PORT,
    BARRIER_REPLY,
    CONTROLLER,
    DELETE,
    EMERG,
    FEATURES_REPLY,
    FEATURES_REQUEST,
    HELLO,
    IN_PORT,
    LOCAL,
    NONE,
    NORMAL,
    PACKET_IN,
    PATIENCE,
    PORT_MOD,
    PORT_STATUS,
    QUEUE_GET_CONFIG_REPLY,
    QUEUE_GET_CONFIG_REQUEST,
    STATS_REPLY,
    TABLE,
    Controller,
    Lab,
    Message,
    Port,
    binary,
    enqueue,
    flow_mod,
    flow_stats_request,
    match,
    output,
    packet_out,
    set_dl_src,
    set_nw_tos,
    set_vlan_pcp,
    set_vlan_vid,
    stats_request,
)

IP_FRAME = bytes.fromhex(
    "0200000000bb0200000000aa0800" "4503001c00010000401166cb" "0a000001" "0a000002" "03e8005000080000"
)  # fmt: skip
FRAME = bytes.fromhex("0200000000bb0200000000aa88b5") + bytes(46)


@pytest.fixture
def agent() -> str:
    return "reference"


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Lab]:
    """A switch that will not survive the test."""
    lab = Lab(tmp_path, [binary("reference")])
    try:
        yield lab
    finally:
        lab.stop()


def sent_out(lab: Lab, controller: Controller, frame: bytes, *actions: bytes) -> bytes:
    """What a flow with these actions and an output makes of a frame."""
    assert controller.exchange(flow_mod(match(), *actions, output(2))) == []
    lab.ports[1].send(frame)
    assert controller.settle() == []
    ((changed,),) = lab.received().values()
    return changed


class TestPacketDroppedWhenActionIsInvalid:
    """Values that do not fit are made to fit."""

    @pytest.mark.parametrize(("vid", "fits"), [(0x1005, 5), (0xFFFF, 0xFFF), (0x0FFF, 0xFFF)])
    def test_vlan_vid_keeps_its_lower_12_bits(self, lab: Lab, controller: Controller, vid: int, fits: int) -> None:
        tagged = FRAME[:12] + struct.pack("!HH", 0x8100, fits) + FRAME[12:]
        assert sent_out(lab, controller, FRAME, set_vlan_vid(vid)) == tagged

    @pytest.mark.parametrize(("pcp", "fits"), [(8, 0), (0xFF, 7), (7, 7)])
    def test_vlan_pcp_keeps_its_lower_3_bits(self, lab: Lab, controller: Controller, pcp: int, fits: int) -> None:
        tagged = FRAME[:12] + struct.pack("!HH", 0x8100, fits << 13) + FRAME[12:]
        assert sent_out(lab, controller, FRAME, set_vlan_pcp(pcp)) == tagged

    @pytest.mark.parametrize(("tos", "fits"), [(1, 0x03), (0xFF, 0xFF), (0x20, 0x23)])
    def test_nw_tos_changes_only_its_upper_6_bits(
        self, lab: Lab, controller: Controller, tos: int, fits: int
    ) -> None:
        assert sent_out(lab, controller, IP_FRAME, set_nw_tos(tos))[15] == fits

    def test_in_a_packet_out_too(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(IP_FRAME, set_nw_tos(0xFE), output(2))) == []
        ((changed,),) = lab.received().values()
        assert changed[15] == 0xFF


class TestForwardingAPacketToAnInvalidPort:
    def test_a_rule_back_to_its_own_ingress_port_is_an_error(self, controller: Controller) -> None:
        assert controller.error(flow_mod(match(in_port=1), output(1))) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(in_port=9), enqueue(9, 0))) == BAD_OUT_PORT
        assert controller.flows() == []
        assert controller.exchange(flow_mod(match(in_port=1), output(IN_PORT)), flow_mod(match(), output(1))) == []

    @pytest.mark.parametrize("port", [0, 5, 256, 0xFEFF, 0xFF00, 0xFFF7])
    def test_no_port_is_too_high(self, lab: Lab, controller: Controller, port: int) -> None:
        assert controller.exchange(packet_out(FRAME, output(port)), flow_mod(match(), output(port))) == []
        assert lab.received() == {}
        assert len(controller.flows()) == 1

    def test_ports_that_will_never_be_valid_are_errors(self, controller: Controller) -> None:
        assert controller.error(packet_out(FRAME, output(NONE))) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), output(NONE))) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), output(TABLE))) == BAD_OUT_PORT  # it could find itself for ever
        assert controller.error(flow_mod(match(), enqueue(0xFF00, 0))) == BAD_OUT_PORT

    def test_a_packet_out_does_not_go_back_where_it_came_from(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(FRAME, output(2), output(3), in_port=2)) == []
        assert list(lab.received()) == [3]


class TestLackOfErrorMessages:
    def test_packet_out_with_an_unknown_buffer_is_not_answered(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(FRAME, output(2), buffer_id=12345)) == []
        assert lab.received() == {}

    def test_flow_mod_with_an_unknown_buffer_installs_the_flow(self, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), output(2), buffer_id=12345)) == []
        assert len(controller.flows()) == 1

    def test_the_id_of_a_used_buffer_does_not_fetch_the_next_packet(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME)
        (first,) = controller.settle()
        (first_id,) = struct.unpack_from("!I", first.body)
        controller.exchange(packet_out(b"", output(2), buffer_id=first_id))
        for _ in range(256):  # until the same buffer is used again
            lab.ports[1].send(FRAME)
        controller.settle()
        lab.received()
        assert controller.exchange(packet_out(b"", output(2), buffer_id=first_id)) == []
        assert lab.received() == {}


class TestOpenFlowAgentTerminatesWithAnError:
    @pytest.mark.parametrize(
        ("message", "status"),
        [
            (packet_out(FRAME, output(CONTROLLER, 0xFFFF)), -signal.SIGABRT),
            (packet_out(FRAME, output(2), output(CONTROLLER)), -signal.SIGABRT),
            (packet_out(FRAME, set_vlan_vid(5), output(2)), -signal.SIGABRT),
            (packet_out(FRAME, set_vlan_pcp(5), output(2)), -signal.SIGABRT),
            (Message(QUEUE_GET_CONFIG_REQUEST, 9, struct.pack("!Hxx", 0)), -signal.SIGSEGV),
        ],
        ids=["packet_out to the controller", "and a port", "set_vlan_vid", "set_vlan_pcp", "queue config of port 0"],
    )
    def test_crashes(self, doomed: Lab, message: Message, status: int) -> None:
        controller = doomed.controller()
        controller.exchange()
        with pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)):
            controller.exchange(message)
        assert doomed.process.wait(PATIENCE) == status

    def test_a_packet_out_of_a_buffered_packet_is_safe(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME)
        (packet_in,) = controller.settle()
        (buffer_id,) = struct.unpack_from("!I", packet_in.body)
        release = packet_out(b"", output(CONTROLLER, 99), set_vlan_vid(5), output(2), buffer_id=buffer_id)
        assert [answer.type for answer in controller.exchange(release)] == [PACKET_IN]
        assert lab.received() == {2: [FRAME[:12] + bytes.fromhex("81000005") + FRAME[12:]]}

    def test_a_flow_may_do_the_same(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(), set_vlan_vid(5), output(CONTROLLER, 99)))
        lab.ports[1].send(FRAME)
        assert [answer.type for answer in controller.settle()] == [PACKET_IN]
        assert [answer.type for answer in controller.exchange(packet_out(FRAME, output(TABLE)))] == [PACKET_IN]

    def test_queue_configuration_of_the_local_port(self, controller: Controller) -> None:
        reply = controller.answer(Message(QUEUE_GET_CONFIG_REQUEST, 9, struct.pack("!Hxx", LOCAL)))
        assert (reply.type, reply.body) == (QUEUE_GET_CONFIG_REPLY, struct.pack("!H6xIHxx", LOCAL, 0, 8))

    @pytest.mark.parametrize(
        "message",
        [
            stats_request(5, struct.pack("!HxxI", 0, 0)),
            stats_request(4, struct.pack("!H6x", 0)),
            packet_out(FRAME, enqueue(0, 0)),
        ],
    )
    def test_port_0_does_no_harm_elsewhere(self, controller: Controller, message: Message) -> None:
        assert controller.exchange(message) == []


class TestDifferentOrderOfMessageValidation:
    def test_the_buffer_is_looked_for_before_actions_are_validated(self, controller: Controller) -> None:
        assert controller.exchange(packet_out(b"", output(NONE), buffer_id=12345)) == []
        assert controller.error(packet_out(b"", output(NONE))) == BAD_OUT_PORT

    def test_in_a_flow_mod_actions_come_first(self, controller: Controller) -> None:
        assert controller.error(flow_mod(match(), output(NONE), buffer_id=12345)) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), output(NONE), flags=EMERG, hard=1)) == BAD_OUT_PORT
        assert controller.error(flow_mod(match(), struct.pack("!HHI", 12, 8, 0))) == BAD_ACTION_TYPE

    def test_a_delete_does_not_look_at_actions(self, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), output(NONE), command=DELETE)) == []


class TestStatisticsRequestsSilentlyIgnored:
    @pytest.mark.parametrize(
        "request_",
        [
            *[stats_request(kind) for kind in (6, 7, 0x1000, 0xFFFE)],
            stats_request(0xFFFF, bytes(4)),
            *[stats_request(kind, bytes(1)) for kind in (1, 2, 4, 5)],
            stats_request(4, struct.pack("!H6x", 5)),
            flow_stats_request(table=1),
            flow_stats_request(2, table=1),
            stats_request(5, struct.pack("!HxxI", 9, 0)),
            stats_request(5, struct.pack("!HxxI", 1, 1)),
        ],
    )
    def test_what_it_cannot_answer(self, controller: Controller, request_: Message) -> None:
        assert controller.exchange(request_) == []


class TestMissingFeatures:
    def test_emergency_flows_have_a_table_of_their_own(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), output(2), flags=EMERG)) == []
        assert controller.flows() == []
        reply = controller.answer(flow_stats_request(table=0xFE))
        assert (reply.type, len(reply.body)) == (STATS_REPLY, 4 + 88 + 8)
        lab.ports[1].send(FRAME)
        assert [message.type for message in controller.settle()] == [PACKET_IN]  # there is no emergency
        controller.exchange(flow_mod(match(), command=DELETE, flags=EMERG))
        assert controller.answer(flow_stats_request(table=0xFE)).body[4:] == b""

    @pytest.mark.parametrize("timeouts", [{"idle": 1}, {"hard": 1}])
    def test_emergency_flows_do_not_time_out(self, controller: Controller, timeouts: dict[str, int]) -> None:
        assert controller.error(flow_mod(match(), output(2), flags=EMERG, **timeouts)) == BAD_EMERG_TIMEOUT

    def test_the_normal_port_is_not_supported(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), output(NORMAL)), packet_out(FRAME, output(NORMAL))) == []
        lab.ports[1].send(FRAME)
        assert controller.settle() == []
        assert lab.received() == {}


class TestEmergency:
    """A switch that connects out and loses its controller falls back on its emergency flows."""

    def test_without_a_controller_the_emergency_flows_are_in_force(self, tmp_path: Path) -> None:
        ports = {number: Port(tmp_path, number) for number in (1, 2, 3)}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(tmp_path / "controller"))
            listener.listen()
            listener.settimeout(PATIENCE)
            options = [port.option for port in ports.values()]
            process = subprocess.Popen([binary("reference"), f"--connect=unix:{tmp_path}/controller", *options])
            try:
                controller = Controller(listener.accept()[0]).handshake()
                controller.exchange(flow_mod(match(), output(2)), flow_mod(match(), output(3), flags=EMERG))
                ports[1].send(FRAME)
                controller.settle()
                assert (ports[2].received(), ports[3].received()) == ([FRAME], [])
                controller.socket.close()
                connection, _ = listener.accept()  # it comes back, but the hello stays out for now
                ports[1].send(FRAME)
                assert ports[3].next() == FRAME
                controller = Controller(connection).handshake()
                assert controller.flows() == []  # the normal flows are gone
                ports[1].send(FRAME)
                assert [message.type for message in controller.settle()] == [PACKET_IN]
                controller.socket.close()
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0
                for port in ports.values():
                    port.socket.close()


class TestLengths:
    """Bytes behind the fixed part of a message are not an error."""

    def test_a_longer_message_is_understood(self, lab: Lab, controller: Controller) -> None:
        assert controller.answer(Message(FEATURES_REQUEST, 5, b"x")).type == FEATURES_REPLY
        assert controller.answer(Message(18, 5, b"xyz")) == Message(BARRIER_REPLY, 5, b"")
        body = struct.pack("!H6sIII4x", 1, b"\x02\0\0\0\0\x01", 16, 16, 0) + b"x"
        (status,) = controller.exchange(Message(PORT_MOD, 5, body))
        assert status.type == PORT_STATUS

    def test_more_actions_than_a_statistics_reply_can_hold(self, controller: Controller) -> None:
        assert controller.exchange(flow_mod(match(), *[output(1)] * 8179)) == []
        assert len(controller.flows()) == 1
        assert controller.error(flow_mod(match(), *[output(1)] * 8180)) == (2, 7)

    def test_a_short_packet_out_may_be_edited(self, lab: Lab, controller: Controller) -> None:
        assert controller.exchange(packet_out(b"x", set_dl_src(b"abcdef"), set_nw_tos(4), output(2))) == []
        assert lab.received() == {}

    def test_a_hello_of_another_version_later_is_ignored(self, controller: Controller) -> None:
        assert controller.exchange(Message(HELLO, 2, b"", version=0)) == []
