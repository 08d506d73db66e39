"""A disagreement is shrunk to the fields that show it."""

from __future__ import annotations

from collections.abc import Mapping

from soft.bundle.model import Bundle
from soft.bundle.tree import PathTree
from soft.replay.shrink import prediction, shrink
from soft.replay.stage import Observation
from soft.solve import terms as t
from soft.trace import Trace
from tests.soft.crosscheck.agents import CRASH, IN_PORT, MAX_LEN, PORT, SILENT, If, Tree, bundle, error, number, respond


class Played:
    """A stage whose live agent is a decision tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.played = 0

    @property
    def moves_clock(self) -> bool:
        return False

    def again(self, values: Mapping[str, int]) -> Trace | None:
        self.played += 1
        return respond(self._tree, values)

    def fresh(self, values: Mapping[str, int]) -> Trace:
        return respond(self._tree, values)

    def visible(self, trace: Trace) -> Trace:
        return trace


MODEL = If(t.ult(number(4), PORT), error(2, 4), SILENT)
# The live agent crashes where two fields meet, whatever the third.
LIVE = If(t.conj(t.eq(PORT, number(6)), t.ult(number(2), IN_PORT)), CRASH, MODEL)


def shrunk(model: Bundle, values: dict[str, int]) -> tuple[dict[str, int], Observation]:
    tree = PathTree(model)
    expected = prediction(model, tree, values)
    assert expected is not None
    seen = Observation(expected, respond(LIVE, values))
    assert not seen.agrees
    found, observation = shrink(model, tree, Played(LIVE), values, seen)
    return dict(found), observation


START = {"m0.in_port": 7, "m0.actions.0.port": 6, "m0.actions.0.max_len": 200}


def test_fields_that_do_not_matter_get_their_defaults() -> None:
    model = bundle(MODEL, "model")
    defaults = model.scenario.defaults
    found, observation = shrunk(model, START)
    assert found == {**START, "m0.actions.0.max_len": defaults["m0.actions.0.max_len"]}
    assert observation.expected == error(2, 4)
    assert observation.seen == CRASH


def test_where_the_bundle_says_nothing_nothing_is_changed() -> None:
    split = If(t.eq(MAX_LEN, number(200)), MODEL, SILENT)
    whole = bundle(split, "model")
    others = {n for n, path in enumerate(whole.paths) if path.witness["m0.actions.0.max_len"] != 200}
    found, _ = shrunk(bundle(split, "model", skip=others), START)
    assert found == START


def test_a_prediction_for_any_input() -> None:
    model = bundle(MODEL, "model")
    tree = PathTree(model)
    assert prediction(model, tree, START) == error(2, 4)
    assert prediction(model, tree, {**START, "m0.actions.0.port": 1}) == SILENT
    partial = bundle(MODEL, "model", skip={0})
    assert prediction(partial, PathTree(partial), START) is None


def test_what_holds_for_its_witness_only_predicts_nothing_else() -> None:
    model = bundle(MODEL, "model", marks=("approximate",))
    tree = PathTree(model)
    witness = dict(model.paths[0].witness)
    assert prediction(model, tree, witness) == error(2, 4)
    assert prediction(model, tree, {**witness, "m0.actions.0.max_len": 5, "m0.in_port": 3}) is None
