"""Both switches as the specification wants them: the messages of a control connection, one by one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.lab import (
    BAD_ACTION_LEN,
    BAD_ACTION_TYPE,
    BAD_ACTION_VENDOR,
    BAD_HW_ADDR,
    BAD_LEN,
    BAD_PORT,
    BAD_TYPE,
    BAD_VENDOR,
    BAD_VERSION,
    BARRIER_REPLY,
    BARRIER_REQUEST,
    CONTROLLER,
    ECHO_REPLY,
    ECHO_REQUEST,
    ERROR,
    FEATURES_REPLY,
    FEATURES_REQUEST,
    FLOOD,
    FLOW_MOD,
    GET_CONFIG_REPLY,
    GET_CONFIG_REQUEST,
    HELLO,
    HELLO_FAILED,
    LOCAL,
    NO_BUFFER,
    NONE,
    PACKET_IN,
    PACKET_OUT,
    PORT_MOD,
    PORT_STATUS,
    QUEUE_BAD_PORT,
    QUEUE_GET_CONFIG_REPLY,
    QUEUE_GET_CONFIG_REQUEST,
    SET_CONFIG,
    STATS_REPLY,
    TABLE,
    VENDOR,
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
    stats_request,
    vendor_action,
)

FRAME = bytes.fromhex("0200000000bb0200000000aa88b5") + bytes(range(186))
NO_FLOOD, NO_FWD, PORT_DOWN, NO_RECV, NO_PACKET_IN = 1 << 4, 1 << 5, 1 << 0, 1 << 2, 1 << 6


@pytest.fixture
def lab(tmp_path: Path, agent: str) -> Iterator[Lab]:
    with running(Lab(tmp_path, [binary(agent)], ["--dpid=00deadbeef"])) as started:
        yield started


def set_config(flags: int, miss_send_len: int) -> Message:
    return Message(SET_CONFIG, 3, struct.pack("!HH", flags, miss_send_len))


def queue_get_config(port: int) -> Message:
    return Message(QUEUE_GET_CONFIG_REQUEST, 9, struct.pack("!Hxx", port))


def port_mod(port: int, config: int, mask: int, address: bytes | None = None) -> Message:
    address = address or bytes([2, 0, 0, 0, 0, port])
    return Message(PORT_MOD, 4, struct.pack("!H6sIII4x", port, address, config, mask, 0))


class TestHandshake:
    @pytest.mark.parametrize("version", [1, 2, 4, 255])
    def test_the_lower_version_is_spoken(self, lab: Lab, version: int) -> None:
        controller = lab.connect()
        assert controller.receive() == Message(HELLO, 0, b"")
        controller.send(Message(HELLO, 5, b"a body is ignored", version))
        assert controller.answer(Message(ECHO_REQUEST, 6, b"")) == Message(ECHO_REPLY, 6, b"")

    def test_a_version_below_ours_is_refused_in_words(self, lab: Lab) -> None:
        controller = lab.connect()
        controller.receive()
        controller.send(Message(HELLO, 5, b"", version=0))
        refusal = controller.receive()
        assert (refusal.type, refusal.xid, refusal.error) == (ERROR, 5, HELLO_FAILED)
        assert b"OpenFlow 1.0" in refusal.body
        with pytest.raises(EOFError):
            controller.receive()

    def test_the_first_message_must_be_a_hello(self, lab: Lab) -> None:
        controller = lab.connect()
        controller.receive()
        controller.send(Message(FEATURES_REQUEST, 5, b""))
        assert controller.receive().error == HELLO_FAILED
        with pytest.raises(EOFError):
            controller.receive()

    def test_a_second_hello_changes_nothing(self, controller: Controller) -> None:
        assert controller.exchange(Message(HELLO, 2, b""), Message(HELLO, 2, b"", version=4)) == []


class TestSimpleRequests:
    @pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 200])
    def test_echo(self, controller: Controller, data: bytes) -> None:
        assert controller.answer(Message(ECHO_REQUEST, 77, data)) == Message(ECHO_REPLY, 77, data)

    def test_features(self, controller: Controller) -> None:
        reply = controller.answer(Message(FEATURES_REQUEST, 8, b""))
        assert reply.type == FEATURES_REPLY
        dpid, buffers, tables, capabilities, actions = struct.unpack_from("!QIB3xII", reply.body)
        assert (dpid, buffers, tables, capabilities, actions) == (0xDEADBEEF, 256, 1, 0xC7, 0xFFF)
        ports = [struct.unpack_from("!H6s16s", reply.body, offset) for offset in range(24, len(reply.body), 48)]
        names = [(number, address.hex(":"), name.rstrip(b"\0")) for number, address, name in ports]
        assert names == [
            (1, "02:00:00:00:00:01", b"port1"),
            (2, "02:00:00:00:00:02", b"port2"),
            (3, "02:00:00:00:00:03", b"port3"),
            (4, "02:00:00:00:00:04", b"port4"),
            (LOCAL, "02:00:00:00:00:00", b"local"),
        ]

    def test_configuration(self, controller: Controller) -> None:
        def configuration() -> tuple[int, int]:
            reply = controller.answer(Message(GET_CONFIG_REQUEST, 2, b""))
            assert reply.type == GET_CONFIG_REPLY
            flags, miss_send_len = struct.unpack("!HH", reply.body)
            return flags, miss_send_len

        assert configuration() == (0, 128)
        assert controller.exchange(set_config(1, 55)) == []
        assert configuration() == (1, 55)
        controller.exchange(set_config(2, 66))  # cannot reassemble
        assert configuration() == (1, 66)

    def test_barrier(self, controller: Controller) -> None:
        controller.send(Message(BARRIER_REQUEST, 0xFFFFFFFF, b""))
        assert controller.receive() == Message(BARRIER_REPLY, 0xFFFFFFFF, b"")

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            (Message(FEATURES_REQUEST, 5, b"", version=4), BAD_VERSION),
            (Message(22, 5, b""), BAD_TYPE),
            (Message(255, 5, bytes(100)), BAD_TYPE),
            (Message(PACKET_IN, 5, bytes(12)), BAD_TYPE),
            (Message(VENDOR, 5, b"\0\0\x23\x20"), BAD_VENDOR),
            (Message(VENDOR, 5, b""), BAD_LEN),
            (Message(SET_CONFIG, 5, b"\0\0\0"), BAD_LEN),
            (Message(PACKET_OUT, 5, bytes(7)), BAD_LEN),
            (Message(PACKET_OUT, 5, struct.pack("!IHH", NO_BUFFER, 1, 8)), BAD_LEN),
            (Message(FLOW_MOD, 5, bytes(63)), BAD_LEN),
            (Message(PORT_MOD, 5, bytes(23)), BAD_LEN),
            (packet_out(FRAME, struct.pack("!HHI", 12, 8, 0)), BAD_ACTION_TYPE),
            (packet_out(FRAME, vendor_action()), BAD_ACTION_VENDOR),
            (packet_out(FRAME, struct.pack("!HHI", 0, 0, 0)), BAD_ACTION_LEN),
            (packet_out(FRAME, struct.pack("!HHI", 0, 16, 0)), BAD_ACTION_LEN),
            (packet_out(FRAME, struct.pack("!HHI", 4, 8, 0)), BAD_ACTION_LEN),
            (packet_out(FRAME, b"\0\0\0\4"), BAD_ACTION_LEN),
            (flow_mod(match(), output(1), b"\0\0\0\4"), BAD_ACTION_LEN),
            (port_mod(9, 0, 0), BAD_PORT),
            (port_mod(1, 0, 0, address=bytes.fromhex("020000000099")), BAD_HW_ADDR),
            (queue_get_config(9), QUEUE_BAD_PORT),
            (queue_get_config(NONE), QUEUE_BAD_PORT),
        ],
    )
    def test_errors(self, controller: Controller, message: Message, error: tuple[int, int]) -> None:
        assert controller.error(message) == error

    def test_errors_are_not_answered(self, controller: Controller) -> None:
        assert (
            controller.exchange(Message(ERROR, 1, bytes(4)), Message(ERROR, 1, b""), Message(ECHO_REPLY, 1, b"")) == []
        )


class TestPacketIn:
    def test_a_miss_is_buffered_and_cut_to_miss_send_len(self, lab: Lab, controller: Controller) -> None:
        lab.ports[2].send(FRAME)
        (packet_in,) = controller.settle()
        buffer_id, total_len, in_port, reason = struct.unpack_from("!IHHB", packet_in.body)
        assert (packet_in.type, total_len, in_port, reason) == (PACKET_IN, 200, 2, 0)
        assert buffer_id != NO_BUFFER
        assert packet_in.body[10:] == FRAME[:128]

    @pytest.mark.parametrize("limit", [0, 1, 199, 200, 0xFFFF])
    def test_max_len_of_an_output_action(self, lab: Lab, controller: Controller, limit: int) -> None:
        controller.exchange(flow_mod(match(), output(CONTROLLER, limit)))
        lab.ports[3].send(FRAME)
        (packet_in,) = controller.settle()
        assert struct.unpack_from("!HHB", packet_in.body, 4) == (200, 3, 1)
        assert packet_in.body[10:] == FRAME[:limit]

    def test_a_buffer_is_used_once(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME)
        (packet_in,) = controller.settle()
        (buffer_id,) = struct.unpack_from("!I", packet_in.body)
        release = packet_out(b"", output(3), buffer_id=buffer_id, in_port=1)
        assert controller.exchange(release) == []
        assert lab.received() == {3: [FRAME]}
        controller.exchange(release)  # answered with an error or not at all, by the switch's habit
        assert lab.received() == {}

    def test_a_flow_mod_releases_the_packet_through_the_new_flow(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME)
        (packet_in,) = controller.settle()
        (buffer_id,) = struct.unpack_from("!I", packet_in.body)
        assert controller.exchange(flow_mod(match(in_port=1), output(4), buffer_id=buffer_id)) == []
        assert lab.received() == {4: [FRAME]}

    def test_when_all_buffers_are_taken_packets_come_whole(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(set_config(0, 0))
        for _ in range(257):
            lab.ports[1].send(FRAME)
        *copies, last = controller.settle()
        assert {len(copy.body) for copy in copies} == {10}
        assert len({copy.body[:4] for copy in copies}) == 256
        assert last.body[:4] == struct.pack("!I", NO_BUFFER)
        assert last.body[10:] == FRAME

    def test_every_controller_gets_it(self, lab: Lab, controller: Controller) -> None:
        other = lab.controller()
        other.exchange()
        lab.ports[1].send(FRAME)
        seen = controller.settle()
        assert [message.type for message in seen] == [PACKET_IN]
        assert other.settle() == seen

    def test_without_a_controller_nothing_is_buffered(self, lab: Lab) -> None:
        lab.connect().receive()  # one that has not said hello is none
        lab.ports[1].send(FRAME)
        controller = lab.controller()
        assert controller.settle() == []

    def test_packet_out_to_the_table_takes_the_flow_or_comes_back(self, lab: Lab, controller: Controller) -> None:
        (missed,) = controller.exchange(packet_out(FRAME, output(TABLE), in_port=3))
        assert struct.unpack_from("!HB", missed.body, 6) == (3, 0)
        controller.exchange(flow_mod(match(in_port=3), output(1)))
        assert controller.exchange(packet_out(FRAME, output(TABLE), in_port=3)) == []
        assert lab.received() == {1: [FRAME]}

    def test_runts_go_nowhere(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME[:13])
        assert controller.settle() == []
        assert controller.exchange(packet_out(FRAME[:13], output(2)), packet_out(b"", output(FLOOD))) == []
        assert lab.received() == {}


class TestPortMod:
    def test_a_change_is_announced_to_all_controllers(self, lab: Lab, controller: Controller) -> None:
        other = lab.controller()
        other.exchange()
        (status,) = controller.exchange(port_mod(2, NO_FLOOD, NO_FLOOD))
        assert (status.type, status.body[0]) == (PORT_STATUS, 2)
        assert struct.unpack_from("!H22xI", status.body, 8) == (2, NO_FLOOD)
        assert other.exchange() == [status]

    def test_no_change_is_not_announced(self, controller: Controller) -> None:
        assert controller.exchange(port_mod(2, NO_FLOOD, 0), port_mod(2, 0, NO_FLOOD), port_mod(2, 2, 2)) == []

    def test_no_flood(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(port_mod(2, NO_FLOOD, NO_FLOOD), packet_out(FRAME, output(FLOOD), in_port=1))
        assert list(lab.received()) == [3, 4]

    @pytest.mark.parametrize("bit", [NO_FWD, PORT_DOWN])
    def test_no_forwarding(self, lab: Lab, controller: Controller, bit: int) -> None:
        controller.exchange(port_mod(2, bit, bit), packet_out(FRAME, output(2)))
        assert lab.received() == {}

    @pytest.mark.parametrize("bit", [NO_RECV, PORT_DOWN, NO_PACKET_IN])
    def test_no_receiving(self, lab: Lab, controller: Controller, bit: int) -> None:
        controller.exchange(port_mod(2, bit, bit))
        lab.ports[2].send(FRAME)
        assert controller.settle() == []

    def test_spanning_tree_frames_have_a_bit_of_their_own(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(port_mod(2, NO_RECV, NO_RECV))
        lab.ports[2].send(bytes.fromhex("0180c2000000") + FRAME[6:])
        assert [message.type for message in controller.settle()] == [PACKET_IN]


class TestStatistics:
    def test_description(self, controller: Controller) -> None:
        reply = controller.answer(stats_request(0))
        assert (reply.type, len(reply.body)) == (STATS_REPLY, 4 + 1056)

    def test_table(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(in_port=1)))
        for port in (1, 2):
            lab.ports[port].send(FRAME)
        controller.settle()
        body = controller.answer(stats_request(3)).body[4:]
        assert struct.unpack_from("!I4xIQQ", body, 36) == ((1 << 22) - 1, 1, 2, 1)

    def test_ports_and_queues(self, lab: Lab, controller: Controller) -> None:
        lab.ports[1].send(FRAME)
        controller.settle()
        controller.exchange(packet_out(FRAME, enqueue(2, 0)))
        assert lab.received() == {2: [FRAME]}
        (one,) = struct.iter_unpack("!H6x12Q", controller.answer(stats_request(4, struct.pack("!H6x", 1))).body[4:])
        assert one[:5] == (1, 1, 0, 200, 0)
        every = list(
            struct.iter_unpack("!H6x12Q", controller.answer(stats_request(4, struct.pack("!H6x", NONE))).body[4:])
        )
        assert [entry[0] for entry in every] == [1, 2, 3, 4, LOCAL]
        reply = controller.answer(queue_get_config(2))
        assert (reply.type, reply.body) == (QUEUE_GET_CONFIG_REPLY, struct.pack("!H6xIHxx", 2, 0, 8))
        queues = controller.answer(stats_request(5, struct.pack("!HxxI", 0xFFFC, 0xFFFFFFFF))).body[4:]
        assert (2, 0, 200, 1, 0) in struct.iter_unpack("!HxxIQQQ", queues)

    def test_aggregate_and_the_filters(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(in_port=1), output(2)), flow_mod(match(in_port=2), enqueue(3, 0)))
        lab.ports[1].send(FRAME)
        controller.settle()

        def aggregate(**filters: int) -> tuple[int, ...]:
            out_port = filters.pop("out_port", NONE)
            reply = controller.answer(flow_stats_request(2, match(**filters), out_port=out_port))
            return struct.unpack("!QQIxxxx", reply.body[4:])

        assert aggregate() == (1, 200, 2)
        assert aggregate(in_port=2) == (0, 0, 1)
        assert aggregate(out_port=2) == (1, 200, 1)
        assert aggregate(out_port=3) == (0, 0, 1)
        assert aggregate(out_port=4) == (0, 0, 0)

    def test_many_flows_come_in_several_messages(self, controller: Controller) -> None:
        controller.exchange(*[flow_mod(match(dl_vlan=vlan), output(1)) for vlan in range(1000)])
        replies = controller.exchange(flow_stats_request())
        assert [reply.body[3] for reply in replies] == [1] * (len(replies) - 1) + [0]
        assert len(replies) > 1
        entries = [reply.body[offset : offset + 96] for reply in replies for offset in range(4, len(reply.body), 96)]
        assert {struct.unpack_from("!H", entry, 4 + 18)[0] for entry in entries} == set(range(1000))
