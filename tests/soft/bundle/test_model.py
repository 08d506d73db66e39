"""Groups: what two traces must have in common before their bytes are compared."""

from __future__ import annotations

from soft.bundle.model import group_key, may_match
from soft.trace import Crash, Message, Packet, Payload
from tests.soft.bundle.example import MAX_LEN, PORT


def test_the_bytes_do_not_matter_but_kind_step_port_and_length_do() -> None:
    message = Message(0, Payload.of(b"abcd"))
    key = group_key((message,))
    assert group_key((Message(0, Payload((PORT, b"xy"))),)) == key
    for other in (
        (Message(1, Payload.of(b"abcd")),),
        (Message(0, Payload.of(b"abc")),),
        (Packet(0, 0, Payload.of(b"abcd")),),
        (message, message),
        (message, Crash(0, "SIGSEGV")),
        (),
    ):
        assert group_key(other) != key
        assert not may_match(group_key(other), key)
    assert group_key((Packet(0, 1, Payload.of(b"")),)) != group_key((Packet(0, 2, Payload.of(b"")),))
    assert group_key((Crash(0, "SIGSEGV"),)) != group_key((Crash(0, "SIGABRT"),))


def test_a_length_that_depends_on_the_input_may_match_any() -> None:
    open_end = group_key((Message(0, Payload((b"abcdef",), MAX_LEN)),))
    fixed = group_key((Message(0, Payload.of(b"abcd")),))
    assert open_end != fixed
    assert may_match(open_end, fixed)
    assert may_match(open_end, open_end)
