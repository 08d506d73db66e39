"""The paper's Figure 1: two agents that treat a packet_out alike, but for the controller port."""

from __future__ import annotations

import struct

import pytest

from tests.agents.lab import (
    ALL,
    BAD_ACTION_LEN,
    BAD_ACTION_TYPE,
    BAD_LEN,
    BAD_OUT_PORT,
    BAD_TYPE,
    BUFFER_UNKNOWN,
    CONTROLLER,
    ECHO_REPLY,
    ECHO_REQUEST,
    FEATURES_REPLY,
    FEATURES_REQUEST,
    FLOW_MOD,
    HELLO,
    HELLO_FAILED,
    NO_BUFFER,
    NONE,
    PACKET_IN,
    PACKET_OUT,
    Controller,
    Lab,
    Message,
    output,
    packet_out,
    set_vlan_vid,
)

FRAME = bytes.fromhex("0200000000bb0200000000aa88b5") + bytes(46)


@pytest.fixture(params=["figure1-agent1", "figure1-agent2"])
def agent(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_controller_port_is_the_difference(agent: str, lab: Lab, controller: Controller) -> None:
    message = packet_out(FRAME, output(CONTROLLER), in_port=3)
    if agent == "figure1-agent1":
        (packet_in,) = controller.exchange(message)
        assert packet_in.type == PACKET_IN
        assert packet_in.body == struct.pack("!IHHBx", NO_BUFFER, len(FRAME), 3, 1) + FRAME
    else:
        assert controller.error(message) == BAD_OUT_PORT
    assert lab.received() == {}


@pytest.mark.parametrize("port", [1, 4])
def test_a_port_forwards(lab: Lab, controller: Controller, port: int) -> None:
    assert controller.exchange(packet_out(FRAME, output(port))) == []
    assert lab.received() == {port: [FRAME]}


@pytest.mark.parametrize("port", [0, 5, 24])
def test_a_port_that_may_come_later_drops(lab: Lab, controller: Controller, port: int) -> None:
    assert controller.exchange(packet_out(FRAME, output(port))) == []
    assert lab.received() == {}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        *[(packet_out(FRAME, output(port)), BAD_OUT_PORT) for port in (25, 0xFF00, ALL, NONE)],
        (packet_out(FRAME, output(1), buffer_id=1), BUFFER_UNKNOWN),
        (packet_out(FRAME, set_vlan_vid(1)), BAD_ACTION_TYPE),
        (packet_out(FRAME, b"\0\0\0\4"), BAD_ACTION_LEN),
        (packet_out(FRAME, struct.pack("!HHI", 0, 0, 0)), BAD_ACTION_LEN),
        (Message(PACKET_OUT, 5, bytes(7)), BAD_LEN),
        (Message(PACKET_OUT, 5, struct.pack("!IHH", NO_BUFFER, 1, 8)), BAD_LEN),
        (Message(FLOW_MOD, 5, bytes(64)), BAD_TYPE),
    ],
)
def test_errors(controller: Controller, message: Message, error: tuple[int, int]) -> None:
    assert controller.error(message) == error


def test_the_rest_of_the_control_channel(lab: Lab, controller: Controller) -> None:
    assert controller.answer(Message(ECHO_REQUEST, 77, b"data")) == Message(ECHO_REPLY, 77, b"data")
    features = controller.answer(Message(FEATURES_REQUEST, 8, b""))
    assert (features.type, len(features.body)) == (FEATURES_REPLY, 24 + 4 * 48)
    lab.ports[2].send(FRAME)
    assert [message.body[10:] for message in controller.settle()] == [FRAME]
    stranger = lab.connect()
    stranger.receive()
    stranger.send(Message(HELLO, 5, b"", version=0))
    assert stranger.receive().error == HELLO_FAILED
    with pytest.raises(EOFError):
        stranger.receive()
