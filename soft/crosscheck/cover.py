"""What boxes hold between them: one without what others hold anyway, and what lies outside of all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from soft.crosscheck.box import Box
from soft.crosscheck.space import Input, Space, State
from soft.crosscheck.values import Intervals, contains, count, includes, without
from soft.solve import terms


def apart(box: Box, others: Sequence[Box], example: Input) -> Box:
    """A box without what other boxes hold anyway, where that leaves a box: two causes are then told apart."""
    for other in others:
        if other.ties and not set(other.ties) <= set(box.ties):
            continue
        outside = [name for name, theirs in other.fields.items() if not _within(box, name, theirs)]
        if len(outside) == 1 and outside[0] in box.fields:
            name = outside[0]
            rest = without(box.fields[name], other.fields[name])
            if contains(rest, example[name]):
                box = Box({**box.fields, name: rest}, box.ties)
    return box


def _within(box: Box, name: str, allowed: Intervals) -> bool:
    return name in box.fields and includes(allowed, box.fields[name])


def outside(space: Space, state: State, boxes: Sequence[Box]) -> State | None:
    """A part of a state that lies in none of the boxes; None if they cover it.

    The solver is asked only about what no box holds, or misses, at sight.
    """
    stack: list[tuple[State, Sequence[Box]]] = [(state, boxes)]
    while stack:
        part, near = stack.pop()
        near = [box for box in near if _meets(space, part, box)]
        if any(_holds(space, part, box) for box in near):
            continue
        decided = space.decided(part)
        if decided is None:
            continue
        if not near:
            return decided
        box = max(near, key=lambda box: _share(space, decided, box))
        rest = [other for other in near if other is not box]
        inside: State | None = decided
        for name, allowed in box.fields.items():
            assert inside is not None
            out = space.narrowed(inside, name, space.others(name, allowed))
            if out is not None:
                stack.append((out, rest))
            inside = space.narrowed(inside, name, allowed)
        for tie in box.ties:
            if inside is None:
                break
            term = tie.term(space.widths)
            out = space.assume(inside, terms.negate(term))
            if out is not None:
                stack.append((out, rest))
            inside = space.assume(inside, term)
    return None


def _meets(space: Space, part: State, box: Box) -> bool:
    """Whether, field by field, a box and a part of the input space have something in common."""
    return all(space.common(part, name, allowed) for name, allowed in box.fields.items())


def _holds(space: Space, part: State, box: Box) -> bool:
    """Whether, field by field, a part of the input space lies in a box."""
    return not box.ties and all(
        space.common(part, name, allowed) is space.allowed(part, name) for name, allowed in box.fields.items()
    )


def _share(space: Space, part: State, box: Box) -> float:
    """How much of a part of the input space lies in a box, in logarithms."""
    return sum(
        math.log2(count(space.common(part, name, allowed)) / count(space.allowed(part, name)))
        for name, allowed in box.fields.items()
    )
