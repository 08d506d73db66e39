"""Shrink a disagreement: set fields back to their defaults, one by one, as long as the agent still disagrees."""

from __future__ import annotations

from collections.abc import Mapping

from soft.bundle.model import Bundle
from soft.bundle.tree import PathTree
from soft.replay.stage import Observation, Stage, observe
from soft.solve.evaluate import evaluate
from soft.trace import Trace, evaluate_trace


def prediction(bundle: Bundle, tree: PathTree, values: Mapping[str, int]) -> Trace | None:
    """What a bundle says about any input. None if it says nothing: not explored, or valid for its witness only."""
    found = tree.locate(values)
    if len(found) != 1:
        return None
    path = bundle.paths[found[0]]
    if "approximate" in path.marks and dict(path.witness) != dict(values):
        return None
    return evaluate_trace(bundle.traces[path.trace], values)


def shrink(
    bundle: Bundle, tree: PathTree, stage: Stage, values: Mapping[str, int], observation: Observation
) -> tuple[Mapping[str, int], Observation]:
    """An input that differs from the defaults in the fewest fields and still shows a disagreement, and what was seen.

    No single field of it can be set to its default without the disagreement going away.
    """
    scenario = bundle.scenario
    current = scenario.complete(values)
    changed = True
    while changed:
        changed = False
        for variable in scenario.variables:
            if current[variable.name] == variable.default:
                continue
            candidate = {**current, variable.name: variable.default}
            if not all(evaluate(condition, candidate) for condition in scenario.domain):
                continue
            expected = prediction(bundle, tree, candidate)
            if expected is None:
                continue
            seen = observe(stage, candidate, expected)
            if not seen.agrees:
                current, observation, changed = candidate, seen, True
    return current, observation
