"""Each rule removes what it names and nothing else, on bytes and on terms alike."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.openflow.normalise import RULES, normalise
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Message, Packet, Payload, Trace, evaluate_trace

ERROR, PACKET_IN, FLOW_REMOVED, PORT_STATUS, STATS_REPLY, FEATURES = 1, 10, 11, 12, 17, 6
X, Y = t.var("x", 64), t.var("y", 16)


def message(kind: int, *parts: bytes | Term, xid: int = 5) -> Payload:
    size = 8 + sum(len(p) if isinstance(p, bytes) else p.width // 8 for p in parts)
    return Payload((struct.pack("!BBHI", 1, kind, size, xid), *parts))


def one(payload: Payload) -> Payload:
    (event,) = normalise([Message(0, payload)])
    assert isinstance(event, Message)
    return event.payload


def same(a: Payload, b: Payload) -> bool:
    return one(a) == one(b)


def packet_in(buffer: bytes | Term, xid: int = 0) -> Payload:
    return message(PACKET_IN, buffer, struct.pack("!HHBB", 60, 1, 0, 0), bytes(60), xid=xid)


def test_every_rule_has_one_sentence() -> None:
    assert all(sentence.endswith(".") and name.islower() for name, sentence in RULES.items())


def test_a_version_without_layout_is_refused() -> None:
    with pytest.raises(SoftError, match="no message layout"):
        normalise([], "9.9")


# ------------------------------------------------------------------------------------------------ rules


def test_buffer_id_counts_only_as_buffered_or_not() -> None:
    assert same(packet_in(b"\0\0\0\7"), packet_in(b"\0\0\1\1"))
    assert not same(packet_in(b"\0\0\0\7"), packet_in(b"\xff" * 4))
    buffer = t.var("b", 32)
    normal = one(packet_in(buffer))
    assert normal.evaluate({"b": 7}) == one(packet_in(b"\0\0\0\7")).concrete()
    assert normal.evaluate({"b": 0xFFFFFFFF}) == one(packet_in(b"\xff" * 4)).concrete()


def test_datapath_id_and_hardware_addresses() -> None:
    def features(datapath: bytes, address: bytes, name: bytes, capabilities: int) -> Payload:
        ports = [struct.pack("!H", number) + address + name.ljust(16, b"\0") + bytes(24) for number in (1, 2)]
        return message(FEATURES, datapath, struct.pack("!IB3xII", 256, 1, capabilities, 0xFFF), *ports)

    plain = features(bytes(8), bytes(6), b"port1", 0)
    assert same(plain, features(b"\0\0\2\0\0\0\0\1", b"\2\0\0\0\0\1", b"port1", 0))
    assert not same(plain, features(bytes(8), bytes(6), b"eth1", 0))
    assert not same(plain, features(bytes(8), bytes(6), b"port1", 1))


def test_hardware_address_of_a_port_status() -> None:
    def status(reason: int, address: bytes) -> Payload:
        return message(PORT_STATUS, bytes([reason]) + bytes(7), b"\0\1" + address + bytes(40))

    assert same(status(2, bytes(6)), status(2, b"\2\0\0\0\0\1"))
    assert not same(status(2, bytes(6)), status(1, bytes(6)))


def stats(kind: int, *body: bytes | Term, flags: int = 0, xid: int = 5) -> Payload:
    return message(STATS_REPLY, struct.pack("!HH", kind, flags), *body, xid=xid)


def test_description_strings() -> None:
    assert same(stats(0, b"a" * 1056), stats(0, b"b" * 1056))
    assert not same(stats(0, b"a" * 1056), stats(0, b"a" * 1055))


def flow(cookie: int | Term, count: int = 0, actions: bytes = b"", priority: int = 1) -> tuple[bytes | Term, ...]:
    head = struct.pack("!HBx40xIIHHH6x", 88 + len(actions), 0, count, count, priority, 0, 0)
    tail = struct.pack("!QQ", count, count) + actions
    return (head, struct.pack("!Q", cookie), tail) if isinstance(cookie, int) else (head, cookie, tail)


def test_counters_of_all_kinds() -> None:
    assert same(stats(1, *flow(1, count=3)), stats(1, *flow(1, count=9)))
    assert not same(stats(1, *flow(1)), stats(1, *flow(2)))
    aggregate = struct.Struct("!QQI4x")
    assert same(stats(2, aggregate.pack(1, 2, 3)), stats(2, aggregate.pack(4, 5, 3)))
    assert not same(stats(2, aggregate.pack(1, 2, 3)), stats(2, aggregate.pack(1, 2, 4)))
    table = struct.Struct("!B3x32sIIIQQ")
    assert same(stats(3, table.pack(0, b"a", 1, 2, 3, 4, 5)), stats(3, table.pack(0, b"b", 1, 2, 3, 6, 7)))
    assert not same(stats(3, table.pack(0, b"a", 1, 2, 3, 4, 5)), stats(3, table.pack(0, b"a", 1, 2, 4, 4, 5)))
    port = struct.Struct("!H6x12Q")
    assert same(stats(4, port.pack(1, *range(12))), stats(4, port.pack(1, *range(5, 17))))
    assert not same(stats(4, port.pack(1, *range(12))), stats(4, port.pack(2, *range(12))))
    queue = struct.Struct("!HxxIQQQ")
    assert same(stats(5, queue.pack(1, 2, 3, 4, 5)), stats(5, queue.pack(1, 2, 6, 7, 8)))
    assert not same(stats(5, queue.pack(1, 2, 3, 4, 5)), stats(5, queue.pack(1, 3, 3, 4, 5)))


def test_counters_of_a_removed_flow() -> None:
    def removed(cookie: int, reason: int, count: int) -> Payload:
        return message(
            FLOW_REMOVED, bytes(40), struct.pack("!QHBxIIHxxQQ", cookie, 1, reason, count, count, 7, count, count)
        )

    assert same(removed(1, 0, 3), removed(1, 0, 9))
    assert not same(removed(1, 0, 3), removed(1, 1, 3))
    assert not same(removed(1, 0, 3), removed(2, 0, 3))


def test_order_of_flows() -> None:
    output, drop = bytes.fromhex("0000000800020000"), b""
    first, second, third = flow(1, actions=output), flow(2, actions=drop), flow(3, actions=output)
    assert same(stats(1, *first, *second, *third), stats(1, *third, *first, *second))
    assert not same(stats(1, *first, *second), stats(1, *first, *first))


def test_order_of_flows_with_terms_in_them() -> None:
    entries = flow(X), flow(t.var("z", 64)), flow(7)
    forward = one(stats(1, *entries[0], *entries[1], *entries[2]))
    backward = one(stats(1, *entries[2], *entries[1], *entries[0]))
    for values in ({"x": 1, "z": 9}, {"x": 9, "z": 1}, {"x": 8, "z": 8}, {"x": 9, "z": 10}):
        assert forward.evaluate(values) == backward.evaluate(values)
        assert forward.evaluate(values) == one(stats(1, *flow(values["x"]), *flow(values["z"]), *flow(7))).concrete()


def test_order_of_ports() -> None:
    def port(number: int) -> bytes:
        return struct.pack("!H6s16s24x", number, bytes(6), b"port%d" % number)

    def features(*numbers: int) -> Payload:
        return message(FEATURES, bytes(8), struct.pack("!IB3xII", 256, 1, 0, 0), *map(port, numbers))

    assert same(features(1, 2, 0xFFFE), features(0xFFFE, 2, 1))
    assert not same(features(1, 2), features(1, 1))
    counters = [struct.pack("!H102x", number) for number in (1, 2)]
    assert same(stats(4, *counters), stats(4, *reversed(counters)))
    assert same(stats(13, port(1), port(2)), stats(13, port(2), port(1)))
    assert not same(stats(13, port(1), port(2)), stats(13, port(1)))


def test_error_keeps_type_and_code() -> None:
    quoting, bare = message(ERROR, b"\0\1\0\6", b"offending"), message(ERROR, b"\0\1\0\6")
    assert one(quoting) == one(bare) == bare
    assert not same(bare, message(ERROR, b"\0\1\0\7"))
    assert not same(bare, message(ERROR, b"\0\1\0\6", xid=6))


def test_an_error_of_symbolic_length_is_cut_as_well() -> None:
    quoting = Payload((b"\1\1", Y, bytes(4), b"\0\1\0\6", bytes(60)), Y)
    assert one(quoting) == message(ERROR, b"\0\1\0\6", xid=0)


def test_parts_of_a_statistics_reply_are_one() -> None:
    whole = stats(1, *flow(1), *flow(2), *flow(3))
    parts = [stats(1, *flow(3), flags=1), stats(1, *flow(1), *flow(2), flags=1), stats(1)]
    assert normalise(Message(2, part) for part in parts) == normalise([Message(2, whole)])
    unfinished = [Message(2, part) for part in parts[:2]]
    assert normalise(unfinished) != normalise([Message(2, whole)])
    other = [Message(2, stats(1, *flow(3), flags=1)), Message(2, stats(1, *flow(1), xid=6))]
    assert len(normalise(other)) == 2


def test_parts_too_large_for_one_message_stay_parts() -> None:
    part = stats(1, *[piece for cookie in range(600) for piece in flow(cookie)], flags=1)
    events = normalise([Message(0, part), Message(0, part)])
    assert len(events) == 2
    assert normalise(events) == events


def test_own_transaction_ids_do_not_count_but_echoed_ones_do() -> None:
    assert same(packet_in(b"\xff" * 4, xid=1), packet_in(b"\xff" * 4, xid=2))
    assert not same(message(3, xid=1), message(3, xid=2))


def test_what_came_with_a_flood_does_not_count() -> None:
    flood: list[Event] = [Message(1, packet_in(bytes(4))), Packet(1, 2, Payload.of(b"x")), Flood(1)]
    before = Message(0, message(3))
    assert normalise([before, *flood]) == (before, Flood(1))


def test_other_events_and_garbage_stay() -> None:
    fragment = Payload.of(message(PACKET_IN, bytes(20)).evaluate({})[:14])
    events = (Message(0, fragment), Packet(0, 1, Payload.of(bytes(4))), Close(0), Crash(1, "SIGSEGV"))
    assert normalise(reversed(events)) == events


def test_entries_whose_lengths_make_no_sense_stay() -> None:
    for length in (0, 87, 200):
        broken = stats(1, struct.pack("!H", length) + bytes(86))
        assert one(broken) == broken
    symbolic = stats(1, *flow(1, count=5), Y, bytes(86))
    assert one(symbolic) == stats(1, *flow(1), Y, bytes(86))


# ------------------------------------------------------------------------------------------------ properties

numbers = st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 5, 6, 10, 11, 12, 17]))
kinds = st.sampled_from([0, 1, 2, 3, 4, 5, 9])
WORDS = (t.var("a", 8), t.var("b", 32), t.var("x", 64))
pieces = st.one_of(st.binary(min_size=1, max_size=60), st.sampled_from(WORDS))
SELECTOR = t.var("s", 8)


@st.composite
def payloads(draw: st.DrawFn) -> Payload:
    """Messages of every kind, with terms anywhere, their type and the type of a statistic included."""
    body: list[bytes | Term] = []
    kind: bytes | Term = bytes([draw(numbers)])
    shape = draw(st.sampled_from(["any", "stats", "flows"]))
    if shape != "any":
        kind = bytes([STATS_REPLY])
        code = 1 if shape == "flows" else draw(kinds)
        body += [struct.pack("!HH", code, draw(st.integers(0, 1)))]
        if shape == "stats" and draw(st.booleans()):
            body[0:] = [b"\0", t.var("k", 8), b"\0\0"]
    if draw(st.integers(0, 3)) == 0:
        kind = SELECTOR
    if shape == "flows":
        for _ in range(draw(st.integers(0, 4))):
            cookie = draw(st.one_of(st.integers(0, 3), st.sampled_from([X, t.var("z", 64)])))
            body += flow(cookie, draw(st.integers(0, 2)), draw(st.sampled_from([b"", bytes(8)])))
    else:
        body += draw(st.lists(pieces, max_size=8))
    size = 8 + sum(len(p) if isinstance(p, bytes) else p.width // 8 for p in body)
    return Payload((b"\1", kind, struct.pack("!HI", size, draw(st.integers(0, 2))), *body))


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    found: list[Event] = [
        Message(draw(st.integers(0, 1)), payload) for payload in draw(st.lists(payloads(), max_size=4))
    ]
    if draw(st.booleans()):
        found.append(Packet(0, draw(st.integers(1, 3)), Payload.of(b"frame")))
    return found


values = st.fixed_dictionaries(
    {
        "a": st.integers(0, 255),
        "b": st.sampled_from([0, 7, 0xFFFFFFFF]),
        "s": numbers,
        "k": kinds,
        "x": st.integers(0, 3),
        "z": st.integers(0, 3),
    }
)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200, deadline=None)
@given(events(), values)
def test_inputs_may_be_put_in_before_or_after(events: list[Event], values: dict[str, int]) -> None:
    """Except where parts of a reply are joined, which needs their flags and types known."""
    alone = [events[:1]] if events else []
    for some in (*alone, [e for e in events if not isinstance(e, Message) or not _is_part(e)]):
        concrete = evaluate_trace(tuple(some), values)
        assert normalise(concrete) == evaluate_trace(normalise(some), values)


def _is_part(event: Message) -> bool:
    return event.payload.size >= 12 and bool(event.payload.evaluate(dict.fromkeys("abskxz", 255))[11] & 1)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200, deadline=None)
@given(events(), values)
def test_normalising_twice_is_normalising_once(events: list[Event], values: dict[str, int]) -> None:
    once: Trace = normalise(events)
    assert evaluate_trace(normalise(once), values) == evaluate_trace(once, values)
    concrete = normalise(evaluate_trace(tuple(events), values))
    assert normalise(concrete) == concrete
