"""The paths of a bundle as the tree that the runs made: paths with the same first conditions share their stem.

The tree is not built: it is a sorted order of the paths, and a node is a range in it. That costs a few bytes a path.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soft.bundle.model import Bundle
from soft.bundle.tables import PathTable
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term


@dataclass(frozen=True, slots=True)
class Node:
    """All paths whose runs agree in their first `depth` conditions: places `first` up to `last` in the tree's order."""

    first: int
    last: int
    depth: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to go on from a node: the condition, and where it leads."""

    condition: int
    node: Node


class PathTree:
    """The tree over the paths of a bundle. Every path is a leaf; `order[place]` is its number in the bundle."""

    def __init__(self, bundle: Bundle) -> None:
        paths = bundle.paths
        if isinstance(paths, PathTable):
            rows: Sequence[array[int]] = [paths.conditions(number) for number in range(len(paths))]
        else:
            rows = [array("I", path.conditions) for path in paths]
        self.bundle = bundle
        # Ordered as rows of big-endian numbers, a path comes right before those that go on where it ends.
        self.order = sorted(range(len(rows)), key=lambda number: _big_endian(rows[number]))
        self._rows = [rows[number] for number in self.order]
        self.root = Node(0, len(rows), 0)

    def ends(self, node: Node) -> list[int]:
        """The places of the paths that end at a node: in a sound bundle one at a leaf, and none elsewhere."""
        place = node.first
        while place < node.last and len(self._rows[place]) == node.depth:
            place += 1
        return list(range(node.first, place))

    def branches(self, node: Node) -> list[Branch]:
        """The ways to go on, in the tree's order."""
        rows, depth = self._rows, node.depth
        place = node.first
        while place < node.last and len(rows[place]) == depth:
            place += 1
        found = []
        while place < node.last:
            condition = rows[place][depth]
            # Most nodes have one or two branches: look at the far end first, then halve.
            low, high = place + 1, node.last
            if rows[high - 1][depth] == condition:
                low = high
            while low < high:
                middle = (low + high) // 2
                if rows[middle][depth] == condition:
                    low = middle + 1
                else:
                    high = middle
            found.append(Branch(condition, Node(place, low, depth + 1)))
            place = low
        return found

    def stem(self, node: Node) -> tuple[Term, ...]:
        """The conditions on the way to a node."""
        conditions = self.bundle.conditions
        return tuple(conditions[index] for index in self._rows[node.first][: node.depth])

    def locate(self, values: Mapping[str, int]) -> list[int]:
        """The numbers of the paths that an input takes: one in a complete bundle, at most one in a partial one."""
        memo: dict[Term, int] = {}
        found = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            found += [self.order[place] for place in self.ends(node)]
            for branch in self.branches(node):
                if evaluate(self.bundle.conditions[branch.condition], values, memo):
                    stack.append(branch.node)
        return sorted(found)


def _big_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        return numbers.tobytes()
    swapped = array("I", numbers)
    swapped.byteswap()
    return swapped.tobytes()
