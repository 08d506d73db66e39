"""From one input on which two agents differ to the region of all inputs around it that differ in the same way.

First each field by itself: with all others as in the example, which of its values keep the behaviours? These *lines*
bound every region around the example, so a region that has them as its sides is tight. Whether all combinations keep
the behaviours too is then proved by walking both trees within the region. An input that does not is a pair (or more) of
fields that act together: the region gives way in one of them, as little as possible, until the proof succeeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from soft.crosscheck.behaviour import Way, way_of
from soft.crosscheck.model import Relation
from soft.crosscheck.outputs import Outputs
from soft.crosscheck.space import Input, Space, State
from soft.crosscheck.substitute import substitute
from soft.crosscheck.values import Intervals, complement, contains, count, includes, intersect, single, union, without
from soft.crosscheck.walk import Overlap, Side, Twig, overlaps
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import TRUE, Term

# Times that a region gives way before it shrinks to the fields' values in the example.
_MOST_REPAIRS = 24
# Overlaps that one proof may look at; past this the region counts as not proved and shrinks.
_MOST_OVERLAPS = 50_000
# A proof that looked at more overlaps than this is not repeated to widen a region a little.
_MOST_TO_REPEAT = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A region: fields that are bound to some values, and pairs of fields that are equal or not."""

    fields: Mapping[str, Intervals]
    relations: tuple[Relation, ...] = ()

    def contains(self, values: Mapping[str, int]) -> bool:
        return all(contains(allowed, values[name]) for name, allowed in self.fields.items()) and all(
            (values[r.left] == values[r.right]) == (r.operator == "=") for r in self.relations
        )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.fields).union(*[(r.left, r.right) for r in self.relations])


@dataclass(slots=True)
class Explainer:
    """Two agents in one scenario. Everything that it says is proved by walks, not guessed from conditions."""

    space: Space
    left: Side
    right: Side
    outputs: Outputs
    _ways: dict[tuple[int, int], Way] = field(default_factory=dict)
    _effort: int = 0  # overlaps that the last proof looked at

    # ---------------------------------------------------------------------------------------------- questions

    def way(self, left: int, right: int) -> Way:
        """How two outputs differ."""
        found = self._ways.get((left, right))
        if found is None:
            found = self._ways[left, right] = way_of(self.outputs.traces[left], self.outputs.traces[right])
        return found

    def way_at(self, values: Mapping[str, int]) -> Way | None:
        """How the agents differ on one input; None if they agree, or were not both explored there."""
        memo: dict[Term, int] = {}
        a, b = self.left.follow(values, memo), self.right.follow(values, memo)
        if a is None or b is None:
            return None
        if any(evaluate(term, values, memo) for term in self.outputs.difference(a.output, b.output)):
            return self.way(a.output, b.output)
        return None

    def shows(self, values: Mapping[str, int], way: Way) -> bool:
        """Whether the agents differ in this way on one input."""
        return self.way_at(values) == way

    def strange(self, values: Mapping[str, int], way: Way) -> bool:
        """Whether both agents were explored on an input and do not differ in this way."""
        memo: dict[Term, int] = {}
        if self.left.follow(values, memo) is None or self.right.follow(values, memo) is None:
            return False
        return not self.shows(values, way)

    def state(self, box: Box, start: State | None = None) -> State | None:
        """A box as a part of the input space."""
        found: State | None = self.space.everything if start is None else start
        for name, allowed in box.fields.items():
            found = None if found is None else self.space.restrict(found, name, allowed)
        for relation in box.relations:
            found = None if found is None else self.space.assume(found, self.term(relation))
        return found

    def term(self, relation: Relation) -> Term:
        widths = self.space.widths
        sides = terms.var(relation.left, widths[relation.left]), terms.var(relation.right, widths[relation.right])
        return terms.eq(*sides) if relation.operator == "=" else terms.ne(*sides)

    # ---------------------------------------------------------------------------------------------- growing

    def grow(self, example: Input, way: Way, others: Sequence[Box] = ()) -> tuple[Box, bool]:
        """The largest region around an example that could be found, and whether it is proved.

        What `others` hold anyway is left out where that leaves a box.
        """
        lines = Box(self._lines(example, way))
        for start in dict.fromkeys((self._unequal_lines(lines, example), lines)):
            box = self._proved(start, example, way)
            if box is not None:
                box = apart(self._regrown(box, start, example, way), others, example)
                return self._simple(self._related(box, example, way)), True
        # What acts together is not a box: keep to the example in every field that the two paths look at.
        pinned = {name: single(example[name]) for name in self._looked_at(example)}
        box = Box(pinned)
        return box, self._prove(box, way)[0]

    def _proved(self, box: Box, example: Input, way: Way) -> Box | None:
        """A box within the given one that is proved; None if that takes too many steps."""
        for _ in range(_MOST_REPAIRS):
            proved, stranger = self._prove(box, way)
            if proved:
                return box
            if stranger is None:
                break
            box = self._repaired(box, example, stranger, way)
        return None

    def _regrown(self, box: Box, lines: Box, example: Input, way: Way) -> Box:
        """A box that gave way may have given too much: widen it around the example while it is proved."""
        for name, allowed in box.fields.items():
            line = lines.fields.get(name, self.space.domain[name])
            if line == allowed or self._effort > _MOST_TO_REPEAT:
                continue
            if self._prove(wider := _with(box, name, line, self.space.domain[name]), way)[0]:
                box = wider
                continue
            low, high = next(interval for interval in allowed if interval[0] <= example[name] <= interval[1])
            least, most = next(interval for interval in line if interval[0] <= example[name] <= interval[1])
            # What a wider interval allows a narrower one allows too: halve.
            while high < most:
                middle = (high + most + 1) // 2
                if self._prove(wider := _with(box, name, union(allowed, ((low, middle),)), line), way)[0]:
                    box, high = wider, middle
                else:
                    most = middle - 1
            allowed = union(allowed, ((low, high),))
            while least < low:
                middle = (least + low) // 2
                if self._prove(wider := _with(box, name, union(allowed, ((middle, high),)), line), way)[0]:
                    box, low = wider, middle
                else:
                    least = middle + 1
        return box

    def _unequal_lines(self, box: Box, example: Input) -> Box:
        """Where one field may have any value but that of another, perhaps they may be any two that differ."""
        names = list(box.fields)
        for number, left in enumerate(names):
            for right in names[:number]:
                if self._comparable(left, right) and (
                    self._hole(box, left, example[right]) or self._hole(box, right, example[left])
                ):
                    box = self._apart(box, example, Relation(right, "≠", left))
        return box

    def _comparable(self, left: str, right: str) -> bool:
        """Whether two fields may hold the same kind of thing: a type and a port that are equal are so by chance."""
        if left in self.space.headed or right in self.space.headed:
            return False
        a, b = self.space.scenario.variable(left), self.space.scenario.variable(right)
        return a.width == b.width and (a.names is b.names or a.names is None or b.names is None)

    def _hole(self, box: Box, name: str, value: int) -> bool:
        """Whether a field may not have a value, but may have those beside it."""
        domain = self.space.domain[name]
        allowed = box.fields.get(name, domain)
        beside = [near for near in (value - 1, value + 1) if contains(domain, near)]
        if contains(allowed, value) or not contains(domain, value) or not beside:
            return False
        return all(contains(allowed, near) for near in beside)

    def _apart(self, box: Box, example: Input, relation: Relation) -> Box:
        """A box with two fields unequal; the one value that the lines excluded for that reason is allowed again."""
        for name, other in ((relation.left, relation.right), (relation.right, relation.left)):
            if self._hole(box, name, example[other]):
                allowed = union(box.fields[name], single(example[other]))
                box = _with(box, name, allowed, self.space.domain[name])
        return Box(box.fields, (*box.relations, relation))

    def _looked_at(self, example: Input) -> list[str]:
        """The fields that the paths of an example depend on."""
        memo: dict[Term, int] = {}
        names: set[str] = set()
        ends: list[Twig] = []
        for side in (self.left, self.right):
            twig = side.follow(example, memo)
            assert twig is not None
            ends.append(twig)
            names.update(*[condition.variables for condition in twig.stem()])
        names.update(*[term.variables for term in self.outputs.difference(ends[0].output, ends[1].output)])
        return [name for name in self.space.widths if name in names]

    def _lines(self, example: Input, way: Way) -> dict[str, Intervals]:
        """For each field that matters, the values that keep the behaviours while all others stay."""
        found = {}
        for name in self._looked_at(example):
            line = self._line(example, name, way)
            if line != self.space.domain[name]:
                found[name] = line
        return found

    def _line(self, example: Input, name: str, way: Way) -> Intervals:
        memo: dict[Term, int] = {}
        others = {key: value for key, value in example.items() if key != name}
        left = list(self._parts(self.left, example, others, name, memo))
        right = list(self._parts(self.right, example, others, name, memo))
        kept: list[Intervals] = []
        for mine, a in left:
            for theirs, b in right:
                both = intersect(mine, theirs)
                if not both or self.way(a, b) != way:
                    continue
                difference = self.outputs.difference(a, b)
                if difference and difference[0] is not TRUE:
                    differing = [self._allowed(term, example, others, name, memo, both) for term in difference]
                    both = intersect(both, union(*differing))
                kept.append(both)
        # What nobody explored is left open: a region is a claim about the inputs that were.
        explored = intersect(union(*[part for part, _ in left]), union(*[part for part, _ in right]))
        unexplored = without(self.space.domain[name], explored)
        return union(*kept, unexplored if not (self.left.whole and self.right.whole) else (), single(example[name]))

    def _parts(
        self, side: Side, example: Input, others: Input, name: str, memo: dict[Term, int]
    ) -> Iterator[tuple[Intervals, int]]:
        """The outputs of one agent along a line, each with the values of the field that lead to it."""
        stack = [(side.root, self.space.domain[name])]
        while stack:
            twig, values = stack.pop()
            if twig.output >= 0 and (side.whole or twig.ends):
                yield values, twig.output
                continue
            for child in side.children(twig):
                inner = values
                for condition in child.conditions:
                    inner = intersect(inner, self._allowed(condition, example, others, name, memo, inner))
                    if not inner:
                        break
                else:
                    stack.append((child, inner))

    def _allowed(
        self,
        condition: Term,
        example: Input,
        others: Input,
        name: str,
        memo: dict[Term, int],
        within: Intervals,
    ) -> Intervals:
        """The values of one field, among some, for which a condition holds while the others are as in the example."""
        if name not in condition.variables:
            return self.space.domain[name] if evaluate(condition, example, memo) else ()
        if len(condition.variables) > 1:
            condition = substitute(condition, others)
        if not condition.variables:
            return self.space.domain[name] if evaluate(condition, {}) else ()
        found = self.space.within(condition, name, within)
        if found is not None:
            return found
        return single(example[name]) if evaluate(condition, example) else ()

    # ---------------------------------------------------------------------------------------------- proving

    def _prove(self, box: Box, way: Way) -> tuple[bool, Input | None]:
        """Whether all of a box shows a way of differing; if not, an input that does not, if one was found."""
        state = self.state(box)
        if state is None:
            return False, None
        for number, overlap in enumerate(self._walk(state)):
            self._effort = number
            bad = self._strange_part(overlap, way)
            if bad is not None:
                return False, self.space.example(bad)
            if number > _MOST_OVERLAPS:
                return False, None
        return True, None

    def meeting(self, box: Box) -> frozenset[tuple[int, int]]:
        """The pairs of outputs that meet in a box."""
        state = self.state(box)
        walk = () if state is None else islice(self._walk(state), _MOST_OVERLAPS)
        return frozenset((overlap.left.output, overlap.right.output) for overlap in walk)

    def _walk(self, state: State) -> Iterator[Overlap]:
        return overlaps(self.space, self.left, self.right, self.outputs, state, agreeing=True)

    def _strange_part(self, overlap: Overlap, way: Way) -> State | None:
        """The part of an overlap that does not show a way of differing."""
        a, b = overlap.left.output, overlap.right.output
        difference = self.outputs.difference(a, b)
        if not difference or self.way(a, b) != way:
            return overlap.state
        if difference[0] is TRUE:
            return None
        return self.space.assume_all(overlap.state, [terms.negate(term) for term in difference])

    # ---------------------------------------------------------------------------------------------- repairing

    def _repaired(self, box: Box, example: Input, stranger: Input, way: Way) -> Box:
        """A smaller box around the example without the stranger."""
        stranger = self._near(box, example, stranger, way)
        together = [name for name in self.space.widths if stranger[name] != example[name]]
        if len(together) == 2:
            relation = self._unequal(box, example, stranger, together, way)
            if relation is not None:
                return self._apart(box, example, relation)
        best: tuple[float, str, Intervals] | None = None
        for name in together:
            _, bad = self._plane(box, example, together, name, way)
            allowed = box.fields.get(name, self.space.domain[name])
            good = without(allowed, bad)
            if good and contains(good, example[name]) and not contains(good, stranger[name]):
                share = count(good) / count(allowed)
                if best is None or share > best[0]:
                    best = share, name, good
        if best is None:
            name = together[-1]
            rest = without(box.fields.get(name, self.space.domain[name]), single(stranger[name]))
            good = single(example[name]) if len(together) > 1 else rest
            return Box({**box.fields, name: good}, box.relations)
        return Box({**box.fields, best[1]: best[2]}, box.relations)

    def _near(self, box: Box, example: Input, stranger: Input, way: Way) -> Input:
        """A stranger that differs from the example in as few fields as possible."""
        for name in self.space.widths:
            if stranger[name] != example[name]:
                nearer = {**stranger, name: example[name]}
                if box.contains(nearer) and self.strange(nearer, way):
                    stranger = nearer
        return stranger

    def _unequal(
        self, box: Box, example: Input, stranger: Input, names: list[str], way: Way
    ) -> Relation | None:
        """That two fields are unequal, if the stranger has equal ones, and one step beside it is no stranger."""
        left, right = names
        if not self._comparable(left, right) or stranger[left] != stranger[right] or example[left] == example[right]:
            return None
        for value in (stranger[left] - 1, stranger[left] + 1):
            beside = {**stranger, left: value}
            if contains(self.space.domain[left], value) and box.contains(beside) and self.shows(beside, way):
                return Relation(left, "≠", right)
        return None

    def _plane(
        self, box: Box, example: Input, free: list[str], name: str, way: Way
    ) -> tuple[Intervals, Intervals]:
        """With some fields free within a box and the others as in the example: the values of one of them for which
        the behaviours can be kept, and those for which they can be lost."""
        pinned = {key: single(value) for key, value in example.items() if key not in free}
        bound = {key: allowed for key, allowed in box.fields.items() if key in free}
        relations = tuple(r for r in box.relations if r.left in free and r.right in free)
        state = self.state(Box({**pinned, **bound}, relations))
        good: list[Intervals] = []
        bad: list[Intervals] = []
        if state is not None:
            for number, overlap in enumerate(self._walk(state)):
                strange = self._strange_part(overlap, way)
                if strange is not None:
                    bad.append(self.space.allowed(strange, name))
                if strange is not overlap.state:
                    good.append(self.space.allowed(overlap.state, name))
                if number > _MOST_OVERLAPS:
                    return (), self.space.domain[name]
        return union(*good), union(*bad)

    def _related(self, box: Box, example: Input, way: Way) -> Box:
        """A box in which two fields have the same one value may be a part of one in which they are just equal."""
        names = [name for name, allowed in box.fields.items() if count(allowed) == 1]
        for number, left in enumerate(names):
            for right in names[:number]:
                if self._comparable(left, right) and example[left] == example[right]:
                    wider = self._diagonal(box, example, left, right, way)
                    if wider is not None:
                        return wider
        return box

    def _simple(self, box: Box) -> Box:
        """A field that is unequal to one with a single value just lacks that value; one that has no value in common
        with another is unequal anyway."""
        for relation in box.relations:
            sides = [box.fields.get(name, self.space.domain[name]) for name in (relation.left, relation.right)]
            if relation.operator == "≠" and not intersect(*sides):
                box = Box(box.fields, tuple(r for r in box.relations if r != relation))
            for name, other in ((relation.left, relation.right), (relation.right, relation.left)):
                fixed = box.fields.get(other, self.space.domain[other])
                if relation.operator == "≠" and relation in box.relations and count(fixed) == 1:
                    allowed = without(box.fields.get(name, self.space.domain[name]), fixed)
                    rest = tuple(r for r in box.relations if r != relation)
                    box = _with(Box(box.fields, rest), name, allowed, self.space.domain[name])
        return box

    def _diagonal(self, box: Box, example: Input, left: str, right: str, way: Way) -> Box | None:
        relation = Relation(right, "=", left)
        fields = {name: allowed for name, allowed in box.fields.items() if name not in (left, right)}
        open_box = Box(fields, (*box.relations, relation))
        good, bad = self._plane(open_box, example, [left, right], right, way)
        kept = without(good, bad)
        if count(kept) < 2:
            return None
        if kept != self.space.domain[right]:
            fields[right] = kept
        wider = Box(fields, open_box.relations)
        return wider if self._prove(wider, way)[0] else None


def _with(box: Box, name: str, allowed: Intervals, domain: Intervals) -> Box:
    """A box with other values for one field; one that may have all of its domain is free."""
    fields = {**box.fields, name: allowed}
    if allowed == domain:
        del fields[name]
    return Box(fields, box.relations)


# ---------------------------------------------------------------------------------------------- covering


def apart(box: Box, others: Sequence[Box], example: Input) -> Box:
    """A box without what other boxes hold anyway, where that leaves a box: two causes are then told apart."""
    for other in others:
        if other.relations and not set(other.relations) <= set(box.relations):
            continue
        outside = [name for name, theirs in other.fields.items() if not _within(box, name, theirs)]
        if len(outside) == 1 and outside[0] in box.fields:
            name = outside[0]
            rest = without(box.fields[name], other.fields[name])
            if contains(rest, example[name]):
                box = Box({**box.fields, name: rest}, box.relations)
    return box


def _within(box: Box, name: str, allowed: Intervals) -> bool:
    return name in box.fields and includes(allowed, box.fields[name])


def outside(explainer: Explainer, state: State, boxes: list[Box]) -> State | None:
    """A part of a state that lies in none of the boxes; None if they cover it."""
    space = explainer.space
    stack = [(state, 0)]
    while stack:
        part, number = stack.pop()
        if number == len(boxes):
            return part
        inside: State | None = part
        for name, allowed in boxes[number].fields.items():
            assert inside is not None
            out = space.restrict(inside, name, complement(allowed, space.widths[name]))
            if out is not None:
                stack.append((out, number + 1))
            inside = space.restrict(inside, name, allowed)
            if inside is None:
                break
        for relation in boxes[number].relations:
            if inside is None:
                break
            term = explainer.term(relation)
            out = space.assume(inside, terms.negate(term))
            if out is not None:
                stack.append((out, number + 1))
            inside = space.assume(inside, term)
    return None
