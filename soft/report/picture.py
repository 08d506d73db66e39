"""Where in the input space two agents differ: a slice through a finding's example along one or two fields.

This is the paper's Figure 2 for real fields. The slice keeps every other field as it is in the example; along the axes
it is cut wherever the region of some finding begins or ends, so that all inputs of a cell have one outcome: a finding,
or none. Only the findings are needed, not the bundles: where there is no finding, the agents agree or nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from soft.crosscheck.model import FieldSet, Finding, Relation
from soft.report.scenes import Part, Scene

Intervals = tuple[tuple[int, int], ...]
Values = Mapping[str, int]

# What fits on a screen beside its labels.
MOST_CELLS_2D = 14
MOST_CELLS_1D = 28
# So many pieces of a set that looks at some low bits are worth cutting an axis for.
_MOST_PERIODS = 16
# No picture has room for what comes of so many pairs of intervals.
_MOST_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class Axis:
    """A field, or some bits of one, cut into segments. `here` is the segment that holds the example."""

    part: Part
    name: str
    segments: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]
    here: int


@dataclass(frozen=True, slots=True)
class Picture:
    """`cells[y][x]` is the finding of a cell, or None; along one axis there is a single row.

    `lines` are cells (x, y) in which the two fields may be equal or not, and that matters: where they are equal, it is
    this finding, or none. `left_out` counts findings that could not be drawn.
    """

    x: Axis
    y: Axis | None
    cells: tuple[tuple[Finding | None, ...], ...]
    lines: tuple[tuple[int, int, Finding | None], ...]
    findings: tuple[Finding, ...]
    left_out: int


class Pictures:
    """The findings of two agents in one scenario, ready to be drawn."""

    def __init__(self, findings: Sequence[Finding], scene: Scene) -> None:
        self._scene = scene
        self._regions = {finding.id: _resolved(finding, scene) for finding in findings}

    def picture(self, finding: Finding) -> Picture | None:
        """The slice through a finding's example; None if no field decides or a field is unknown."""
        mine = self._regions[finding.id]
        # A region that the example misses in more fields than there are axes does not meet the slice.
        others = [region for region in self._regions.values() if region is not mine]
        missed = [(region.missed(finding.example.values), region) for region in (mine, *others)]
        near = [[region for number, region in missed if number <= axes] for axes in (1, 2)]
        return _picture(mine, near, self._scene)


@dataclass(frozen=True, slots=True)
class _Region:
    """A finding's region by parts of fields; `sets` are None where a field is unknown."""

    finding: Finding
    sets: tuple[tuple[FieldSet, _Set | None], ...]
    relations: tuple[tuple[Relation, Part | None, Part | None], ...]

    def missed(self, values: Values) -> int:
        """How many of the region's fields have another value in an input."""
        known = (field for field, found in self.sets if found is not None)
        return sum(not field.holds(values.get(field.field, 0), values.get(field.head, 0)) for field in known)


def _resolved(finding: Finding, scene: Scene) -> _Region:
    region = finding.region
    return _Region(
        finding,
        tuple((field, _set_of(field, scene)) for field in region.fields),
        tuple((r, scene.part_named(r.left), scene.part_named(r.right)) for r in region.relations),
    )


def _picture(mine: _Region, near: Sequence[Sequence[_Region]], scene: Scene) -> Picture | None:
    """`near` are the regions that may meet a slice with one axis, and with two."""
    parts = _parts(mine)
    if not parts:
        return None
    # The axes on which there is most to see, in the order in which the scenario has them.
    ranked = sorted(parts, key=lambda part: _interest(mine, near[0], scene, part, parts.index(part)), reverse=True)[:2]
    axes = [part for part in parts if part in ranked]
    for chosen in [axes] if len(axes) == 1 else [axes, ranked[:1]]:
        peers = near[len(chosen) - 1]
        made = _made(mine, peers, scene, chosen) or _made(mine, [mine], scene, chosen, len(peers) - 1)
        if made is not None and (mine.finding in made.findings or len(chosen) == 1):
            return made
    return None


def _parts(mine: _Region) -> list[Part]:
    """What a region speaks of, each once: fields, and parts of fields."""
    named = [None if found is None else found.part for _, found in mine.sets]
    named += [part for _, left, right in mine.relations for part in (left, right)]
    values = mine.finding.example.values
    return list(dict.fromkeys(part for part in named if part is not None and values.get(part.field, -1) >= 0))


def _interest(mine: _Region, peers: Sequence[_Region], scene: Scene, part: Part, place: int) -> tuple[int, int, int]:
    """How much there is to see along an axis: outcomes, then segments, then how late the field comes."""
    made = _made(mine, peers, scene, [part])
    if made is None:
        return 0, 0, place
    outcomes = {None if cell is None else cell.id for cell in made.cells[0]}
    return len(outcomes), len(made.x.segments), place


def _made(
    mine: _Region, peers: Sequence[_Region], scene: Scene, parts: Sequence[Part], left_out: int = 0
) -> Picture | None:
    finding = mine.finding
    slices: list[tuple[Finding, _Slice]] = []
    for peer in peers:
        try:
            slice_ = _slice(peer, finding.example.values, parts)
        except _NotDrawn:
            left_out += 1
            continue
        if slice_ is not None:
            slices.append((peer.finding, slice_))
    axes = [_axis(finding, scene, part, [slice_ for _, slice_ in slices], parts) for part in parts]
    most = MOST_CELLS_1D if len(parts) == 1 else MOST_CELLS_2D
    if any(not 0 < len(axis.segments) <= most for axis in axes):
        return None
    return _painted(axes[0], axes[1] if len(axes) > 1 else None, slices, left_out)


def _painted(x: Axis, y: Axis | None, slices: Sequence[tuple[Finding, _Slice]], left_out: int) -> Picture:
    """Which finding each cell belongs to. A cell's inputs are all alike, so that its lowest corner decides."""
    cells: list[tuple[Finding | None, ...]] = []
    lines: list[tuple[int, int, Finding | None]] = []
    for row, across in enumerate(y.segments if y is not None else ((0, 0),)):
        painted: list[Finding | None] = []
        for column, along in enumerate(x.segments):
            corner = {x.part: along[0]} if y is None else {x.part: along[0], y.part: across[0]}
            inside = [
                (finding, slice_.relation)
                for finding, slice_ in slices
                if all(_within(slice_.sets.get(part), value) for part, value in corner.items())
            ]
            mixed = along == across and along[0] < along[1]
            if mixed and any(relation is not None for _, relation in inside):
                lines.append((column, row, next((peer for peer, relation in inside if relation != "≠"), None)))
            # Within a cell two fields are never, always, or sometimes equal; in the last case most inputs are not.
            equal = along == across and not mixed
            fits = (peer for peer, relation in inside if relation is None or (relation == "=") == equal)
            painted.append(next(fits, None))
        cells.append(tuple(painted))
    seen = [cell for row_ in cells for cell in row_] + [cell for _, _, cell in lines]
    return Picture(x, y, tuple(cells), tuple(lines), tuple({f.id: f for f in seen if f is not None}.values()), left_out)


# ---------------------------------------------------------------------------------------------- slices


class _NotDrawn(Exception):
    """A set that has no few intervals on an axis."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """What is left of a region when everything but the axes is as in the example.

    `relation` is how the two axes are related, if they are.
    """

    sets: Mapping[Part, Intervals]
    relation: str | None


def _slice(region: _Region, values: Values, axes: Sequence[Part]) -> _Slice | None:
    """A finding's region in the slice; None if it does not meet it."""
    sets: dict[Part, Intervals] = {}
    for field, found in region.sets:
        if found is None:
            raise _NotDrawn
        met = [axis for axis in axes if axis.overlaps(found.part)]
        _check_head(field.head, axes)
        if not met:
            if not field.holds(values.get(field.field, 0), values.get(field.head, 0)):
                return None
            continue
        if len(met) > 1:
            raise _NotDrawn
        if field.head:
            found = _without_head(found, values.get(field.head, 0))
        sets[met[0]] = _both(sets.get(met[0]), _on_axis(found, values.get(field.field, 0), met[0]))
    relation = None
    for r, left, right in region.relations:
        if left is None or right is None or any(a.overlaps(p) and a != p for a in axes for p in (left, right)):
            raise _NotDrawn
        _check_head(r.head, axes)
        on = [part for part in (left, right) if part in axes]
        if not on or (r.head and values.get(r.head, 0)):
            # A field that is wildcarded matches whatever the axes show.
            if not r.holds(values):
                return None
        elif len(on) == 2:
            if r.operator not in ("=", "≠") or r.factor != 1 or r.offset:
                raise _NotDrawn
            relation = r.operator
        else:
            (axis,) = on
            if axis == left:
                allowed = _left_values(r, right.of(values), axis.most)
            else:
                allowed = _right_values(r, left.of(values), axis.most)
            sets[axis] = _both(sets.get(axis), _both(((0, axis.most),), allowed))
    return None if any(not intervals for intervals in sets.values()) else _Slice(sets, relation)


@dataclass(frozen=True, slots=True)
class _Set:
    """Values of some bits of a field."""

    part: Part
    intervals: Intervals


def _set_of(field: FieldSet, scene: Scene) -> _Set | None:
    """What a region says about a field, as values of just the bits that it looks at; None if there are no such bits."""
    part = scene.part(field.field, field.low, field.bits)
    if part is None or not field.intervals:
        return None
    known = scene.action_field(field.field, name_of(field))
    free = _free_bits(field.intervals, part.bits - known.width) if known is not None and known.width < part.bits else 0
    shorter = scene.part(field.field, part.low + free, part.bits - free)
    assert shorter is not None
    return _Set(shorter, tuple((first >> free, last >> free) for first, last in field.intervals))


def name_of(field: FieldSet) -> str:
    """What people call the part of a field that a region speaks of."""
    return field.name or field.text.split(" ")[0]


def _free_bits(intervals: Intervals, bits: int) -> int:
    """The number of low bits, if a set does not look at that many; else 0."""
    size = 1 << bits
    return bits if all(low % size == 0 and (high + 1) % size == 0 for low, high in intervals) else 0


def _within(intervals: Intervals | None, value: int) -> bool:
    return intervals is None or any(low <= value <= high for low, high in intervals)


def _both(a: Intervals | None, b: Intervals) -> Intervals:
    if a is None:
        return b
    if len(a) * len(b) > _MOST_PAIRS:
        raise _NotDrawn
    pairs = [(max(low, first), min(high, last)) for low, high in a for first, last in b]
    return tuple((low, high) for low, high in sorted(pairs) if low <= high)


def _check_head(head: str, axes: Sequence[Part]) -> None:
    if any(axis.field == head for axis in axes):
        raise _NotDrawn


def _without_head(found: _Set, head: int) -> _Set:
    """The values of a field while the bit above it is as given."""
    size = found.part.most + 1
    half = _both(found.intervals, ((head * size, head * size + size - 1),))
    return _Set(found.part, tuple((low - head * size, high - head * size) for low, high in half))


def _left_values(relation: Relation, right: int, most: int) -> Intervals:
    """The values of a relation's left field that go with one of its right."""
    bound = relation.factor * right + relation.offset
    return {
        "=": ((bound, bound),),
        "≠": ((0, bound - 1), (bound + 1, most)),
        "≥": ((max(bound, 0), most),),
        "≤": ((0, bound),),
    }[relation.operator]


def _right_values(relation: Relation, left: int, most: int) -> Intervals:
    """The values of a relation's right field that go with one of its left."""
    rest = left - relation.offset
    whole, exact = rest // relation.factor, rest % relation.factor == 0
    return {
        "=": ((whole, whole),) if exact else (),
        "≠": ((0, whole - 1), (whole + 1, most)) if exact else ((0, most),),
        # Divided by a negative factor, a bound is one on the other side.
        "≥" if relation.factor > 0 else "≤": ((0, whole),),
        "≤" if relation.factor > 0 else "≥": ((max(-(-rest // relation.factor), 0), most),),
    }[relation.operator]


def _on_axis(found: _Set, example: int, axis: Part) -> Intervals:
    """Where on an axis a set of values of (a part of) the same field lies, all other bits as in the example."""
    part, intervals = found.part, found.intervals
    if part == axis:
        return intervals
    if part.low <= axis.low and part.top >= axis.top:
        # The set looks at more bits than the axis shows.
        shift = axis.low - part.low
        base = (example >> part.low & part.most) & ~(axis.most << shift)
        cut = [(-((base - low) >> shift), (high - base) >> shift) for low, high in intervals]
        return tuple((max(low, 0), min(high, axis.most)) for low, high in cut if max(low, 0) <= min(high, axis.most))
    if part.low < axis.low or part.top > axis.top:
        raise _NotDrawn
    # The set looks at some bits of those that the axis shows: it repeats for every value of the bits above.
    shift, above = part.low - axis.low, 1 << (axis.top - part.top)
    if above * len(intervals) > _MOST_PERIODS:
        raise _NotDrawn
    size = (part.most + 1) << shift
    return tuple(
        (copy * size + (low << shift), copy * size + ((high + 1) << shift) - 1)
        for copy in range(above)
        for low, high in intervals
    )


# ---------------------------------------------------------------------------------------------- axes


def _axis(finding: Finding, scene: Scene, part: Part, slices: Sequence[_Slice], parts: Sequence[Part]) -> Axis:
    variable = scene.variable(part.field)
    low, high = 0, part.most
    if variable is not None and variable.range is not None and part.whole:
        low, high = variable.range
    related = any(slice_.relation is not None for slice_ in slices)
    here = part.of(finding.example.values)
    cuts = {low, high + 1} | (
        {other.of(finding.example.values) + d for other in parts for d in (0, 1)} if related else set()
    )
    for slice_ in slices:
        # Fields that are compared with each other are cut at the same places, so that equal means one cell.
        for other in parts if related else (part,):
            for first, last in slice_.sets.get(other, ()):
                cuts |= {first, last + 1}
    segments = [(a, b - 1) for a, b in pairwise(sorted(cut for cut in cuts if low <= cut <= high + 1))]
    if variable is not None and variable.choices is not None and part.whole:
        segments = [(a, b) for a, b in segments if any(a <= choice <= b for choice in variable.choices)]
    if variable is not None and part.whole:
        segments = [(a, b) for a, b in segments if a != b or a not in variable.excluded]
    name, show = _shown(finding, scene, part)
    labels = tuple(_label(show, a, b) for a, b in segments)
    place = next((i for i, (a, b) in enumerate(segments) if a <= here <= b), 0)
    return Axis(part, name, tuple(segments), labels, place)


def _shown(finding: Finding, scene: Scene, part: Part) -> tuple[str, Callable[[int], str]]:
    """What the axis is called, and how its values are written: a part of an action's body as the field that it is."""
    for field in finding.region.fields:
        found = _set_of(field, scene)
        known = scene.action_field(field.field, name_of(field))
        if found is not None and found.part == part and known is not None and known.width == part.bits:
            return known.name, known.show
    variable = scene.variable(part.field)
    if variable is not None and part.whole:
        return part.name, variable.show
    return part.name, lambda value: str(value) if value < 0x1000 else hex(value)


def _label(show: Callable[[int], str], low: int, high: int) -> str:
    first, last = show(low), show(high)
    if first == last:
        return first
    return f"{first}, {last}" if high == low + 1 else f"{first} … {last}"
