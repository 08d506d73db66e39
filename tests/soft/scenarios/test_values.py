"""One field's value as a scenario writes it."""

from __future__ import annotations

import pytest

from soft.openflow.layout import Field
from soft.openflow.openflow10 import FLOW_FLAGS, PORTS
from soft.scenarios.values import FieldError, Symbolic, field_value, hex_bytes, is_symbolic, number, quoted

PORT = Field("port", 16, default=2, names=PORTS)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (PORT, 7, 7),
        (PORT, "7", 7),
        (PORT, "0x10", 16),
        (PORT, "controller", 0xFFFD),
        (PORT, "OFPP_IN_PORT", 0xFFF8),
        (Field("flags", 16, names=FLOW_FLAGS), ["emerg", 1], 5),
        (Field("flags", 16, names=FLOW_FLAGS), "emerg+send_flow_rem", 5),
        (Field("dl_src", 48, "mac"), "02:00:00:00:0A:01", 0x020000000A01),
        (Field("nw_src", 32, "ipv4"), "10.0.0.1", 0x0A000001),
        (Field("nw_src", 32, "ipv4"), 1, 1),
        (Field("name", 32, "bytes"), "01 02:03 04", 0x01020304),
    ],
)
def test_concrete_values(field: Field, text: object, value: int) -> None:
    assert field_value(field, text) == number(field, text) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("symbolic", Symbolic(2)),
        ({"symbolic": True}, Symbolic(2)),
        ({"range": [1, 5]}, Symbolic(2, (1, 5))),
        ({"range": [3, "max"]}, Symbolic(3, (3, 0xFF00))),
        ({"in": ["flood", 5, 5]}, Symbolic(5, None, (5, 0xFFFB))),
        ({"symbolic": True, "in": [1, 4], "range": [2, 9], "default": 4}, Symbolic(4, (2, 9), (1, 4))),
        ({"except": [2, "flood"]}, Symbolic(0, None, None, (2, 0xFFFB))),
        ({"range": [2, 9], "except": [2, 9, 3]}, Symbolic(4, (2, 9), None, (2, 3, 9))),
        ({"in": [2, 4], "except": [2]}, Symbolic(4, None, (2, 4), (2,))),
    ],
)
def test_symbolic_values(value: object, expected: Symbolic) -> None:
    assert is_symbolic(value)
    assert field_value(PORT, value) == expected


NO_VALUES: list[object] = [1.5, True, None, [1], {}, {"default": 1}, {"symbolic": 1}, "", "flod", "0x", "1" * 41]
NO_VALUES += [{"except": []}, {"except": 3}, {"range": [3, 4], "except": [3, 4]}, {"in": [3], "except": [3]}]
NO_VALUES += [{"except": [3], "default": 3}]


@pytest.mark.parametrize("value", NO_VALUES)
def test_what_is_no_value(value: object) -> None:
    with pytest.raises(FieldError):
        field_value(PORT, value)


def test_an_error_collects_where_it_happened() -> None:
    error = FieldError("wrong", ("range",)).under("actions", 0).under("m0")
    assert (error.sentence, error.path) == ("wrong", ("m0", "actions", 0, "range"))


def test_bytes_in_hexadecimal() -> None:
    assert hex_bytes("0x0A 0b:0c") == b"\n\x0b\x0c"
    with pytest.raises(FieldError, match="'abc' is not a sequence of bytes"):
        hex_bytes("abc")


def test_long_values_are_cut() -> None:
    assert len(quoted("x" * 1000)) == 60
    assert quoted(1 << 20_000) == "a number of 20001 bits"
    assert quoted(True) == "true"
