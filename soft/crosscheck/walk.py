"""Both agents' trees of paths, walked together: which outputs meet on one input, and where.

The walk goes down in the larger of the two trees, cuts where the conditions contradict each other, and stops as soon
as all paths below one node have one output and all below the other have one: then it matters no more which path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from soft.bundle.model import Bundle
from soft.bundle.tables import PathTable
from soft.bundle.tree import Node, PathTree
from soft.crosscheck.outputs import Outputs
from soft.crosscheck.space import Space, State
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

# Two agents of 100,000 paths with as many overlaps need some million steps, at 10 to 30 µs each.
MOST_STEPS = 20_000_000
# Steps after which it is asked whether to go on: a few milliseconds.
_STEPS = 256


@dataclass(slots=True, eq=False)
class Twig:
    """A node of a tree of paths that branches or ends. `conditions` lead to it from its parent.

    `output` is the one output of all paths below, or -1.
    """

    node: Node
    conditions: tuple[Term, ...]
    parent: Twig | None
    output: int
    ends: bool
    children: list[Twig] | None = None
    # There are two children, and one has the condition that the other negates.
    halves: bool = False
    # On the way from the root no input could have gone two ways.
    sure: bool = True

    @property
    def size(self) -> int:
        return self.node.last - self.node.first

    def stem(self) -> list[Term]:
        """All conditions from the root."""
        parts = []
        twig: Twig | None = self
        while twig is not None:
            parts.append(twig.conditions)
            twig = twig.parent
        return [condition for part in reversed(parts) for condition in part]


class Side:
    """One agent's bundle, ready to be walked. `whole`: it is proved that the paths cover the whole input space."""

    def __init__(self, bundle: Bundle, outputs: Outputs, space: Space, *, whole: bool) -> None:
        self.bundle = bundle
        self.whole = whole
        self._space = space
        self._exclusive: dict[tuple[Term, ...], bool] = {}
        self._tree = PathTree(bundle)
        numbers = outputs.add(bundle.traces)
        found = [numbers[trace] for trace in _traces_of(bundle.paths, self._tree.order)]
        # For each place in the tree's order, the first place behind it that has another output.
        self._outputs = found
        self._runs = list(range(1, len(found) + 1))
        for place in range(len(found) - 2, -1, -1):
            if found[place] == found[place + 1]:
                self._runs[place] = self._runs[place + 1]
        self.root = self._twig(self._tree.root, (), None)

    def children(self, twig: Twig) -> list[Twig]:
        """The ways to go on from a twig, each up to where it branches again."""
        if twig.children is None:
            tree, conditions = self._tree, self.bundle.conditions
            branches = tree.branches(twig.node)
            first = tuple([conditions[branch.condition] for branch in branches])
            twig.halves = len(first) == 2 and first[0] is terms.negate(first[1])
            sure = twig.sure and (twig.halves or self._one_way(first))
            twig.children = []
            for branch, condition in zip(branches, first, strict=True):
                node, way = branch.node, [condition]
                while len(ahead := tree.branches(node)) == 1 and not tree.ends(node):
                    node = ahead[0].node
                    if not (self.whole and sure):
                        # Where nothing is left out, the only way to go on follows from what is known.
                        way.append(conditions[ahead[0].condition])
                twig.children.append(self._twig(node, tuple(way), twig, sure))
        return twig.children

    def covers(self, twig: Twig) -> bool:
        """Whether every input that gets to a twig takes a path below it."""
        return twig.ends or (self.whole and twig.sure)

    def _one_way(self, first: tuple[Term, ...]) -> bool:
        """Whether no input satisfies two of the conditions by which a tree branches.

        An agent goes one way; a stranger's paths may be a partition all the same if they are told apart further down.
        """
        known = self._exclusive.get(first)
        if known is None:
            known = self._exclusive[first] = len(first) < 2 or self._disjoint(first)
        return known

    def _disjoint(self, conditions: tuple[Term, ...]) -> bool:
        space = self._space
        for place, condition in enumerate(conditions):
            state = space.assume(space.everything, condition)
            if state is not None and any(space.assume(state, other) is not None for other in conditions[:place]):
                return False
        return True

    def follow(self, values: Mapping[str, int], memo: dict[Term, int] | None = None) -> Twig | None:
        """Where an input ends; None if it was not explored."""
        memo = {} if memo is None else memo
        stack = [self.root]
        while stack:
            twig = stack.pop()
            if all(evaluate(condition, values, memo) for condition in twig.conditions):
                if twig.ends:
                    return twig
                stack += reversed(self.children(twig))
        return None

    def path(self, twig: Twig) -> int:
        """The number of the path that ends at a twig, or of the first one below it."""
        return self._tree.order[twig.node.first]

    def _twig(self, node: Node, conditions: tuple[Term, ...], parent: Twig | None, sure: bool = True) -> Twig:
        uniform = node.first < node.last and self._runs[node.first] >= node.last
        output = self._outputs[node.first] if uniform else -1
        return Twig(node, conditions, parent, output, bool(self._tree.ends(node)), sure=sure)


def _traces_of(paths: Sequence[object], order: Sequence[int]) -> list[int]:
    if isinstance(paths, PathTable):
        return [paths.trace(number) for number in order]
    return [paths[number].trace for number in order]  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Inputs on which both agents have one output each: those of `state`."""

    left: Twig
    right: Twig
    state: State


class TooMany(Exception):
    """Two trees have more nodes in common than can be looked at."""


def overlaps(
    space: Space, left: Side, right: Side, outputs: Outputs, start: State, *, agreeing: bool = False
) -> Iterator[Overlap]:
    """Where different outputs meet within `start`; with `agreeing`, also where equal ones do.

    Overlaps are disjoint, and together they are all of `start` that both sides explored and, without `agreeing`, that
    is not equal at sight. Raises TooMany after MOST_STEPS, and Stopped.
    """
    stack = [(left.root, right.root, start)]
    steps = 0
    while stack:
        steps += 1
        if steps > MOST_STEPS:
            raise TooMany
        if not steps % _STEPS:
            space.stop.check()
        a, b, state = stack.pop()
        if a.output >= 0 and b.output >= 0:
            if not agreeing and not outputs.difference(a.output, b.output):
                continue
            # Below a node of a partial bundle there may be nothing at all: go on to where a path is.
            if left.covers(a) and right.covers(b):
                yield Overlap(a, b, state)
                continue
            down = not left.covers(a)
        elif a.output >= 0:
            down = False
        else:
            down = b.output >= 0 or a.size >= b.size
        side, twig = (left, a) if down else (right, b)
        for child, inner in _branches(space, side, twig, state):
            stack.append((child, b, inner) if down else (a, child, inner))


def _branches(space: Space, side: Side, twig: Twig, state: State) -> Iterator[tuple[Twig, State]]:
    children = side.children(twig)
    if twig.halves and side.whole and twig.sure:
        first, second = children
        inner = space.assume(state, first.conditions[0])
        if inner is None or inner is state:
            # One half is the whole, the other is empty.
            yield (second if inner is None else first), state
            return
        yield first, inner
        other = space.assume(state, second.conditions[0])
        if other is not None:
            yield second, other
        return
    for child in children:
        found = space.assume_all(state, child.conditions)
        if found is not None:
            yield child, found
        if found is state and child.sure:
            return  # all of it goes this way
