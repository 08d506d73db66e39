"""`--engine angr`: angr's own engine finds what the compiled one finds."""

from __future__ import annotations

from pathlib import Path

from harness.oracle import StockMachine, StockRunner
from harness.path import Job
from harness.run import Runner
from soft.bundle.check import check
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.crosscheck.crosscheck import crosscheck
from soft.solve.solver import Solver
from tests.harness import toy
from tests.harness.kernel import lab


def same_behaviour(ours: Bundle, oracle: Bundle) -> bool:
    """Both cover the whole input space, and no input makes them differ."""
    for bundle in (ours, oracle):
        verdict = check(bundle, partition=True, solver=Solver("z3"))
        assert verdict.sound
        assert verdict.disjoint
        assert verdict.covered
    return not crosscheck([ours, oracle]).findings


def test_the_same_partition_where_lengths_are_symbolic(tmp_path: Path) -> None:
    assert toy.explore("lengths", tmp_path / "ours")[0].complete
    assert toy.explore("lengths", tmp_path / "oracle", engine="angr")[0].complete
    assert same_behaviour(read(tmp_path / "ours"), read(tmp_path / "oracle"))


def test_the_same_ends(tmp_path: Path) -> None:
    toy.explore("ends", tmp_path / "ours")
    toy.explore("ends", tmp_path / "oracle", engine="angr")
    ours, oracle = read(tmp_path / "ours"), read(tmp_path / "oracle")
    assert oracle.manifest.reasons == ours.manifest.reasons
    assert {conditions for conditions, _ in toy.paths(oracle)} == {conditions for conditions, _ in toy.paths(ours)}
    assert not crosscheck([ours, oracle]).findings


def test_every_block_is_angr_s() -> None:
    scenario = toy.scenario("branches")
    stock, ours = (kind(lab.snapshot("symbolic"), scenario) for kind in (StockRunner, Runner))
    assert isinstance(stock.machine, StockMachine)
    job = Job(scenario.defaults | {scenario.variable_names[0]: 77})
    mine, theirs = ours.run(job), stock.run(job)
    assert (mine.trace, mine.blocks) == (theirs.trace, theirs.blocks)
    assert stock.machine.covered() == ours.machine.covered()
