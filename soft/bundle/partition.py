"""Prove that the paths of a bundle are a partition: no input takes two of them, and every input takes one.

At each node of the tree of paths, two things are to be proved: the branches exclude each other, and together they leave
nothing out. A branch and its negation need no solver. For the rest, a query holds only those conditions on the way
that share a variable, directly or through others, with the branches, and equal queries are asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from soft.bundle.model import Bundle
from soft.bundle.tree import Node, PathTree
from soft.solve import terms
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term

# Steps of the search below one pair of branches that do not exclude each other. In the tree of real runs there is none.
MOST_MEETINGS = 10_000

# A group of conditions that share variables, with these variables.
Component = tuple[frozenset[str], tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """An input that takes two paths."""

    paths: tuple[int, int]
    input: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Gap:
    """Inputs that take no path: those that satisfy `conditions`. `input` is one of them."""

    conditions: tuple[Term, ...]
    input: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Undecided:
    """The solver gave up at a node: neither overlap nor gap is excluded there."""

    conditions: tuple[Term, ...]


Defect = Overlap | Gap | Undecided


@dataclass(slots=True)
class Effort:
    """What a proof took."""

    nodes: int = 0
    queries: int = 0
    cached: int = 0


@dataclass(slots=True)
class PartitionCheck:
    """Walks the tree of a bundle's paths. `covering` also looks for gaps."""

    bundle: Bundle
    solver: Solver = field(default_factory=Solver)
    covering: bool = True
    progress: Callable[[int], object] | None = None  # called with the number of paths done
    effort: Effort = field(default_factory=Effort)
    _answers: dict[frozenset[Term], Answer] = field(default_factory=dict)
    _tree: PathTree = field(init=False)

    def __post_init__(self) -> None:
        self._tree = PathTree(self.bundle)

    def defects(self) -> Iterator[Defect]:
        """Every node where the paths are no partition. None: it is proved that they are one."""
        tree, conditions = self._tree, self.bundle.conditions
        components: tuple[Component, ...] = ()
        for term in self.bundle.scenario.domain:
            components = _joined(components, term)
        stack = [(tree.root, components)]
        while stack:
            node, components = stack.pop()
            self.effort.nodes += 1
            ends, branches = tree.ends(node), tree.branches(node)
            if ends:
                yield from self._double(node, ends)
                if self.progress:
                    self.progress(len(ends))
            choices = [conditions[branch.condition] for branch in branches]
            yield from self._exclusive(components, choices, [branch.node for branch in branches])
            if self.covering and not ends:
                yield from self._covered(components, choices)
            stack += [
                (branch.node, _joined(components, choice))
                for branch, choice in zip(reversed(branches), reversed(choices), strict=True)
            ]

    def _double(self, node: Node, ends: list[int]) -> Iterator[Defect]:
        """A path may not end where another one ends or goes on."""
        if node.last - node.first > 1:
            first, second = (self._tree.order[place] for place in (ends[0], node.first + 1))
            yield Overlap((first, second), self.bundle.paths[second].witness)

    def _exclusive(self, components: tuple[Component, ...], choices: list[Term], nodes: list[Node]) -> Iterator[Defect]:
        """The branches of a node exclude each other, or at least what is below them does."""
        if len(choices) < 2 or _complementary(choices) or _different_values(choices):
            return
        for number in range(1, len(choices)):
            if self._ask(components, [choices[number], terms.disj(*choices[:number])]) is Answer.UNSAT:
                continue
            for other in range(number):
                pair = [choices[number], choices[other]]
                if self._ask(components, pair) is not Answer.UNSAT:
                    both = _joined(_joined(components, pair[0]), pair[1])
                    yield from self._meet(both, nodes[number], nodes[other])

    def _meet(self, components: tuple[Component, ...], left: Node, right: Node) -> Iterator[Defect]:
        """Look for an input that takes a path below each of two nodes, walking down both."""
        tree = self._tree
        stack = [(left, right, components)]
        for _ in range(MOST_MEETINGS):
            if not stack:
                return
            left, right, components = stack.pop()
            lefts, rights = tree.ends(left), tree.ends(right)
            if lefts and rights:
                answer, values = self._model(components, [])
                if answer is Answer.SAT:
                    first, second = sorted((tree.order[lefts[0]], tree.order[rights[0]]))
                    yield Overlap((first, second), values)
                    return
                if answer is Answer.UNKNOWN:
                    break
            for branch in tree.branches(right if lefts else left):
                choice = self.bundle.conditions[branch.condition]
                if self._ask(components, [choice]) is not Answer.UNSAT:
                    pair = (left, branch.node) if lefts else (branch.node, right)
                    stack.append((*pair, _joined(components, choice)))
        yield Undecided(_all(components))

    def _covered(self, components: tuple[Component, ...], choices: list[Term]) -> Iterator[Defect]:
        """The branches of a node leave nothing out."""
        if _complementary(choices):
            return
        rest = [terms.negate(choice) for choice in choices]
        if self._ask(components, rest) is Answer.UNSAT:
            return
        for _ in range(MOST_MEETINGS):
            answer, values = self._model(components, rest)
            if answer is Answer.UNSAT:
                return
            if answer is Answer.UNKNOWN:
                break
            elsewhere = self._tree.locate(values)
            if not elsewhere:
                yield Gap((*_all(components), *rest), values)
                return
            # Branches further up overlap, and the input takes a path there: look for another one.
            rest.append(terms.negate(terms.conj(*self.bundle.terms_of(self.bundle.paths[elsewhere[0]]))))
        yield Undecided((*_all(components), *rest))

    def _ask(self, components: tuple[Component, ...], claims: Sequence[Term]) -> Answer:
        """Are the claims possible after the conditions on the way? Only what shares variables with them counts."""
        names = frozenset[str]().union(*[claim.variables for claim in claims])
        query = [*claims]
        for variables, conditions in components:
            if not variables.isdisjoint(names):
                query += conditions
        key = frozenset(query)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self.solver.check(query)
            self.effort.queries += 1
        else:
            self.effort.cached += 1
        return answer

    def _model(self, components: tuple[Component, ...], claims: Sequence[Term]) -> tuple[Answer, dict[str, int]]:
        answer = self.solver.check([*_all(components), *claims])
        self.effort.queries += 1
        return answer, self.solver.model(self.bundle.variables) if answer is Answer.SAT else {}


def _joined(components: tuple[Component, ...], term: Term) -> tuple[Component, ...]:
    """Add a condition: the groups that it connects become one."""
    apart: list[Component] = []
    variables, conditions = term.variables, [term]
    for component in components:
        if component[0].isdisjoint(term.variables):
            apart.append(component)
        else:
            variables |= component[0]
            conditions[:0] = component[1]
    return (*apart, (variables, tuple(conditions)))


def _all(components: tuple[Component, ...]) -> tuple[Term, ...]:
    return tuple(term for _, conditions in components for term in conditions)


def _complementary(choices: list[Term]) -> bool:
    return len(choices) == 2 and choices[0] is terms.negate(choices[1])


def _different_values(choices: list[Term]) -> bool:
    """Whether the choices are values of one term: `t = 1`, `t = 2`, ... exclude each other."""
    if any(choice.op != "=" or choice.args[1].op != "const" for choice in choices):
        return False
    values = {choice.args[1] for choice in choices}
    return len({choice.args[0] for choice in choices}) == 1 and len(values) == len(choices)
