"""From a step's table to bits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.openflow.layout import layout_of
from soft.scenarios.build import Builder, Chunk, Const, Table, Var, canonical_chunks, payload_of
from soft.scenarios.values import FieldError


def build(table: Table) -> tuple[Builder, list[Chunk]]:
    builder = Builder(layout_of("1.0"))
    chunks, _ = builder.message("m0", table, xid=1)
    return builder, chunks


def sent(table: Table) -> str:
    builder, chunks = build(table)
    return payload_of(chunks).evaluate({v.name: v.default for v in builder.variables.values()}).hex()


def wildcards(match: object) -> int:
    return int(sent({"send": "flow_mod", "match": match})[16:24], 16)


def test_a_field_that_is_given_counts() -> None:
    assert wildcards({}) == 0x3FFFFF
    assert wildcards({"in_port": 1}) == 0x3FFFFE
    assert wildcards({"in_port": "symbolic"}) == 0x3FFFFE
    assert wildcards({"nw_src": "10.0.0.1", "dl_type": "ip"}) == 0x3FC0EF


def test_unless_its_wildcard_bit_says_otherwise() -> None:
    assert wildcards({"in_port": 1, "wildcards": {"in_port": 1}}) == 0x3FFFFF
    assert wildcards({"nw_src": "10.0.0.0", "wildcards": {"nw_src": 8}}) == 0x3FC8FF
    assert wildcards({"in_port": 1, "wildcards": "all"}) == 0x3FFFFF
    assert wildcards({"wildcards": 0xFFFFFFFF}) == 0xFFFFFFFF


def test_wildcard_bits_are_variables_of_their_own() -> None:
    builder, _ = build({"send": "flow_mod", "match": {"wildcards": "symbolic"}})
    widths = {name.removeprefix("m0.match.wildcards."): v.width for name, v in builder.variables.items()}
    assert widths.pop("nw_src") == widths.pop("nw_dst") == 6
    assert len(widths) == 10
    assert set(widths.values()) == {1}


def test_a_symbolic_match_has_no_variables_for_padding() -> None:
    builder, chunks = build({"send": "flow_mod", "match": "symbolic"})
    bits = sum(v.width for v in builder.variables.values())
    assert bits == 8 * 40 - 10 - 8 - 16
    assert sum(chunk.bits for chunk in chunks) == 8 * 72


def test_the_length_of_the_message_and_its_actions_is_filled_in() -> None:
    table: Table = {"send": "packet_out", "actions": [{"type": "output"}, {"type": "set_dl_src"}], "data": "0102"}
    assert sent(table)[4:8] == f"{8 + 8 + 24 + 2:04x}"
    assert sent(table)[28:32] == f"{24:04x}"
    assert sent({**table, "length": 3, "actions_len": 5})[4:8] == "0003"
    assert sent({**table, "length": 3, "actions_len": 5})[28:32] == "0005"


def test_the_cases_of_a_stats_request() -> None:
    assert len(sent({"send": "stats_request", "type": "table"})) == 2 * 12
    assert len(sent({"send": "stats_request", "type": "port", "port_no": 1})) == 2 * 20
    assert sent({"send": "stats_request", "type": "port", "body": "ab"})[24:] == "ab"
    assert sent({"send": "stats_request", "type": 77, "body": "ab"})[24:] == "ab"
    assert sent({"send": "stats_request", "type": "vendor", "vendor": 5, "body": "ab"})[24:] == "00000005ab"
    with pytest.raises(FieldError, match="there is no 'port_no' here"):
        sent({"send": "stats_request", "type": "symbolic", "port_no": 1})


def test_an_action_of_an_unknown_or_symbolic_type_has_a_body() -> None:
    head = {"send": "packet_out"}
    assert sent({**head, "actions": [{"type": 99}]})[32:] == "0063000800000000"
    assert sent({**head, "actions": [{"type": 99, "body": "01"}]})[32:] == "0063000501"
    assert sent({**head, "actions": [{"type": "output", "body": "0102"}]})[32:] == "000000060102"
    assert sent({**head, "actions": [{"type": "output", "len": 7}]})[32:] == "000000070002ffff"
    builder, _ = build({**head, "actions": [{"type": "symbolic", "body": "symbolic"}]})
    widths = {name: v.width for name, v in builder.variables.items()}
    assert widths == {"m0.actions.0.type": 16, "m0.actions.0.body": 32}


def test_a_message_may_carry_a_packet_with_symbolic_fields() -> None:
    builder, chunks = build({"send": "packet_out", "data": {"packet": {"kind": "udp", "tp_dst": "symbolic"}}})
    assert Var(16, "m0.data.tp_dst") in chunks
    assert builder.variables["m0.data.tp_dst"].default == 53


def test_a_symbolic_field_has_its_default_in_the_checksum() -> None:
    plain = Builder(layout_of("1.0")).packet("p0", "udp")
    symbolic = Builder(layout_of("1.0")).packet("p0", {"kind": "udp", "tp_dst": "symbolic"})
    assert [(a, b) for a, b in zip(plain, symbolic, strict=True) if a != b] == [(Const(16, 53), Var(16, "p0.tp_dst"))]


def test_parts_are_named_by_place_or_name() -> None:
    builder, _ = build(
        {
            "send": "raw",
            "bytes": [
                "01",
                {"symbolic": True, "bytes": 2},
                {"name": "high", "bits": 4, "value": "symbolic"},
                {"name": "low", "bits": 4},
            ],
        }
    )
    assert {name: v.width for name, v in builder.variables.items()} == {"m0.bytes.1": 16, "m0.bytes.high": 4}


def test_two_parts_may_not_share_a_name() -> None:
    part = {"name": "a", "bits": 8, "value": "symbolic"}
    with pytest.raises(FieldError, match=r"there are two fields named m0\.bytes\.a"):
        build({"send": "raw", "bytes": [part, part]})


CHUNKS = st.lists(
    st.one_of(
        st.integers(1, 16).flatmap(lambda bits: st.builds(Const, st.just(bits), st.integers(0, (1 << bits) - 1))),
        st.builds(Var, st.just(8), st.sampled_from(["x", "y"])),
    ),
    max_size=8,
)


@given(CHUNKS)
def test_the_canonical_form_keeps_every_bit(chunks: list[Chunk]) -> None:
    form = canonical_chunks(chunks)
    assert sum(int(str(bits)) for bits, _ in form) == sum(chunk.bits for chunk in chunks)
    assert [name for _, name in form if name in ("x", "y")] == [c.name for c in chunks if isinstance(c, Var)]
    constants = [str(value).startswith("0x") for _, value in form]
    assert not any(left and right for left, right in pairwise(constants))
