"""The whole crosscheck against oracles that know nothing of it: every input through both agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soft.crosscheck.behaviour import way_of
from soft.crosscheck.crosscheck import condition_files, crosscheck, unique_labels
from soft.crosscheck.model import Finding, Findings, Region, decode, encode
from soft.errors import SoftError
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Answer, Solver
from soft.trace import Crash, Trace
from tests.soft.crosscheck.agents import (
    CRASH,
    IN_PORT,
    MAX_LEN,
    PORT,
    SILENT,
    If,
    Tree,
    bundle,
    error,
    forward,
    inputs,
    leaf,
    number,
    respond,
    scenario,
)
from tests.soft.crosscheck.strategies import agents

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(left: Tree, right: Tree, solver: str = "z3") -> Findings:
    return crosscheck([bundle(left, "left"), bundle(right, "right")], solver=solver)


@SLOW
@given(agents(), agents())
def test_finds_exactly_the_inputs_that_an_enumeration_finds(left: Tree, right: Tree) -> None:
    found = check(left, right)
    differing = [values for values in inputs(scenario()) if respond(left, values) != respond(right, values)]
    assert found.verdict == ("differ" if differing else "agree")
    for values in inputs(scenario()):
        differs = values in differing
        claimed = any(finding.region.holds(values) for finding in found.findings if finding.region.proved)
        assert not claimed or differs, f"{values} agrees, but a region holds it"
        if all(cluster.covered for cluster in found.clusters):
            held = any(finding.region.holds(values) for finding in found.findings)
            assert held or not differs, f"{values} differs, but no region holds it"


@SLOW
@given(agents(), agents())
def test_every_finding_shows_what_the_agents_do(left: Tree, right: Tree) -> None:
    found = check(left, right)
    assert decode(encode(found), "test") == found
    for finding in found.findings:
        values = finding.example.values
        assert finding.region.holds(values)
        traces = respond(left, values), respond(right, values)
        assert traces[0] != traces[1]
        for behaviour, trace in zip(finding.behaviours, traces, strict=True):
            assert [record.kind for record in behaviour.events] == [type(event).__name__.lower() for event in trace]
            sent = [event.payload.concrete() for event in trace if hasattr(event, "payload")]
            assert [bytes.fromhex(record.hex) for record in behaviour.events if record.hex is not None] == sent


@SLOW
@given(agents(), agents())
def test_regions_differ_in_one_way_and_are_tight(left: Tree, right: Tree) -> None:
    found = check(left, right)
    everything = list(inputs(scenario()))
    for finding in found.findings:
        shown = {_way(left, right, values) for values in everything if finding.region.holds(values)}
        assert shown == {_way(left, right, finding.example.values)}
        for name, value in _one_step_outside(finding):
            moved = {**finding.example.values, name: value}
            plane = [v for v in everything if v[name] == value and _inside_but(finding.region, v, name)]
            if moved in everything and not finding.region.relations:
                others = [f.region for f in found.findings if f.id != finding.id]
                assert any(
                    _way(left, right, v) not in shown or any(other.holds(v) for other in others) for v in plane
                ), f"{finding.region.text} could hold {moved}"


def _way(left: Tree, right: Tree, values: Mapping[str, int]) -> object:
    if respond(left, values) == respond(right, values):
        return None
    return way_of(leaf(left, values), leaf(right, values))


def _one_step_outside(finding: Finding) -> list[tuple[str, int]]:
    return [
        (field.field, value)
        for field in finding.region.fields
        if field.bits is None
        for low, high in field.intervals
        for value in (low - 1, high + 1)
    ]


def _inside_but(region: Region, values: Mapping[str, int], name: str) -> bool:
    return all(field.holds(values[field.field]) for field in region.fields if field.field != name)


@SLOW
@given(agents())
def test_an_agent_agrees_with_itself(tree: Tree) -> None:
    found = check(tree, tree)
    assert found.verdict == "agree"
    assert not found.findings
    assert not found.comparisons[0].doubts


@SLOW
@given(agents(), agents())
def test_the_order_of_the_bundles_does_not_matter(left: Tree, right: Tree) -> None:
    a, b = bundle(left, "left"), bundle(right, "right")
    there, back = crosscheck([a, b]), crosscheck([b, a])
    assert [(f.id, f.region, f.example) for f in there.findings] == [(f.id, f.region, f.example) for f in back.findings]
    assert [f.behaviours for f in there.findings] == [f.behaviours[::-1] for f in back.findings]
    assert [(c.id, c.findings) for c in there.clusters] == [(c.id, c.findings) for c in back.clusters]


@SLOW
@given(agents(), agents())
def test_both_solvers_give_the_same_verdict(left: Tree, right: Tree) -> None:
    z3, bitwuzla = check(left, right), check(left, right, "bitwuzla")
    assert z3.verdict == bitwuzla.verdict
    assert z3.comparisons[0].counts == bitwuzla.comparisons[0].counts


@SLOW
@given(agents(), agents(), st.sets(st.integers(0, 5), min_size=1), st.booleans())
def test_what_was_not_explored_is_never_called_equal(left: Tree, right: Tree, skip: set[int], honest: bool) -> None:
    whole, part = bundle(left, "left"), bundle(right, "right", skip=skip, complete=None if honest else True)
    missing = len(bundle(right, "right").paths) - len(part.paths)
    found = crosscheck([whole, part])
    if not missing:
        return
    assert found.verdict != "agree"
    doubt = found.comparisons[0].doubts[0]
    assert doubt.kind == "unexplored"
    assert doubt.agent == "right"
    assert doubt.example is not None
    values = doubt.example.values
    taken = [path for path in part.paths if all(_holds(part.conditions[i], values) for i in path.conditions)]
    assert not taken, "the example was explored"
    for finding in found.findings:
        assert respond(left, finding.example.values) != respond(right, finding.example.values)


def _holds(term: t.Term, values: Mapping[str, int]) -> bool:
    return bool(evaluate(term, values))


# ---------------------------------------------------------------------------------------------- examples

REFERENCE = If(t.ult(PORT, number(4)), forward(1, PORT), error(2, 4))
OTHER = If(t.eq(PORT, IN_PORT), SILENT, If(t.ult(PORT, number(6)), forward(1, PORT), error(2, 4)))


def test_headings_say_what_differs() -> None:
    found = crosscheck([bundle(REFERENCE, "reference"), bundle(OTHER, "vswitch")])
    assert [(cluster.severity, cluster.heading) for cluster in found.clusters] == [
        (
            "forwarding",
            "packet_out with actions.0.port from 4 to 5: "
            "reference answers with the error bad_action/bad_out_port, vswitch does not",
        ),
        (
            "forwarding",
            "packet_out with in_port ≤ 3, in_port = actions.0.port: reference forwards the packet, vswitch is silent",
        ),
        (
            "lost error",
            "packet_out with in_port ≥ 4, in_port = actions.0.port: "
            "reference answers with the error bad_action/bad_out_port, vswitch is silent",
        ),
    ]
    assert all(finding.region.proved for finding in found.findings)


def test_the_same_behaviours_for_two_reasons_are_two_clusters() -> None:
    strict = If(t.ult(number(5), PORT), error(2, 5), If(t.ult(number(100), MAX_LEN), error(2, 5), SILENT))
    found = crosscheck([bundle(SILENT, "lax"), bundle(strict, "strict")])
    assert {cluster.fields for cluster in found.clusters} == {("m0.actions.0.port",), ("m0.actions.0.max_len",)}
    assert {cluster.severity for cluster in found.clusters} == {"lost error"}


def test_one_cause_that_shows_in_several_ways_is_one_cluster() -> None:
    """A buffer that is checked last: what is wrong with the rest comes first."""
    wrong: Tree = If(t.ult(number(5), PORT), error(2, 4), If(t.ult(number(100), MAX_LEN), error(2, 5), SILENT))
    late = If(t.eq(IN_PORT, number(7)), wrong, SILENT)
    found = crosscheck([bundle(SILENT, "early", scenario()), bundle(late, "late", scenario())])
    (cluster,) = found.clusters
    assert cluster.heading == (
        "packet_out with in_port = 7, and actions.0.port ≥ 6, or actions.0.max_len = 200: early is silent, "
        "late answers with an error (bad_action/bad_argument or bad_action/bad_out_port)"
    )
    assert cluster.fields == ("m0.in_port", "m0.actions.0.port", "m0.actions.0.max_len")
    assert {finding.fields for finding in found.findings} == {
        ("m0.in_port", "m0.actions.0.port"),
        ("m0.in_port", "m0.actions.0.max_len"),
    }


def test_too_many_questions_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soft.crosscheck.compare.MOST_QUERIES", 0)
    ragged = If(t.eq(t.and_(t.add(PORT, IN_PORT), number(3)), number(1)), CRASH, SILENT)
    found = crosscheck([bundle(SILENT, "one"), bundle(ragged, "two")])
    assert found.verdict == "differ"
    (cluster,) = found.clusters
    assert not cluster.covered
    assert len(cluster.findings) == 1


TIMES = """\
name = "times"
summary = "A rule that expires"
openflow = "1.0"

[[step]]
send = "flow_mod"
hard_timeout = { symbolic = true, default = 3 }

[[step]]
wait = "symbolic"
range_ms = [0, 9500]
"""
TIMEOUT, WAIT = t.var("m0.hard_timeout", 16), t.var("w1.ms", 32)


def expires(seconds_late: int) -> Tree:
    """An agent that crashes when its rule expires, so many seconds late."""
    seconds = t.add(t.zero_extend(16, TIMEOUT), t.const(seconds_late, 32))
    late = t.ult(WAIT, t.mul(seconds, t.const(1000, 32)))
    return If(t.eq(TIMEOUT, number(0)), SILENT, If(late, SILENT, (Crash(1, "SIGSEGV"),)))


@pytest.mark.parametrize("solver", ["z3", "bitwuzla"])
def test_a_time_that_moves_with_another_is_one_region(solver: str) -> None:
    scene = scenario(TIMES)
    found = crosscheck([bundle(expires(0), "one", scene), bundle(expires(2), "two", scene)], solver=solver)
    (finding,) = found.findings
    assert found.clusters[0].heading == (
        "flow_mod and wait with m0.hard_timeout ≠ 0, w1.ms from 1000·m0.hard_timeout to 1000·m0.hard_timeout + 1999: "
        "one crashes (SIGSEGV), two is silent"
    )
    assert finding.region.proved
    assert finding.region.exact
    assert finding.fields == ("m0.hard_timeout", "w1.ms")
    for timeout in (*range(12), 65535):
        for wait in {0, 9500, *(1000 * n + d for n in range(10) for d in (-1, 0, 1) if 0 <= 1000 * n + d <= 9500)}:
            differs = timeout > 0 and timeout * 1000 <= wait < timeout * 1000 + 2000
            assert finding.region.holds({"m0.hard_timeout": timeout, "w1.ms": wait}) == differs


def test_a_region_that_grew_from_a_corner_is_not_said_beside_the_whole() -> None:
    """At the longest timeout that may expire in time, the end of the wait comes first, and no bound moves with it."""
    scene = scenario(TIMES)
    tree = If(t.ult(t.const(8, 16), TIMEOUT), expires(0), expires(0))
    found = crosscheck([bundle(tree, "one", scene), bundle(expires(1), "two", scene)])
    (finding,) = found.findings
    assert finding.region.text == (
        "m0.hard_timeout ≠ 0, w1.ms from 1000·m0.hard_timeout to 1000·m0.hard_timeout + 999; everything else free"
    )
    assert finding.region.exact


def looks_every(period: int, phase: int) -> Tree:
    """An agent that crashes when it next looks, at every so many milliseconds, and its rule is over."""
    ticks = t.udiv(t.add(WAIT, t.const(period - phase, 32)), t.const(period, 32))
    last = t.sub(t.mul(ticks, t.const(period, 32)), t.const(period - phase, 32))
    seconds = t.mul(t.zero_extend(16, TIMEOUT), t.const(1000, 32))
    over = t.conj(t.ule(t.const(phase, 32), WAIT), t.ule(seconds, last))
    return If(t.eq(TIMEOUT, number(0)), SILENT, If(over, (Crash(1, "SIGSEGV"),), SILENT))


def test_a_time_that_is_looked_at_now_and_then_is_one_region() -> None:
    """No bound is in the conditions: they divide and multiply."""
    scene = scenario(TIMES)
    found = crosscheck([bundle(expires(0), "one", scene), bundle(looks_every(500, 300), "two", scene)])
    (finding,) = found.findings
    assert finding.region.text == (
        "m0.hard_timeout ≠ 0, w1.ms from 1000·m0.hard_timeout to 1000·m0.hard_timeout + 299; everything else free"
    )


SUMS = """\
name = "sums"
summary = "Two waits"
openflow = "1.0"

[[step]]
wait = "symbolic"
range_ms = [0, 3999]

[[step]]
wait = "symbolic"
range_ms = [0, 9000]
"""


def test_times_that_add_up_are_one_region() -> None:
    """What one wait is longer, the other one may be shorter."""
    scene = scenario(SUMS)
    first, second = t.var("w0.ms", 32), t.var("w1.ms", 32)
    crash: Trace = (Crash(1, "SIGSEGV"),)
    late = If(t.ult(t.add(first, second), t.const(5000, 32)), crash, SILENT)
    found = crosscheck([bundle(late, "one", scene), bundle(SILENT, "two", scene)])
    (finding,) = found.findings
    assert finding.region.text == "w1.ms ≤ 4999 - w0.ms; everything else free"
    assert finding.region.exact


PORTS = """\
name = "ports"
summary = "A rule for one port that outputs to another"
openflow = "1.0"

[[step]]
send = "flow_mod"
match = { in_port = "symbolic", wildcards = { in_port = "symbolic" } }
actions = [{ type = "output", port = "symbolic" }]
"""


@pytest.mark.parametrize("refused", [True, False])
def test_that_a_rule_outputs_to_its_own_port_is_one_region(refused: bool) -> None:
    scene = scenario(PORTS)
    exact = t.eq(t.var("m0.match.wildcards.in_port", 1), t.const(0, 1))
    same = t.eq(t.var("m0.match.in_port", 16), PORT)
    yes, no = (error(2, 4), SILENT) if refused else (SILENT, error(2, 4))
    found = crosscheck([bundle(If(exact, If(same, yes, no), no), "one", scene), bundle(SILENT, "two", scene)])
    (finding,) = found.findings
    said = "= m0.actions.0.port and not wildcarded" if refused else "≠ m0.actions.0.port or wildcarded"
    assert finding.region.text == f"m0.match.in_port {said}; everything else free"
    assert finding.region.exact


MATCH = """\
name = "match"
summary = "A rule and a probe that it may match"
openflow = "1.0"

[[step]]
send = "flow_mod"
match = { dl_src = "symbolic", wildcards = { dl_src = "symbolic" } }

[[step]]
probe = 1
packet = { kind = "eth", dl_src = "symbolic" }
"""


@pytest.mark.parametrize("matching", [True, False])
def test_that_a_rule_matches_a_probe_is_one_region(matching: bool) -> None:
    scene = scenario(MATCH)
    wild = t.eq(t.var("m0.match.wildcards.dl_src", 1), t.const(1, 1))
    matches = t.eq(t.var("m0.match.dl_src", 48), t.var("p1.dl_src", 48))
    crash: Trace = (Crash(1, "SIGSEGV"),)
    yes, no = (crash, SILENT) if matching else (SILENT, crash)
    found = crosscheck([bundle(If(wild, yes, If(matches, yes, no)), "one", scene), bundle(SILENT, "two", scene)])
    (finding,) = found.findings
    said = "= p1.dl_src or wildcarded" if matching else "≠ p1.dl_src and not wildcarded"
    assert finding.region.text == f"m0.match.dl_src {said}; everything else free"
    assert finding.region.exact
    assert finding.fields == ("m0.match.wildcards.dl_src", "m0.match.dl_src", "p1.dl_src")


def test_most_serious_first() -> None:
    bad = If(t.eq(PORT, number(7)), CRASH, If(t.eq(PORT, number(6)), error(2, 5), forward(1)))
    good = If(t.ult(PORT, number(6)), forward(2), error(2, 4))
    found = crosscheck([bundle(good, "good"), bundle(bad, "bad")])
    assert [cluster.severity for cluster in found.clusters] == ["crash", "forwarding", "different error"]
    assert "forwards the packet to port 2, bad forwards the packet to port 1" in found.clusters[1].heading


def test_names_the_odd_one_out() -> None:
    trees = {"one": REFERENCE, "two": REFERENCE, "three": If(t.eq(PORT, number(0)), CRASH, REFERENCE)}
    found = crosscheck([bundle(tree, label) for label, tree in trees.items()])
    assert [comparison.verdict for comparison in found.comparisons] == ["differ", "agree", "differ"] or {
        comparison.agents: comparison.verdict for comparison in found.comparisons
    } == {("one", "two"): "agree", ("one", "three"): "differ", ("two", "three"): "differ"}
    (cluster,) = found.clusters
    assert cluster.odd_one_out == "three"
    assert len(cluster.findings) == 2


def test_conditions_stand_alone_and_hold_for_the_example() -> None:
    import z3

    bundles = {"reference": bundle(REFERENCE, "reference"), "vswitch": bundle(OTHER, "vswitch")}
    found = crosscheck(list(bundles.values()))
    files = condition_files(found, bundles)
    for finding in found.findings:
        # A context of its own: definitions would stay in z3's main one, and angr's solver stumbles over them there.
        context = z3.Context()
        solver = z3.Solver(ctx=context)
        solver.from_string(files[finding.conditions].decode())
        for name, value in finding.example.values.items():
            solver.add(z3.BitVec(name, 16, context) == value)
        assert solver.check() == z3.sat


def test_marked_paths_are_doubts() -> None:
    found = crosscheck([bundle(REFERENCE, "one", marks=("approximate",)), bundle(REFERENCE, "two")])
    assert found.verdict == "unknown"
    assert found.comparisons[0].doubts[0].kind == "approximate"
    found = crosscheck([bundle(REFERENCE, "one"), bundle(REFERENCE, "two", marks=("approximate: ticks were skipped",))])
    assert found.verdict == "unknown"
    (doubt,) = found.comparisons[0].doubts
    assert (doubt.kind, doubt.agent) == ("approximate", "two")
    assert doubt.sentence.endswith(" paths of two may do something else: ticks were skipped.")


def no_answer(self: Solver, assumptions: Iterable[t.Term] = ()) -> Answer:
    return Answer.UNKNOWN


def test_what_the_solver_cannot_decide_is_never_called_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    one = bundle(If(t.ult(t.add(PORT, IN_PORT), number(3)), SILENT, error(2, 4)), "one")
    two = bundle(If(t.ult(t.add(IN_PORT, PORT), number(3)), SILENT, error(2, 4)), "two")
    assert crosscheck([one, two]).verdict == "agree"
    monkeypatch.setattr(Solver, "check", no_answer)
    found = crosscheck([one, two])
    assert found.verdict == "unknown"
    assert [doubt.kind for doubt in found.comparisons[0].doubts] == ["undecided"]


def test_witnesses_show_what_the_solver_cannot_find(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = bundle(SILENT, "good"), bundle(If(t.ult(t.add(PORT, IN_PORT), number(3)), CRASH, SILENT), "bad")
    monkeypatch.setattr(Solver, "check", no_answer)
    found = crosscheck([good, bad])
    assert found.verdict == "differ"
    (cluster,) = found.clusters
    assert cluster.severity == "crash"
    assert not cluster.covered


def test_refuses_what_cannot_be_compared() -> None:
    one = bundle(REFERENCE, "one")
    with pytest.raises(SoftError, match="two bundles"):
        crosscheck([one])
    text = scenario().text.replace("range = [0, 7] }, max_len", "range = [0, 6] }, max_len")
    with pytest.raises(SoftError, match="another scenario"):
        crosscheck([one, bundle(REFERENCE, "two", scenario(text))])


def test_refuses_bundles_that_contradict_themselves() -> None:
    good = bundle(REFERENCE, "good")
    lying = bundle(REFERENCE, "lying")
    lying.paths[0].witness.update({"m0.actions.0.port": 5})  # type: ignore[attr-defined]
    with pytest.raises(SoftError, match="witness of path 0"):
        crosscheck([good, lying])
    double = bundle(REFERENCE, "double")
    double.conditions[1] = t.negate(t.ult(PORT, number(3)))  # type: ignore[index]
    with pytest.raises(SoftError, match="takes both path"):
        crosscheck([good, double])


def test_labels_are_unique() -> None:
    assert unique_labels(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
