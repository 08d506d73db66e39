"""The layout of OpenFlow 1.0: what we build is byte for byte what os-ken builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from soft.errors import SoftError
from soft.openflow.layout import Field, Names, Pad, layout_of, size_of
from soft.openflow.openflow10 import ACTION_TYPES, FLOW_FLAGS, MATCH, OPENFLOW10, PORTS
from soft.scenarios import loader
from soft.scenarios.model import Send


def built(step: str) -> bytes:
    """The bytes of a step as a scenario writes it."""
    (send,) = loader.parse(f'name = "x"\n[[step]]\nxid = 77\n{step}\n', "test").bind({})
    assert isinstance(send, Send)
    data = send.payload.concrete()
    assert data is not None
    return data


def serialised(make: Callable[[Any, Any], Any]) -> bytes:
    """The bytes of os-ken's message."""
    from os_ken.ofproto import ofproto_protocol

    datapath = ofproto_protocol.ProtocolDesc(version=1)
    message = make(datapath, datapath.ofproto_parser)
    message.set_xid(77)
    message.serialize()
    return bytes(message.buf)


def match(parser: Any) -> Any:
    return parser.OFPMatch(
        in_port=3, dl_src="02:00:00:00:00:01", dl_dst="02:00:00:00:00:02", dl_vlan=7, dl_vlan_pcp=5, dl_type=0x800,
        nw_tos=8, nw_proto=6, nw_src="10.0.0.1", nw_dst="10.1.0.0", nw_dst_mask=16, tp_src=1025, tp_dst=80,
    )  # fmt: skip


MATCH_TEXT = """{ in_port = 3, dl_src = "02:00:00:00:00:01", dl_dst = "02:00:00:00:00:02", dl_vlan = 7,
dl_vlan_pcp = 5, dl_type = "ip", nw_tos = 8, nw_proto = "tcp", nw_src = "10.0.0.1", nw_dst = "10.1.0.0", tp_src = 1025,
tp_dst = 80, wildcards = { nw_dst = 16 } }""".replace("\n", " ")

ACTIONS_TEXT = """[
    { type = "output", port = "controller", max_len = 64 },
    { type = "set_vlan_vid", vlan_vid = 5 },
    { type = "set_vlan_pcp", vlan_pcp = 3 },
    { type = "strip_vlan" },
    { type = "set_dl_src", dl_addr = "02:00:00:00:00:03" },
    { type = "set_dl_dst", dl_addr = "02:00:00:00:00:04" },
    { type = "set_nw_src", nw_addr = "10.0.0.3" },
    { type = "set_nw_dst", nw_addr = "10.0.0.4" },
    { type = "set_nw_tos", nw_tos = 4 },
    { type = "set_tp_src", tp_port = 1 },
    { type = "set_tp_dst", tp_port = 2 },
    { type = "enqueue", port = 4, queue_id = 9 },
]"""


def actions(p: Any) -> list[Any]:
    return [
        p.OFPActionOutput(0xFFFD, 64),
        p.OFPActionVlanVid(5),
        p.OFPActionVlanPcp(3),
        p.OFPActionStripVlan(),
        p.OFPActionSetDlSrc(b"\2\0\0\0\0\3"),
        p.OFPActionSetDlDst(b"\2\0\0\0\0\4"),
        p.OFPActionSetNwSrc("10.0.0.3"),
        p.OFPActionSetNwDst("10.0.0.4"),
        p.OFPActionSetNwTos(4),
        p.OFPActionSetTpSrc(1),
        p.OFPActionSetTpDst(2),
        p.OFPActionEnqueue(4, 9),
    ]


CASES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "hello": ('send = "hello"', lambda d, p: p.OFPHello(d)),
    "echo": ('send = "echo_request"\ndata = "616263"', lambda d, p: p.OFPEchoRequest(d, b"abc")),
    "features": ('send = "features_request"', lambda d, p: p.OFPFeaturesRequest(d)),
    "get_config": ('send = "get_config_request"', lambda d, p: p.OFPGetConfigRequest(d)),
    "set_config": (
        'send = "set_config"\nflags = "frag_drop"\nmiss_send_len = 99',
        lambda d, p: p.OFPSetConfig(d, 1, 99),
    ),
    "barrier": ('send = "barrier_request"', lambda d, p: p.OFPBarrierRequest(d)),
    "queue": (
        'send = "queue_get_config_request"\nport = 3',
        lambda d, p: p.OFPQueueGetConfigRequest(d, 3),
    ),
    "port_mod": (
        'send = "port_mod"\nport_no = 2\nhw_addr = "02:00:00:00:00:02"\nconfig = ["no_flood", "no_fwd"]\n'
        "mask = 0x7f\nadvertise = 5",
        lambda d, p: p.OFPPortMod(d, 2, "02:00:00:00:00:02", 48, 0x7F, 5),
    ),
    "packet_out": (
        f'send = "packet_out"\nbuffer_id = 7\nin_port = "local"\nactions = {ACTIONS_TEXT}',
        lambda d, p: p.OFPPacketOut(d, 7, 0xFFFE, actions(p)),
    ),
    "packet_out with a packet": (
        'send = "packet_out"\nactions = [{type = "output", port = 2}]\ndata = "ABCDEF"',
        lambda d, p: p.OFPPacketOut(d, 0xFFFFFFFF, 0xFFFF, [p.OFPActionOutput(2, 0xFFFF)], b"\xab\xcd\xef"),
    ),
    "flow_mod": (
        f'send = "flow_mod"\nmatch = {MATCH_TEXT}\ncookie = 5\ncommand = "modify_strict"\nidle_timeout = 1\n'
        f"hard_timeout = 2\npriority = 3\nbuffer_id = 4\nout_port = 5\n"
        f'flags = ["send_flow_rem", "emerg"]\nactions = {ACTIONS_TEXT}',
        lambda d, p: p.OFPFlowMod(d, match(p), 5, 2, 1, 2, 3, 4, 5, 5, actions(p)),
    ),
    "desc": (
        'send = "stats_request"\ntype = "desc"',
        lambda d, p: p.OFPDescStatsRequest(d, 0),
    ),
    "flow stats": (
        f'send = "stats_request"\ntype = "flow"\nmatch = {MATCH_TEXT}\ntable_id = 3\nout_port = 9',
        lambda d, p: p.OFPFlowStatsRequest(d, 0, match(p), 3, 9),
    ),
    "aggregate": (
        'send = "stats_request"\ntype = "aggregate"\nmatch = { dl_vlan = "none" }',
        lambda d, p: p.OFPAggregateStatsRequest(d, 0, p.OFPMatch(dl_vlan=0xFFFF), 0xFF, 0xFFFF),
    ),
    "table": ('send = "stats_request"\ntype = "table"', lambda d, p: p.OFPTableStatsRequest(d, 0)),
    "port": ('send = "stats_request"\ntype = "port"\nport_no = 3', lambda d, p: p.OFPPortStatsRequest(d, 0, 3)),
    "queue stats": (
        'send = "stats_request"\ntype = "queue"\nport_no = 3\nqueue_id = 5',
        lambda d, p: p.OFPQueueStatsRequest(d, 0, 3, 5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_is_what_os_ken_sends(name: str) -> None:
    text, make = CASES[name]
    assert built(text).hex() == serialised(make).hex()


def test_every_message_of_the_layout_is_compared() -> None:
    compared = {text.split('"')[1] for text, _ in CASES.values()}
    # Of these os-ken has its own forms; they are a code and bytes.
    assert set(OPENFLOW10.messages) - compared == {"echo_reply", "error", "vendor"}
    assert all(f'"{name}"' in ACTIONS_TEXT for name in OPENFLOW10.actions if name != "vendor")


def test_what_is_left_out_is_harmless() -> None:
    assert built('send = "flow_mod"') == serialised(
        lambda d, p: p.OFPFlowMod(d, p.OFPMatch(), 0, 0, priority=0x8000, actions=[])
    )
    assert built('send = "error"\ntype = "bad_action"\ncode = 3\ndata = "00"').hex() == "0101000d0000004d0002000300"
    assert built('send = "vendor"\nvendor = 0x2320\nbody = "01"').hex() == "0104000d0000004d0000232001"


def test_sizes_are_those_of_the_specification() -> None:
    assert size_of((MATCH,)) == 40
    sizes = {name: 4 + size_of(template.elements) for name, template in OPENFLOW10.actions.items()}
    long = {name for name, size in sizes.items() if size == 16}
    assert long == {"set_dl_src", "set_dl_dst", "enqueue"}
    assert {size for name, size in sizes.items() if name not in long} == {8}
    replies = {template.name: size_of(template.elements) for template in OPENFLOW10.replies.values()}
    assert (replies["features_reply"], replies["packet_in"]) == (24, 10)
    assert (replies["flow_removed"], replies["port_status"]) == (80, 56)


def test_names_are_taken_with_and_without_the_prefix() -> None:
    assert PORTS.value("OFPP_CONTROLLER") == PORTS.value("controller") == 0xFFFD
    assert PORTS.value("in-port") == 0xFFF8
    assert PORTS.value("controler") is None
    assert ACTION_TYPES.name(11) == "enqueue"
    assert ACTION_TYPES.name(12) is None


def test_flags_have_names_together() -> None:
    assert FLOW_FLAGS.name(5) == "send_flow_rem+emerg"
    assert FLOW_FLAGS.name(9) is None
    assert FLOW_FLAGS.name(0) is None


def test_a_version_without_a_layout_is_refused() -> None:
    assert layout_of("1.0") is OPENFLOW10
    with pytest.raises(SoftError, match=r"no message layout for OpenFlow '0\.9'"):
        layout_of("0.9")


def test_bits_add_up_to_bytes() -> None:
    assert size_of((Field("a", 3), Pad(1), Field("b", 12, names=Names("", {})))) == 2
