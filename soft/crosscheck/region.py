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
from typing import Literal

from soft.crosscheck.behaviour import Way, way_of
from soft.crosscheck.box import Box, with_values
from soft.crosscheck.cover import apart
from soft.crosscheck.outputs import Outputs
from soft.crosscheck.space import Input, Space, State
from soft.crosscheck.substitute import substitute
from soft.crosscheck.ties import Tie
from soft.crosscheck.values import Intervals, contains, count, intersect, single, union, without
from soft.crosscheck.walk import Overlap, Side, Twig, overlaps
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import TRUE, Term
from soft.solve.walk import post_order

# Times that a region gives way before it shrinks to the fields' values in the example.
_MOST_REPAIRS = 24
# Overlaps that one proof may look at; past this the region counts as not proved and shrinks.
_MOST_OVERLAPS = 50_000
# A proof that looked at more overlaps than this is not repeated to widen a region a little.
_MOST_TO_REPEAT = 1_000
_COMPARISONS = ("=", "bvult", "bvule", "bvslt", "bvsle")


@dataclass(slots=True)
class Explainer:
    """Two agents in one scenario. Everything that it says is proved by walks, not guessed from conditions."""

    space: Space
    left: Side
    right: Side
    outputs: Outputs
    _ways: dict[tuple[int, int], Way] = field(default_factory=dict)
    _effort: int = 0  # overlaps that the last proof looked at
    _linked: list[tuple[str, str]] | None = None

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
        for tie in box.ties:
            found = None if found is None else self.space.assume(found, tie.term(self.space.widths))
        return found

    # ---------------------------------------------------------------------------------------------- growing

    def grow(self, example: Input, way: Way, others: Sequence[Box] = ()) -> tuple[Box, bool]:
        """The largest region around an example that could be found, and whether it is proved.

        What `others` hold anyway is left out where that leaves a box.
        """
        for near, start in self._starts(example, way):
            box = self._proved(start, near, way)
            if box is not None:
                box = apart(self._regrown(box, start, near, way), others, near)
                box = self._simple(self._related(box, near, way))
                if box.contains(example):
                    return box, True
        # What acts together is not a box.
        return self.pinned(example, way)

    def pinned(self, example: Input, way: Way) -> tuple[Box, bool]:
        """The region that keeps to an example in every field that the two paths look at, and whether it is proved."""
        box = Box({name: single(example[name]) for name in self._looked_at(example)})
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
            if self._prove(wider := with_values(box, name, line, self.space.domain[name]), way)[0]:
                box = wider
                continue
            low, high = next(interval for interval in allowed if interval[0] <= example[name] <= interval[1])
            least, most = next(interval for interval in line if interval[0] <= example[name] <= interval[1])
            # What a wider interval allows a narrower one allows too: halve.
            while high < most:
                middle = (high + most + 1) // 2
                if self._prove(wider := with_values(box, name, union(allowed, ((low, middle),)), line), way)[0]:
                    box, high = wider, middle
                else:
                    most = middle - 1
            allowed = union(allowed, ((low, high),))
            while least < low:
                middle = (least + low) // 2
                if self._prove(wider := with_values(box, name, union(allowed, ((middle, high),)), line), way)[0]:
                    box, low = wider, middle
                else:
                    least = middle + 1
        return box

    # ---------------------------------------------------------------------------------------------- beginning

    def _starts(self, example: Input, way: Way) -> Iterator[tuple[Input, Box]]:
        """Boxes to begin with, the most promising first, each with an input from which it is told."""
        near, ties = self._matched(example, way)
        if ties:
            yield near, self._tied_lines(near, ties, way)
        lines = Box(self._lines(example, way))
        slanted = self._slanted(lines, example, way)
        if slanted is not None:
            yield example, slanted
        for start in dict.fromkeys((self._unequal_lines(lines, example), lines)):
            yield example, start

    def _matched(self, example: Input, way: Way) -> tuple[Input, tuple[Tie, ...]]:
        """Fields of a match that matter only by whether they match another field, such as a probe's.

        With the input that has as many of them wildcarded as may be: there the other fields are free of them.
        """
        ties = []
        for left, right in self._links():
            bits = self.space.widths[right]
            if left not in self.space.headed or self.space.widths[left] != bits + 1:
                continue
            value, size = example[right], 1 << bits
            line = self._line(example, left, way)
            if line == union(single(value), ((size, 2 * size - 1),)):
                wild = {**example, left: size | value}
                if self._follows(wild, left, right, way):
                    example = wild
                    ties.append(Tie(left, "=", right, bits=bits, wild=True))
            elif line == without(((0, size - 1),), single(value)):
                ties.append(Tie(left, "≠", right, bits=bits))
        return example, tuple(ties)

    def _follows(self, example: Input, left: str, right: str, way: Way) -> bool:
        """Whether one field has to have the value of another also where that has the next value: not by chance."""
        if not self.shows(example, way):
            return False
        beside = [{**example, right: example[right] + step} for step in (1, -1)]
        inside = [moved for moved in beside if contains(self.space.domain[right], moved[right])]
        free = [moved for moved in inside if self.shows(moved, way)]
        return bool(free) and all(self.shows({**moved, left: moved[right]}, way) for moved in free)

    def _tied_lines(self, example: Input, ties: tuple[Tie, ...], way: Way) -> Box:
        """The lines of an example, without those that ties explain."""
        fields = self._lines(example, way)
        for tie in ties:
            fields.pop(tie.left, None)
            if tie.operator == "≠" and tie.right in fields:
                fields[tie.right] = union(fields[tie.right], single(example[tie.left]))
                if fields[tie.right] == self.space.domain[tie.right]:
                    del fields[tie.right]
        return Box(fields, ties)

    def _slanted(self, lines: Box, example: Input, way: Way) -> Box | None:
        """Where the values of one field move with those of another, as a time in milliseconds does with one in seconds:
        a box with the bounds that move."""
        for left, right in self._links():
            if left not in lines.fields or left in self.space.headed or right in self.space.headed:
                continue
            ties = self._bounds(left, right, example, way)
            if ties:
                fields = {name: line for name, line in lines.fields.items() if name not in (left, right)}
                kept = self._kept(example, left, way)[0]
                domain = self.space.domain[left]
                low = domain[0][0] if any(tie.operator == "≥" for tie in ties) else kept[0]
                high = domain[-1][1] if any(tie.operator == "≤" for tie in ties) else kept[1]
                box = with_values(Box(fields, ties), left, intersect(domain, ((low, high),)), domain)
                good, bad = self._plane(box, example, [left, right], right, way)
                allowed = without(good, bad)
                if not contains(allowed, example[right]):
                    allowed = self._run(left, right, kept, ties, example, way)
                if contains(allowed, example[right]) and count(allowed) > 2:
                    return with_values(box, right, allowed, self.space.domain[right])
        return None

    def _bounds(self, left: str, right: str, example: Input, way: Way) -> tuple[Tie, ...]:
        """The bounds of one field that move if another one gets the next value."""
        here = self._kept(example, left, way)
        domain = self.space.domain[left]
        for step in (1, -1):
            moved = {**example, right: example[right] + step}
            if len(here) != 1 or not contains(self.space.domain[right], moved[right]):
                continue
            there = self._kept(moved, left, way)
            if len(there) != 1:
                continue
            slopes = [(b - a) * step for a, b in zip(here[0], there[0], strict=True)]
            # Through two points there is always a line, and beyond the ends of the domain nothing is seen of it.
            third = [bound + 2 * step * slope for bound, slope in zip(here[0], slopes, strict=True)]
            inside = [not slope or domain[0][0] < end < domain[-1][1] for slope, end in zip(slopes, third, strict=True)]
            if not all(inside) or not self._is_steady(left, right, here[0], slopes, 2 * step, example, way):
                continue
            offsets = [here[0][n] - slopes[n] * example[right] for n in (0, 1)]
            if here[0][0] == here[0][1] and slopes == [1, 1] and offsets == [0, 0]:
                continue
            signs: tuple[Literal["≥"], Literal["≤"]] = ("≥", "≤")
            if any(slopes):
                return tuple(Tie(left, signs[n], right, slopes[n], offsets[n]) for n in (0, 1) if slopes[n])
        return ()

    def _run(
        self, left: str, right: str, here: tuple[int, int], ties: tuple[Tie, ...], example: Input, way: Way
    ) -> Intervals:
        """The values of `right` around the example with which the bounds of `left` go on moving."""
        factors = {tie.operator: tie.factor for tie in ties}
        slopes = factors.get("≥", 0), factors.get("≤", 0)
        ends = []
        for direction in (-1, 1):
            reached, step = 0, 1
            while step:
                there = example[right] + direction * (reached + step)
                if contains(self.space.domain[right], there) and self._is_steady(
                    left, right, here, slopes, direction * (reached + step), example, way
                ):
                    reached, step = reached + step, 2 * step
                else:
                    step //= 2
            ends.append(example[right] + direction * reached)
        run = ((ends[0], ends[1]),)
        # Where the bounds leave nothing anyway, more values may be said in fewer words.
        low, high = self.space.domain[left][0][0], self.space.domain[left][-1][1]
        nothing = [tie.beyond(low, high, self.space.domain[right][-1][1]) for tie in ties]
        found = intersect(self.space.domain[right], union(run, *nothing))
        return found if len(found) == 1 else run

    def _is_steady(
        self, left: str, right: str, here: tuple[int, int], slopes: Sequence[int], step: int, example: Input, way: Way
    ) -> bool:
        """Whether bounds of one field have moved on by so much for each step of another."""
        moved = {**example, right: example[right] + step}
        if not contains(self.space.domain[right], moved[right]):
            return False
        domain = self.space.domain[left]
        found = self._kept(moved, left, way)
        ends = [bound + slope * step for bound, slope in zip(here, slopes, strict=True)]
        expected = [min(max(end, domain[0][0]), domain[-1][1]) for end in ends]
        return len(found) == 1 and list(found[0]) == expected

    def _links(self) -> list[tuple[str, str]]:
        """The pairs of variables that some condition compares, both ways round."""
        if self._linked is None:
            conditions = dict.fromkeys(c for side in (self.left, self.right) for c in side.bundle.conditions)
            parts = [part for condition in conditions for part in self.space.conjuncts(condition)]
            pairs = {
                tuple(sorted(term.variables))
                for term in post_order(parts)
                if term.op in _COMPARISONS and len(term.variables) == 2
            }
            order = list(self.space.widths)
            found = [pair for a, b in pairs for pair in ((a, b), (b, a))]
            self._linked = sorted(found, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
        return self._linked

    def _unequal_lines(self, box: Box, example: Input) -> Box:
        """Where one field may have any value but that of another, perhaps they may be any two that differ."""
        names = list(box.fields)
        for number, left in enumerate(names):
            for right in names[:number]:
                tie = self._tie(left, right, "≠")
                if tie is not None and (
                    self._hole(box, left, example[right]) or self._hole(box, right, example[left])
                ):
                    box = self._apart(box, example, tie)
        return box

    def _tie(self, left: str, right: str, operator: Literal["=", "≠"]) -> Tie | None:
        """That two fields are equal, or not, if they may hold the same kind of thing.

        A type and a port that are equal are so by chance. A field of a match is another one's only if agents compare
        them; it is not equal if it is wildcarded.
        """
        heads = [name for name in (left, right) if name in self.space.headed]
        if not heads:
            a, b = self.space.scenario.variable(left), self.space.scenario.variable(right)
            alike = a.width == b.width and (a.names is b.names or a.names is None or b.names is None)
            return Tie(right, operator, left) if alike else None
        (head, other) = (left, right) if left in heads else (right, left)
        bits = self.space.widths[other]
        if len(heads) == 2 or self.space.widths[head] != bits + 1 or (head, other) not in self._links():
            return None
        return Tie(head, operator, other, bits=bits, wild=operator == "≠")

    def _hole(self, box: Box, name: str, value: int) -> bool:
        """Whether a field may not have a value, but may have those beside it."""
        domain = self.space.domain[name]
        allowed = box.fields.get(name, domain)
        beside = [near for near in (value - 1, value + 1) if contains(domain, near)]
        if contains(allowed, value) or not contains(domain, value) or not beside:
            return False
        return all(contains(allowed, near) for near in beside)

    def _apart(self, box: Box, example: Input, tie: Tie) -> Box:
        """A box with two fields unequal; the one value that the lines excluded for that reason is allowed again."""
        for name, other in ((tie.left, tie.right), (tie.right, tie.left)):
            if self._hole(box, name, example[other]):
                allowed = union(box.fields[name], single(example[other]))
                box = with_values(box, name, allowed, self.space.domain[name])
        return Box(box.fields, (*box.ties, tie))

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
        return union(self._kept(example, name, way), single(example[name]))

    def _kept(self, example: Input, name: str, way: Way) -> Intervals:
        """The values of a field that give a way of differing, while all others are as in an input."""
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
        if self.left.whole and self.right.whole:
            return union(*kept)
        # What nobody explored is left open: a region is a claim about the inputs that were.
        explored = intersect(union(*[part for part, _ in left]), union(*[part for part, _ in right]))
        return union(*kept, without(self.space.domain[name], explored))

    def _parts(
        self, side: Side, example: Input, others: Input, name: str, memo: dict[Term, int]
    ) -> Iterator[tuple[Intervals, int]]:
        """The outputs of one agent along a line, each with the values of the field that lead to it."""
        stack = [(side.root, self.space.domain[name])]
        while stack:
            twig, values = stack.pop()
            if twig.output >= 0 and side.covers(twig):
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
            tie = self._unequal(box, example, stranger, together, way)
            if tie is not None:
                return self._apart(box, example, tie)
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
            return Box({**box.fields, name: good}, box.ties)
        return Box({**box.fields, best[1]: best[2]}, box.ties)

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
    ) -> Tie | None:
        """That two fields are unequal, if the stranger has equal ones, and one step beside it is no stranger."""
        left, right = names
        tie = self._tie(right, left, "≠")
        if tie is None or stranger[left] != stranger[right] or example[left] == example[right]:
            return None
        for value in (stranger[left] - 1, stranger[left] + 1):
            beside = {**stranger, left: value}
            if contains(self.space.domain[left], value) and box.contains(beside) and self.shows(beside, way):
                return tie
        return None

    def _plane(
        self, box: Box, example: Input, free: list[str], name: str, way: Way
    ) -> tuple[Intervals, Intervals]:
        """With some fields free within a box and the others as in the example: the values of one of them for which
        the behaviours can be kept, and those for which they can be lost."""
        pinned = {key: single(value) for key, value in example.items() if key not in free}
        bound = {key: allowed for key, allowed in box.fields.items() if key in free}
        ties = tuple(r for r in box.ties if r.left in free or r.right in free)
        state = self.state(Box({**pinned, **bound}, ties))
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
        """A box in which two fields have the same one value may be a part of one in which they are just equal.

        So it may if they have other values besides, for other reasons: these are regions of their own.
        """
        names = [name for name, allowed in box.fields.items() if single(example[name])[0] in allowed]
        for number, left in enumerate(names):
            for right in names[:number]:
                tie = self._tie(left, right, "=") if example[left] == example[right] else None
                if tie is not None:
                    wider = self._diagonal(box, example, tie, way)
                    if wider is not None:
                        return wider
        return box

    def _simple(self, box: Box) -> Box:
        """A field that is unequal to one with a single value just lacks that value; one that has no value in common
        with another is unequal anyway."""
        for tie in box.ties:
            if not tie.plain:
                continue
            sides = [box.fields.get(name, self.space.domain[name]) for name in (tie.left, tie.right)]
            if tie.operator == "≠" and not intersect(*sides):
                box = Box(box.fields, tuple(r for r in box.ties if r != tie))
            for name, other in ((tie.left, tie.right), (tie.right, tie.left)):
                fixed = box.fields.get(other, self.space.domain[other])
                if tie.operator == "≠" and tie in box.ties and count(fixed) == 1:
                    allowed = without(box.fields.get(name, self.space.domain[name]), fixed)
                    rest = tuple(r for r in box.ties if r != tie)
                    box = with_values(Box(box.fields, rest), name, allowed, self.space.domain[name])
        return box

    def _diagonal(self, box: Box, example: Input, tie: Tie, way: Way) -> Box | None:
        # What the two may be is said of the one without a wildcard.
        left, right = (tie.left, tie.right) if tie.bits is not None else (tie.right, tie.left)
        fields = {name: allowed for name, allowed in box.fields.items() if name not in (left, right)}
        open_box = Box(fields, (*box.ties, tie))
        good, bad = self._plane(open_box, example, [left, right], right, way)
        kept = without(good, bad)
        if count(kept) < 2:
            return None
        if kept != self.space.domain[right]:
            fields[right] = kept
        wider = Box(fields, open_box.ties)
        return wider if self._prove(wider, way)[0] else None
