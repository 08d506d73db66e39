"""A term shows as the inputs that it comes from."""

from __future__ import annotations

from soft.openflow.decode_value import number_at, show_data, show_size, show_term, show_value
from soft.openflow.layout import Field, Names
from soft.solve import terms as t
from soft.trace import Payload

PORT = t.var("m0.actions.0.port", 16)
VLAN = t.var("m0.vlan", 16)


def test_terms_in_short() -> None:
    assert show_term(PORT) == "m0.actions.0.port"
    assert show_term(t.extract(7, 0, PORT)) == "m0.actions.0.port[7:0]"
    assert show_term(t.zero_extend(16, PORT)) == "m0.actions.0.port"
    assert show_term(t.add(PORT, VLAN)) == "f(m0.actions.0.port, m0.vlan)"
    many = t.concat(*[t.var(f"v{number}", 8) for number in range(6)])
    assert show_term(many) == "f(v0, v1, v2, 3 more)"
    deep = PORT
    for _ in range(20_000):
        deep = t.mul(t.add(deep, VLAN), PORT)
    assert show_term(deep) == "f(m0.actions.0.port, m0.vlan)"


def test_numbers_as_people_write_them() -> None:
    assert show_value(0x020000000001, Field("a", 48, "mac")) == "02:00:00:00:00:01"
    assert show_value(0x0A000001, Field("a", 32, "ipv4")) == "10.0.0.1"
    assert show_value(int.from_bytes(b"eth0" + bytes(12), "big"), Field("a", 128, "bytes")) == "'eth0'"
    assert show_value(int.from_bytes(b"\xff" * 2, "big"), Field("a", 16, "bytes")) == "ffff"
    assert show_value(5, names=Names("", {"five": 5})) == "five"
    assert show_value(0xFFFFFFFF) == "0xffffffff"


def test_numbers_anywhere_in_a_payload() -> None:
    payload = Payload((b"\x12\x34", PORT))
    assert number_at(payload, 4, 8) == 0x23
    assert number_at(payload, 16, 16) is PORT
    assert number_at(payload, 15, 2) is t.concat(t.const(0, 1), t.extract(15, 15, PORT))
    assert number_at(payload, 30, 16) == 0


def test_bytes_in_short() -> None:
    assert show_data(Payload.of(b"")) == "none"
    assert show_data(Payload.of(b"a")) == "1 byte 61"
    assert show_data(Payload.of(bytes(40))) == "40 bytes " + "00" * 32 + "..."
    assert show_data(Payload((PORT, VLAN))) == "4 bytes with m0.actions.0.port, m0.vlan"
    assert show_size(Payload((bytes(9),), PORT)) == "up to 9 bytes (m0.actions.0.port)"
