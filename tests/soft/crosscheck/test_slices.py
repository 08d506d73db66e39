"""Fields in parts: the same agent over parts of its fields does the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.slices import slices_of
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.trace import Packet, Payload, evaluate_trace
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
        "packet_out with actions.0.type = set_vlan_vid, actions.0.body[15:0] = 9, actions.0.vlan_vid ≤ 4095",
    }
    for finding in found.findings:
        assert finding.fields == ("m0.actions.0.type", "m0.actions.0.body")
        assert finding.region.holds(finding.example.values)


MATCH = """\
name = "match"
summary = "A rule for one address, or for all"
openflow = "1.0"

[[step]]
send = "flow_mod"
match = { dl_src = "symbolic", wildcards = { dl_src = "symbolic" } }

[[step]]
probe = 1
packet = "tcp"
"""
WILD, SOURCE = t.var("m0.match.wildcards.dl_src", 1), t.var("m0.match.dl_src", 48)
MASK = t.sign_extend(47, t.not_(WILD))


def test_a_field_and_its_wildcard_are_one_thing() -> None:
    scene = scenario(MATCH)
    packet = t.const(0x0200_0000_0A01, 48)
    hit = (Packet(1, 2, Payload.of(b"\2" * 60)),)
    # One agent masks, as a switch that matches in wide operations does; the other tests bit and address.
    masked = If(t.eq(t.and_(t.xor(SOURCE, packet), MASK), t.const(0, 48)), hit, SILENT)
    tested = If(t.eq(WILD, t.const(1, 1)), hit, If(t.eq(SOURCE, packet), hit, SILENT))
    one, two = bundle(masked, "masked", scene), bundle(tested, "tested", scene)
    assert crosscheck([one, two]).verdict == "agree"
    found = crosscheck([one, bundle(SILENT, "deaf", scene)])
    (finding,) = found.findings
    assert finding.region.exact
    assert finding.region.text == "m0.match.dl_src = 02:00:00:00:0a:01 or wildcarded; everything else free"
    assert finding.fields == ("m0.match.wildcards.dl_src", "m0.match.dl_src")
    for wild, source, expected in ((0, 0x0200_0000_0A01, True), (1, 7, True), (0, 7, False)):
        assert finding.region.holds({WILD.args[0]: wild, SOURCE.args[0]: source}) == expected
