"""Fields in parts: the same agent over parts of its fields does the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.slices import slices_of
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.trace import evaluate_trace
from tests.soft.crosscheck.agents import SILENT, If, bundle, error, forward, number, scenario

TEXT = """\
name = "body"
summary = "An action of any type"
openflow = "1.0"

[[step]]
send = "packet_out"
actions = [{ type = "symbolic", body = "symbolic" }]
data = { packet = "tcp" }
"""
TYPE, BODY = t.var("m0.actions.0.type", 16), t.var("m0.actions.0.body", 32)
HEAD, TAIL = t.extract(31, 16, BODY), t.extract(15, 0, BODY)
VLAN = t.eq(TYPE, number(1))
LAX = If(VLAN, forward(1, BODY), SILENT)
CAREFUL = If(t.ult(number(4095), HEAD), error(2, 5), If(t.eq(TAIL, number(9)), SILENT, forward(1, BODY)))
STRICT = If(VLAN, CAREFUL, SILENT)


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
def test_a_bundle_over_parts_does_the_same(kind: int, body: int) -> None:
    scene = scenario(TEXT)
    whole = bundle(STRICT, "strict", scene)
    slices = slices_of([whole])
    assert set(slices.parts) == {"m0.actions.0.body[31:16]", "m0.actions.0.body[15:0]"}
    values = {TYPE.args[0]: kind, BODY.args[0]: body}
    parts = slices.cut(values)
    assert slices.join(parts) == values
    cut = slices.bundle(whole)
    for mine, theirs in zip(whole.conditions, cut.conditions, strict=True):
        assert evaluate(mine, values) == evaluate(theirs, parts)
    for left, right in zip(whole.traces, cut.traces, strict=True):
        assert evaluate_trace(left, values) == evaluate_trace(right, parts)


def test_a_field_that_is_looked_at_as_a_whole_is_not_cut() -> None:
    both = bundle(If(t.ult(BODY, t.const(70_000, 32)), STRICT, SILENT), "both", scenario(TEXT))
    assert not slices_of([both]).parts


def test_parts_of_an_action_have_their_names() -> None:
    scene = scenario(TEXT)
    found = crosscheck([bundle(LAX, "lax", scene), bundle(STRICT, "strict", scene)])
    assert {cluster.heading.partition(": ")[0] for cluster in found.clusters} == {
        "packet_out with actions.0.type = set_vlan_vid, actions.0.vlan_vid ≥ 0x1000",
        "packet_out with actions.0.type = set_vlan_vid, actions.0.vlan_vid ≤ 4095, actions.0.body[15:0] = 9",
    }
    for finding in found.findings:
        assert finding.fields == ("m0.actions.0.type", "m0.actions.0.body")
        assert finding.region.holds(finding.example.values)
