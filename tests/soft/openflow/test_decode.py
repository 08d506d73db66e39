"""Messages, packets and events as people read them; no bytes make it fail."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.openflow.decode import decoded, describe, describe_event, describe_message, event_dict
from soft.scenarios.loader import parse
from soft.scenarios.model import Probe, Send
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload

PORT = t.var("m0.actions.0.port", 16)
VLAN = t.var("m0.vlan", 16)


def message(kind: int, *parts: bytes | Term, xid: int = 5, version: int = 1) -> Payload:
    size = 8 + sum(len(p) if isinstance(p, bytes) else p.width // 8 for p in parts)
    return Payload((struct.pack("!BBHI", version, kind, size, xid), *parts))


def sent(step: str) -> Payload:
    """The payload of a step of a scenario."""
    scenario = parse(f'name = "x"\nsummary = "x"\nopenflow = "1.0"\n[[step]]\n{step}\n', "x.toml")
    (only,) = scenario.steps
    assert isinstance(only, Send | Probe)
    return only.payload


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (message(1, b"\0\1\0\6"), "error: bad_request/bad_len, xid 5"),
        (message(1, b"\0\3\0\1", b"ab"), "error: flow_mod_failed/overlap, quoting 2 bytes 6162, xid 5"),
        (message(1, b"\0\7\0\1"), "error: 7/1, xid 5"),
        (message(1, b"\0\1"), "error: cut off, xid 5"),
        (message(3), "echo_reply, xid 5"),
        (message(3, b"abc"), "echo_reply: 3 bytes, xid 5"),
        (message(0, version=4), "hello, xid 5, version 4"),
        (message(19), "barrier_reply, xid 5"),
        (message(8, b"\0\1\0\x80"), "get_config_reply: flags frag_drop, miss_send_len 128, xid 5"),
        (message(99, b"x"), "message of type 99, 9 bytes, xid 5"),
        (Payload.of(b"\1\2\0"), "fragment of a message, 3 bytes"),
        (Payload.of(message(3).evaluate({}) + b"x"), "echo_reply: 1 byte, xid 5, length field 8 but 9 bytes"),
        (
            message(10, b"\xff" * 4, struct.pack("!HHBB", 60, 1, 0, 0)),
            "packet_in: 60 bytes from port 1, no_match, unbuffered, xid 5",
        ),
        (
            message(17, struct.pack("!HH", 2, 0), struct.pack("!QQI4x", 0, 0, 3)),
            "stats_reply: aggregate, flow_count 3, xid 5",
        ),
        (message(17, struct.pack("!HH", 1, 1)), "stats_reply: flow, flags 1, 0 entries, xid 5"),
    ],
)
def test_messages(payload: Payload, line: str) -> None:
    assert describe_message(payload) == line


def test_a_flow_mod_of_a_scenario() -> None:
    payload = sent(
        'send = "flow_mod"\nmatch = { in_port = 1, dl_type = "ip", nw_src = "10.0.0.0", wildcards = { nw_src = 8 } }\n'
        'actions = [{ type = "set_vlan_vid", vlan_vid = 5 }, { type = "strip_vlan" }, { type = "output", port = 3 }]'
    )
    line = describe_message(payload)
    assert "match in_port=1,dl_type=ip,nw_src=10.0.0.0/24," in line
    assert "actions [set_vlan_vid:5, strip_vlan, output:3]" in line


def test_terms_show_as_the_inputs_they_come_from() -> None:
    payload = sent(
        'send = "packet_out"\nbuffer_id = "symbolic"\ndata = { packet = "tcp" }\n'
        'actions = [{ type = "output", port = "symbolic" }, { type = "symbolic", body = "symbolic" }]'
    )
    line = describe_message(payload)
    assert "buffer_id m0.buffer_id" in line
    assert "output:m0.actions.0.port,65535" in line
    assert "m0.actions.1.type(4 bytes with m0.actions.1.body)" in line
    assert "carrying TCP 10.0.0.1:1025 → 10.0.0.2:80, 60 bytes" in line


def test_a_match_whose_wildcards_are_inputs() -> None:
    line = describe_message(sent('send = "flow_mod"\nmatch = "symbolic"'))
    assert "in_port=m0.match.in_port unless m0.match.wildcards.in_port" in line


def test_a_length_that_is_an_input() -> None:
    length = t.var("m0.max_len", 16)
    quoted = Payload((b"\1\x0a", length, bytes(4), b"\xff" * 4, struct.pack("!HHBB", 60, 1, 1, 0), bytes(60)), length)
    assert describe_message(quoted).startswith("packet_in: 60 bytes from port 1, action, unbuffered, quoting ")
    assert "up to 60 bytes (f(m0.max_len))" in describe_message(quoted)


def test_events_and_their_json() -> None:
    frame = sent('probe = 1\npacket = "tcp"')
    events: list[Event] = [Crash(1, "SIGSEGV"), Close(1), Hang(2), Flood(3), Packet(0, 2, frame)]
    assert [describe_event(event) for event in events] == [
        "crash: SIGSEGV",
        "closes the control connection",
        "hangs: it does not become quiet",
        "floods: it sends without end",
        "port 2: TCP 10.0.0.1:1025 → 10.0.0.2:80, 60 bytes",
    ]
    assert event_dict(events[0]) == {"step": 1, "kind": "crash", "reason": "SIGSEGV", "text": "crash: SIGSEGV"}
    assert event_dict(events[4])["bytes"] == (frame.concrete() or b"").hex()
    symbolic = event_dict(Message(0, message(1, b"\0\1\0\6", PORT)))
    assert symbolic["pieces"] == ["0101000e0000000500010006", "<m0.actions.0.port>"]
    assert "decoded" not in symbolic


def test_os_ken_reads_the_same_fields_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    config = message(8, b"\0\1\0\x80").evaluate({})
    assert decoded(config) == {"OFPGetConfigReply": {"flags": 1, "miss_send_len": 128}}
    assert describe(config) == [
        "get_config_reply: flags frag_drop, miss_send_len 128, xid 5",
        "  flags: frag_drop",
        "  miss_send_len: 128",
    ]
    assert decoded(b"\1\2") is None
    assert decoded(b"\x63" * 20) is None
    assert decoded(message(17, b"\0\1\0\0", b"xyz").evaluate({})) is None
    assert capfd.readouterr() == ("", "")


@given(st.integers(0, 22), st.binary(max_size=200), st.binary(max_size=10))
def test_any_bytes_have_a_line(kind: int, body: bytes, junk: bytes) -> None:
    for payload in (message(kind, body), Payload.of(junk), Payload.of(message(kind, body).evaluate({})[:-1])):
        assert "\n" not in describe_message(payload)
        assert describe(payload)
        json.dumps(event_dict(Message(0, payload)))


@given(st.integers(0, 22), st.lists(st.binary(min_size=1, max_size=20) | st.sampled_from([PORT, VLAN]), max_size=12))
def test_any_pieces_have_a_line(kind: int, pieces: list[bytes | Term]) -> None:
    assert describe_message(message(kind, *pieces))
    json.dumps(event_dict(Message(0, message(kind, *pieces))))
