"""The frontier of an interrupted exploration, from its paths alone: what no path has taken yet.

The finished paths are a tree. Wherever the branches of a node leave something over, an input from there is a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.feasible import Component, Feasibility, GaveUp
from harness.path import Fork, Job
from harness.pieces import Pieces
from soft.bundle.model import Bundle
from soft.bundle.tree import Node, PathTree


def frontier(
    bundle: Bundle, feasibility: Feasibility, pieces: Pieces, gave_up: Callable[[], None] = lambda: None
) -> Iterator[Job]:
    """One job for every node of the tree with inputs that none of its branches take.

    `gave_up` is called where the solver cannot tell whether there are any.
    """
    if not bundle.paths:
        yield Job(bundle.scenario.defaults)
        return
    tree = PathTree(bundle)
    stack: list[tuple[Node, dict[str, Component]]] = [(tree.root, dict(feasibility.roots))]
    while stack:
        node, components = stack.pop()
        branches = tree.branches(node)
        if not branches:
            continue
        conditions = tuple(pieces.inside(bundle.conditions[branch.condition]) for branch in branches)
        try:
            left_over = feasibility.otherwise(components, conditions)
        except GaveUp:
            gave_up()
            left_over = None
        if left_over is not None:
            example = bundle.paths[tree.order[node.first]].witness
            yield Job({**pieces.split(example), **left_over}, fork=Fork(tree.stem(node), conditions))
        for branch, condition in zip(branches, conditions, strict=True):
            below = dict(components)
            feasibility.assume(below, condition)
            stack.append((branch.node, below))
