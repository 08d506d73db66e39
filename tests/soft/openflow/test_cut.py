"""The control stream is cut by the header's length field, however the agent divided its writes."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.openflow.cut import cut, cut_steps
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Message, Payload

bodies = st.lists(st.binary(max_size=40), max_size=6)


def message(body: bytes, xid: int = 5) -> bytes:
    return struct.pack("!BBHI", 1, 3, 8 + len(body), xid) + body


def payloads(*data: bytes) -> list[Payload]:
    return [Payload.of(each) for each in data]


@given(bodies, st.lists(st.integers(0, 300), max_size=8), st.binary(max_size=7).filter(lambda b: len(b) < 3))
def test_however_the_stream_is_written_the_messages_are_the_same(
    bodies: list[bytes], cuts: list[int], rest: bytes
) -> None:
    messages = [message(body) for body in bodies]
    stream = b"".join(messages) + rest
    edges = sorted({0, len(stream), *(place for place in cuts if place < len(stream))})
    writes = payloads(*[stream[low:high] for low, high in itertools.pairwise(edges)])
    assert cut(writes) == (payloads(*messages), Payload.of(rest))


def test_an_unfinished_message_is_left_over() -> None:
    whole = message(b"abcd")
    assert cut(payloads(whole + whole[:9])) == (payloads(whole), Payload.of(whole[:9]))


@pytest.mark.parametrize("length", [0, 7])
def test_a_length_below_the_headers_own_size_makes_all_the_rest_one_message(length: int) -> None:
    good, bad = message(b""), struct.pack("!BBH", 1, 0, length)
    assert cut(payloads(good + bad, b"more", good)) == (payloads(good, bad + b"more" + good), Payload(()))


LENGTH = t.var("m0.length", 16)
HEAD = bytes([1, 10])
XID = bytes(4)


def test_a_write_whose_header_has_its_own_symbolic_length_is_one_message() -> None:
    whole = Payload((HEAD, LENGTH, XID, bytes(60)), LENGTH)
    assert cut([*payloads(message(b"x")), whole, whole]) == ([Payload.of(message(b"x")), whole, whole], Payload(()))


def test_a_header_and_a_body_of_symbolic_length_are_one_message() -> None:
    body = t.var("m0.body", 16)
    header = Payload((HEAD, t.add(body, t.const(8, 16)), XID))
    messages, rest = cut([header, Payload((bytes(60),), body)])
    assert messages == [Payload((HEAD, t.add(body, t.const(8, 16)), XID, bytes(60)), t.add(body, t.const(8, 16)))]
    assert rest.size == 0


def test_any_other_symbolic_length_is_put_to_who_can_choose() -> None:
    asked: list[Term] = []

    def choose(term: Term) -> int:
        asked.append(term)
        return 10

    header = Payload((HEAD, LENGTH, XID, b"\1\2"))
    other = t.var("m0.other", 16)
    messages, rest = cut([header, Payload((HEAD, LENGTH, XID, bytes(60)), other)], choose)
    assert asked == [LENGTH, other, LENGTH]
    assert [each.size for each in messages] == [10, 10]
    assert rest.size == 0
    with pytest.raises(SoftError, match=r"depends on the inputs: its length is m0\.length"):
        cut([header])


def test_a_choice_beyond_what_was_written_is_refused() -> None:
    with pytest.raises(SoftError, match="at most 4"):
        cut([Payload((bytes(4),), LENGTH)], lambda _: 5)


def test_a_message_belongs_to_the_step_of_its_last_byte_and_a_fragment_is_a_message_too() -> None:
    whole = message(b"abcd")
    writes = [(0, whole[:5]), (1, whole[5:] + whole), (3, whole[:9])]
    assert cut_steps((step, Payload.of(data)) for step, data in writes) == [
        Message(1, Payload.of(whole)),
        Message(1, Payload.of(whole)),
        Message(3, Payload.of(whole[:9])),
    ]


def test_behind_garbage_each_step_has_one_message() -> None:
    bad = bytes(8)
    writes = [(0, bad), (0, b"x"), (2, message(b""))]
    assert cut_steps((step, Payload.of(data)) for step, data in writes) == [
        Message(0, Payload.of(bad + b"x")),
        Message(2, Payload.of(message(b""))),
    ]
