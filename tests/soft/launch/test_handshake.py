"""The handshake without sockets: bytes in, bytes out."""

from __future__ import annotations

import contextlib
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.launch.handshake import FEATURES_XID, HELLO_XID, Handshake

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6


def message(kind: int, body: bytes = b"", xid: int = 1, version: int = 1) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


FEATURES = message(FEATURES_REPLY, bytes(24), FEATURES_XID)


def test_hello_is_answered_by_a_features_request() -> None:
    shake = Handshake()
    assert shake.greeting == message(HELLO, xid=HELLO_XID)
    assert shake.waits_for == "hello"
    assert shake.receive(message(HELLO)) == message(FEATURES_REQUEST, xid=FEATURES_XID)
    assert shake.waits_for == "features reply"
    assert shake.receive(FEATURES) == b""
    assert shake.done
    assert shake.features == FEATURES


@given(st.lists(st.integers(0, 80), max_size=6))
def test_the_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    shake = Handshake()
    stream = message(HELLO) + message(ECHO_REQUEST, b"alive", 9) + FEATURES
    answer = b""
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for low, high in itertools.pairwise(edges):
        answer += shake.receive(stream[low:high])
    assert shake.done
    assert answer == message(FEATURES_REQUEST, xid=FEATURES_XID) + message(ECHO_REPLY, b"alive", 9)


def test_a_newer_agent_speaks_our_version() -> None:
    bitmap = struct.pack("!HHI", 1, 8, 1 << 1 | 1 << 4)
    assert Handshake().receive(message(HELLO, bitmap, version=4)) == message(FEATURES_REQUEST, xid=FEATURES_XID)
    assert Handshake().receive(message(HELLO, version=4))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (message(HELLO, version=0), "speaks OpenFlow version 0x00, not OpenFlow 1.0"),
        (message(HELLO, struct.pack("!HHI", 1, 8, 1 << 4), version=4), "speaks OpenFlow 1.3, not OpenFlow 1.0"),
        (b"HTTP/1.1 400", "does not speak OpenFlow|speaks OpenFlow version"),
        (bytes(8), "does not speak OpenFlow: its message 00 00 00 00 00 00 00 00 has length 0"),
        (message(ERROR, struct.pack("!HH", 0, 0) + b"go away\0"), r'error type 0, code 0 \("go away"\)'),
        (message(HELLO) + message(ERROR, struct.pack("!HH", 1, 5), FEATURES_XID), "error type 1, code 5"),
    ],
)
def test_what_cannot_be_talked_to_is_refused_with_a_sentence(data: bytes, sentence: str) -> None:
    shake = Handshake()
    with pytest.raises(SoftError, match=sentence):
        shake.receive(data + bytes(30000))


def test_other_words_of_the_agent_do_not_disturb() -> None:
    shake = Handshake()
    shake.receive(message(HELLO))
    assert shake.receive(message(ERROR, struct.pack("!HH", 1, 1), xid=3) + message(10, bytes(20))) == b""
    assert shake.receive(message(HELLO)) == b""
    assert shake.receive(message(FEATURES_REPLY, bytes(24), xid=1)) == b""
    assert not shake.done


@given(st.binary(max_size=300))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    with contextlib.suppress(SoftError):
        assert isinstance(Handshake().receive(data), bytes)
