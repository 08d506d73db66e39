"""Whatever part of an exploration was finished, going on finds exactly the rest."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.explorer import Limits
from harness.feasible import Feasibility, GaveUp
from harness.resume import frontier
from soft.bundle.reader import read
from soft.bundle.writer import BundleWriter
from soft.trace import Message, Payload
from tests.harness import toy
from tests.harness.programs import INPUTS, Program, Search, programs


def test_what_the_solver_cannot_tell_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.explore("branches", tmp_path, limits=Limits(paths=3))

    def give_up(*_: object) -> None:
        raise GaveUp

    exploration = toy.exploration("branches", tmp_path, resume=True)
    monkeypatch.setattr(Feasibility, "otherwise", give_up)
    manifest, _ = exploration.run()
    assert manifest.reasons == ("Not followed: what the solver could not tell when the exploration was resumed.",)


@settings(max_examples=40, deadline=None)
@given(programs(), st.integers(0, (1 << len(INPUTS)) - 1))
def test_the_rest_is_found_and_nothing_twice(program: Program, chosen: int) -> None:
    search = Search(program)
    found = search.all()
    finished = [each for number, each in enumerate(found) if chosen >> number & 1]
    with tempfile.TemporaryDirectory() as directory:
        writer = BundleWriter(f"{directory}/bundle", search.scenario, "program")
        for each in finished:
            trace = (Message(0, Payload.of(repr(each.way).encode())),)
            assert writer.add_path(each.conditions, trace, each.witness)
        writer.finish(False, ("A test.",))
        bundle = read(f"{directory}/bundle")
    again = Search(program)
    rest = again.all(frontier(bundle, again.feasibility, again.pieces))
    ways = [each.way for each in rest]
    assert len(set(ways)) == len(ways)
    assert set(ways) == {each.way for each in found} - {each.way for each in finished}
    # The same paths, with the same conditions: whoever compares bundles sees no trace of the interruption.
    assert {each.conditions for each in rest} <= {each.conditions for each in found}
