"""Two agents in one scenario: every way in which they differ, and the regions of inputs that do; or a proof of none."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from soft.crosscheck.behaviour import Way
from soft.crosscheck.box import Box
from soft.crosscheck.cover import outside
from soft.crosscheck.outputs import Outputs
from soft.crosscheck.region import Explainer
from soft.crosscheck.space import Input, Space, State
from soft.crosscheck.stop import Stopped
from soft.crosscheck.values import count
from soft.crosscheck.walk import Overlap, Side, TooMany, Twig, overlaps
from soft.solve import terms
from soft.solve.terms import TRUE, Term

# Regions that are found for one way of differing. A cause that is no box (a sum of two fields, a hash) would need one
# for each input; past this many nobody reads on.
MOST_REGIONS = 40
# Queries after which each way of differing gets one region only. The largest comparison of our two switches, with a
# symbolic rule and a symbolic probe, takes 3,000; at 3 ms each this is half a minute.
MOST_QUERIES = 10_000
# Differences in more places than this are asked about together: a question for each would cost more.
_MOST_APART = 4
# Parts of the input space that are kept until they are explained, at some 2 kB each.
_MOST_STATES = 50_000
# Overlaps after which the user sees how many there were.
_OVERLAPS = 100
TOO_MANY = "The paths overlap in more places than can be looked at."
STOPPED = "The crosscheck was stopped before everything was compared and explained."


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of the input space in which two outputs differ: an overlap, and a condition if they differ only there."""

    left: Twig
    right: Twig
    condition: Term
    volume: float  # how large it is: the logarithm of its share of the input space, links left out
    state: State | None  # None: to be made again when it is needed

    @property
    def outputs(self) -> tuple[int, int]:
        return self.left.output, self.right.output


@dataclass(slots=True)
class Explained:
    """One region of one way of differing, with the example that it grew from."""

    way: Way
    example: Input
    box: Box
    proved: bool
    exact: bool = False
    pairs: frozenset[tuple[int, int]] = frozenset()  # of outputs that meet in the region
    covered: bool = True  # the regions of this way hold every input that differs in this way


@dataclass(slots=True)
class Result:
    """What comparing two agents gave."""

    explained: list[Explained]
    overlaps: int
    differing: int
    undecided: int  # overlaps on which the solver gave up
    unfinished: str  # why not everything was looked at, as a sentence; empty if it was


def compare(
    space: Space,
    left: Side,
    right: Side,
    outputs: Outputs,
    witnesses: Iterable[Input] = (),
    progress: Callable[[str], object] | None = None,
) -> Result:
    """Compare two agents over the part of the input space that both explored.

    `witnesses` are inputs that are tried one by one where the solver gives up.
    """
    cells: dict[Way, list[Cell]] = {}
    explainer = Explainer(space, left, right, outputs)
    pairs: set[tuple[int, int]] = set()
    seen = undecided = 0
    unfinished = ""
    try:
        for overlap in overlaps(space, left, right, outputs, space.everything):
            seen += 1
            if progress and not seen % _OVERLAPS:
                progress(f"{seen} overlaps")
            for condition, state in differing(space, outputs, overlap):
                if not state.certain and space.example(state) is None:
                    undecided += 1
                    continue
                kept = state if seen < _MOST_STATES else None
                cell = Cell(overlap.left, overlap.right, condition, _volume(space, state), kept)
                pairs.add(cell.outputs)
                cells.setdefault(explainer.way(*cell.outputs), []).append(cell)
    except TooMany:
        unfinished = TOO_MANY
    except Stopped:
        unfinished = STOPPED
    explained: list[Explained] = []
    last = space.solver.queries + MOST_QUERIES
    for way in sorted(cells):
        if progress:
            progress(f"{len(explained)} regions")
        explained += _explain(explainer, way, cells[way], last)
    if space.stop.over:
        unfinished = STOPPED
    elif undecided or unfinished:
        explained += _by_witness(explainer, set(cells), witnesses)
    return Result(explained, seen, len(pairs), undecided, unfinished)


def _by_witness(explainer: Explainer, known: set[Way], witnesses: Iterable[Input]) -> Iterator[Explained]:
    """Ways of differing that inputs show by themselves, without a solver."""
    for values in witnesses:
        way = explainer.way_at(values)
        if way is not None and way not in known:
            known.add(way)
            box, proved = explainer.grow(values, way)
            yield Explained(way, values, box, proved, pairs=explainer.meeting(box), covered=False)


def differing(space: Space, outputs: Outputs, overlap: Overlap) -> Iterator[tuple[Term, State]]:
    """The parts of an overlap in which its outputs differ."""
    difference = outputs.difference(overlap.left.output, overlap.right.output)
    if len(difference) > _MOST_APART:
        difference = (terms.disj(*difference),)
    for condition in difference:
        if space.possible(condition):
            state = space.assume(overlap.state, condition)
            if state is not None:
                yield condition, state


def _volume(space: Space, state: State) -> float:
    return sum(math.log2(count(values)) - space.widths[name] for name, values in state.values.items())


def _explain(explainer: Explainer, way: Way, cells: list[Cell], last: int) -> list[Explained]:
    """Regions that together hold all cells, the largest cells first. After the `last` query one region is enough."""
    found: list[Explained] = []
    covered = _cover(explainer, way, cells, last, found)
    with contextlib.suppress(Stopped):
        found = _needed(explainer, found)
    for explained in found:
        explained.covered = covered
        explained.exact = covered and len(found) == 1 and explained.proved
    return found


def _cover(explainer: Explainer, way: Way, cells: list[Cell], last: int, found: list[Explained]) -> bool:
    """Find regions until they hold all cells, or are enough; whether they do. One input is, when it is to end."""
    if not explainer.space.stop.over:
        with contextlib.suppress(Stopped):
            return _filled(explainer, way, cells, last, found)
    for cell in () if found else cells:
        state = _state(explainer, cell)
        example = None if state is None else explainer.space.example(state)
        if example is not None and explainer.shows(example, way):
            box, proved = explainer.pinned(example, way)
            found.append(Explained(way, example, box, proved, pairs=explainer.meeting(box)))
            break
    return False


def _filled(explainer: Explainer, way: Way, cells: list[Cell], last: int, found: list[Explained]) -> bool:
    """As `_cover`, all the time that it takes."""
    boxes: list[Box] = []
    covered = True
    for cell in sorted(cells, key=lambda cell: -cell.volume):
        state = _state(explainer, cell)
        while state is not None and (rest := outside(explainer.space, state, boxes)) is not None:
            if len(boxes) >= MOST_REGIONS or (boxes and explainer.space.solver.queries >= last):
                return False
            example = explainer.space.example(rest)
            if example is None or not explainer.shows(example, way):
                covered = False
                break
            box, proved = explainer.grow(example, way, boxes)
            boxes.append(box)
            found.append(Explained(way, example, box, proved, pairs=explainer.meeting(box)))
    return covered


def _needed(explainer: Explainer, found: list[Explained]) -> list[Explained]:
    """Without regions that lie in another one. One that grew from a corner may not see what a later one shows."""
    kept = list(found)
    for each in found:
        others = [other for other in kept if other is not each and other.proved and other.box.contains(each.example)]
        state = explainer.state(each.box) if others else None
        if state is not None and any(outside(explainer.space, state, [other.box]) is None for other in others):
            kept.remove(each)
    return kept


def _state(explainer: Explainer, cell: Cell) -> State | None:
    if cell.state is not None:
        return cell.state
    space = explainer.space
    conditions = [*cell.left.stem(), *cell.right.stem()]
    if cell.condition is not TRUE:
        conditions.append(cell.condition)
    return space.assume_all(space.everything, conditions)
