"""A sound bundle is proved sound; each way of being unsound is found, with an input that shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft.bundle.check import check, require_sound, same_paths
from soft.bundle.model import Bundle, Counts, Manifest
from soft.bundle.model import Path as BundlePath
from soft.bundle.partition import Gap, PartitionCheck
from soft.bundle.reader import read
from soft.bundle.tree import PathTree
from soft.errors import SoftError
from soft.scenarios.model import Scenario, Variable
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Solver
from soft.solve.terms import Term
from tests.soft.bundle.example import BUFFER, PORT, agent_runs, scenario, witness, write


def bundle_of(paths: list[tuple[Term, ...]], *, complete: bool = True) -> Bundle:
    """A bundle in memory with the given paths; witnesses only where asked for."""
    conditions: dict[Term, int] = {}
    rows = [tuple(conditions.setdefault(term, len(conditions)) for term in path) for path in paths]
    manifest = Manifest(
        1, "tiny", "", "agent", "0", Counts(len(rows), 1, 0, len(conditions)), complete, () if complete else ("x",)
    )
    return Bundle(manifest, scenario(), list(conditions), [()], [BundlePath(row, 0, {}) for row in rows])


def defects(paths: list[tuple[Term, ...]], *, complete: bool = True) -> list[str]:
    check = PartitionCheck(bundle_of(paths, complete=complete), covering=complete)
    return sorted(type(defect).__name__ for defect in check.defects())


@pytest.mark.parametrize("solver", ["z3", "bitwuzla"])
def test_the_example_is_sound(tmp_path: Path, solver: str) -> None:
    verdict = check(read(write(tmp_path / "b")), partition=True, solver=Solver(solver))
    assert verdict.sound
    assert (verdict.witnesses, verdict.disjoint, verdict.covered) == (True, True, True)


@pytest.mark.parametrize("missing", range(12))
def test_a_missing_path_is_a_gap_with_an_input_in_it(tmp_path: Path, missing: int) -> None:
    runs = list(agent_runs())
    (lost, _) = runs.pop(missing)
    bundle = read(write(tmp_path / "b", runs))
    verdict = check(bundle, partition=True)
    assert (verdict.disjoint, verdict.covered) == (True, False)
    (problem,) = verdict.problems
    assert problem.kind == "gap"
    assert problem.input is not None
    assert all(evaluate(term, problem.input) for term in (*lost, *bundle.scenario.domain))


def test_a_partial_bundle_need_not_cover_everything(tmp_path: Path) -> None:
    bundle = read(write(tmp_path / "b", list(agent_runs())[:5], complete=False))
    verdict = check(bundle, partition=True)
    assert verdict.sound
    assert (verdict.disjoint, verdict.covered) == (True, None)
    # But where the gaps are can be asked.
    tree = PathTree(bundle)
    gaps = [defect for defect in PartitionCheck(bundle).defects() if isinstance(defect, Gap)]
    assert gaps
    for gap in gaps:
        assert all(evaluate(term, gap.input) for term in gap.conditions)
        assert tree.locate(gap.input) == []


def test_a_wrong_witness_is_found(tmp_path: Path) -> None:
    bundle = read(write(tmp_path / "b"))
    paths = list(bundle.paths)
    paths[3] = replace(paths[3], witness=paths[4].witness)
    paths[5] = replace(paths[5], witness={**paths[5].witness, "m0.in_port": 0})
    verdict = check(replace(bundle, paths=paths))
    assert [problem.paths for problem in verdict.problems] == [(3,), (5,)]
    assert "contradicts the path's condition" in verdict.problems[0].sentence
    assert "outside the scenario's domain" in verdict.problems[1].sentence
    with pytest.raises(SoftError, match="The witness of path 3 contradicts"):
        require_sound(replace(bundle, paths=paths))


def test_overlapping_paths_are_found(tmp_path: Path) -> None:
    runs = list(agent_runs())
    broad = (t.eq(BUFFER, t.const(0xFFFFFFFF, 32)), t.ult(PORT, t.const(3, 16)))
    bundle = read(write(tmp_path / "b", [*runs, (broad, ())]))
    verdict = check(bundle, partition=True)
    assert verdict.disjoint is False
    for problem in verdict.problems:
        assert problem.kind == "overlap"
        assert problem.input is not None
        for number in problem.paths:
            path = bundle.paths[number]
            assert all(evaluate(term, problem.input) for term in bundle.terms_of(path))
    with pytest.raises(SoftError, match="One input takes both path"):
        require_sound(bundle)


A, B, C = (
    t.ult(t.var(name, 16), t.const(7, 16)) for name in ("m0.in_port", "m0.actions.0.port", "m0.actions.0.max_len")
)
NOT_A, NOT_B, NOT_C = map(t.negate, (A, B, C))


def test_trees_of_all_kinds() -> None:
    assert defects([()]) == []
    assert defects([]) == ["Gap"]
    assert defects([(), ()]) == ["Overlap"]
    assert defects([(A,), (NOT_A,)]) == []
    assert defects([(A,), (NOT_A, B)]) == ["Gap"]
    assert defects([(A,), (NOT_A, B)], complete=False) == []
    assert defects([(A, B), (A,), (NOT_A,)]) == ["Overlap"]
    # The domain says in_port is 1 to 100: what is outside needs no path.
    assert defects([(t.ult(t.var("m0.in_port", 16), t.const(101, 16)),)]) == []
    # Three ways, none the negation of another.
    five, six = t.eq(BUFFER, t.const(5, 32)), t.eq(BUFFER, t.const(6, 32))
    assert defects([(five,), (six,), (t.ne(BUFFER, t.const(5, 32)), t.ne(BUFFER, t.const(6, 32)))]) == []
    assert defects([(five,), (six,)]) == ["Gap"]


def test_paths_that_are_no_tree_are_judged_by_their_inputs() -> None:
    # Branches overlap at the root, the paths below do not.
    assert defects([(A, B), (B, NOT_A), (NOT_B,)]) == []
    assert set(defects([(A, B), (B, NOT_A), (NOT_B, C)])) == {"Gap"}
    assert set(defects([(A, B), (B, C), (NOT_B,)])) == {"Gap", "Overlap"}


CONDITIONS = [A, B, C, NOT_A, NOT_B, NOT_C, t.eq(PORT, t.var("m0.in_port", 16)), t.ult(PORT, t.const(3, 16))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(CONDITIONS), max_size=3).map(tuple), min_size=1, max_size=5))
def test_any_paths_against_brute_force(paths: list[tuple[Term, ...]]) -> None:
    # Every class of inputs that the conditions can tell apart has one of these.
    samples = [
        {"m0.buffer_id": 0, "m0.in_port": a, "m0.actions.0.port": b, "m0.actions.0.max_len": c}
        for a in (1, 2, 3, 6, 7, 9)
        for b in (0, 1, 2, 3, 6, 7, 8, 9)
        for c in (0, 7)
    ]
    taken = [sum(all(evaluate(term, sample) for term in path) for path in paths) for sample in samples]
    # A path that no input takes is no path of any run; the checks are about those that have a witness.
    sane = [path for path in paths if any(all(evaluate(term, s) for term in path) for s in samples)]
    found = PartitionCheck(_with_witnesses(sane, samples)).defects()
    kinds = {type(defect).__name__ for defect in found}
    assert ("Overlap" in kinds) == any(count > 1 for count in taken)
    assert ("Gap" in kinds) == any(count < 1 for count in taken)


def _with_witnesses(paths: list[tuple[Term, ...]], samples: list[dict[str, int]]) -> Bundle:
    bundle = bundle_of(paths)
    found = [next(s for s in samples if all(evaluate(term, s) for term in path)) for path in paths]
    return replace(bundle, paths=[replace(p, witness=w) for p, w in zip(bundle.paths, found, strict=True)])


def test_each_input_takes_one_path(tmp_path: Path) -> None:
    bundle = read(write(tmp_path / "b"))
    tree = PathTree(bundle)
    for number, path in enumerate(bundle.paths):
        assert tree.locate(path.witness) == [number]


def test_the_same_paths_in_another_order_are_the_same(tmp_path: Path) -> None:
    runs = list(agent_runs())
    whole = read(write(tmp_path / "a", runs))
    other = replace(whole, paths=[replace(path, witness={}, marks=()) for path in reversed(whole.paths)])
    assert same_paths(whole, other)
    assert not same_paths(whole, read(write(tmp_path / "c", runs[1:])))
    changed = [(conditions, () if number == 1 else trace) for number, (conditions, trace) in enumerate(runs)]
    assert not same_paths(whole, read(write(tmp_path / "d", changed)))


def test_ten_thousand_paths_are_proved_quickly() -> None:
    """A complete binary tree over 13 fields: no solver is needed where a branch has its negation."""
    variables = tuple(Variable(f"f{number}", 8, 0) for number in range(13))
    small = [t.ult(variable.term, t.const(9, 8)) for variable in variables]
    paths = [
        tuple(small[bit] if number >> bit & 1 else t.negate(small[bit]) for bit in range(13))
        for number in range(1 << 13)
    ]
    bundle = bundle_of(paths)
    wide = Scenario("wide", "", "1.0", 4, (), variables, (), "", "")
    proof = PartitionCheck(replace(bundle, scenario=wide))
    assert list(proof.defects()) == []
    assert proof.effort.queries == 0
    broken = PartitionCheck(replace(bundle, scenario=wide, paths=bundle.paths[:-1]))
    (gap,) = broken.defects()
    assert isinstance(gap, Gap)
    assert not any(all(evaluate(term, gap.input) for term in path) for path in paths[:-1])


def test_the_witness_of_the_example_is_in_the_domain() -> None:
    assert 1 <= witness((A,))["m0.in_port"] < 7
