"""A picture of the input space as SVG: what each agent does, and where they differ. Colours are the style sheet's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2

from soft.crosscheck.model import Finding
from soft.report.markup import Html, safe, tag
from soft.report.picture import Axis, Picture

COLOURS = 8
_PANEL = 214.0
_HEIGHT = 176.0
_GAP = 22.0
_MARGIN = 128.0
_STRIP = 660.0
_STRIP_HEIGHT = 30.0
# Where labels fit side by side, and how wide a character of them is.
_LABEL_PITCH = 12.0
_CHARACTER = 5.6


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a panel's cells are: the edges of the segments along both axes."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]

    def cell(self, x: int, y: int) -> tuple[float, float, float, float]:
        return self.xs[x], self.ys[y], self.xs[x + 1], self.ys[y + 1]


def behaviours(picture: Picture) -> list[str]:
    """What the agents do in the findings of a picture, each behaviour once; its place is its colour."""
    return list(dict.fromkeys(b.summary for finding in picture.findings for b in finding.behaviours))


def svg(picture: Picture, finding: Finding) -> Html:
    """The drawing: three panels beside each other for two fields, three strips below each other for one."""
    colour = {summary: f"b{place % COLOURS}" for place, summary in enumerate(behaviours(picture))}
    titles = [*finding.agents, "where they differ"]
    parts: list[Html] = []
    if picture.y is None:
        top = 8.0
        for place, title in enumerate(titles):
            frame = _Frame(_edges(picture.x, _MARGIN, _STRIP), (top, top + _STRIP_HEIGHT))
            label = tag(
                "text",
                _short(title, 20),
                tag("title", title),
                class_="pt",
                x=_MARGIN - 10,
                y=top + 19,
                text_anchor="end",
            )
            parts += [label, _panel(picture, finding, frame, place, colour)]
            top += _STRIP_HEIGHT + 8
        parts += _x_labels(picture.x, _edges(picture.x, _MARGIN, _STRIP), top, _STRIP)
        width, height = _MARGIN + _STRIP + 8, top + 26 + _label_depth(picture.x, _STRIP)
    else:
        ys = tuple(26.0 + _HEIGHT - edge for edge in _edges(picture.y, 0.0, _HEIGHT))
        for place, title in enumerate(titles):
            left = _MARGIN + place * (_PANEL + _GAP)
            frame = _Frame(_edges(picture.x, left, _PANEL), ys)
            parts.append(tag("text", _short(title, 32), tag("title", title), class_="pt", x=left, y=16))
            parts.append(_panel(picture, finding, frame, place, colour))
            parts += _x_labels(picture.x, frame.xs, 26.0 + _HEIGHT, _PANEL)
        parts += _y_labels(picture.y, ys)
        width, height = _MARGIN + 3 * _PANEL + 2 * _GAP + 8, 26 + _HEIGHT + 26 + _label_depth(picture.x, _PANEL)
    words = f"The input space along {picture.x.name}" + (f" and {picture.y.name}" if picture.y is not None else "")
    return tag("svg", parts, class_="space", viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", aria_label=words)


def _edges(axis: Axis, start: float, size: float) -> tuple[float, ...]:
    """The segments along an axis: wider ones for more values, but on a scale on which one value can be seen."""
    weights = [1 + 0.13 * log2(high - low + 1) for low, high in axis.segments]
    scale, edges = size / sum(weights), [start]
    for weight in weights:
        edges.append(edges[-1] + weight * scale)
    return tuple(edges)


# ---------------------------------------------------------------------------------------------- panels


def _panel(picture: Picture, finding: Finding, frame: _Frame, place: int, colour: Mapping[str, str]) -> Html:
    """One agent's behaviours (place 0 and 1), or where they differ (2)."""
    left, top, right, bottom = frame.xs[0], min(frame.ys), frame.xs[-1], max(frame.ys)
    parts = [tag("rect", class_="none", x=left, y=top, width=right - left, height=bottom - top)]

    def kind(cell: Finding) -> str:
        if place == 2:
            return "this" if cell.id == finding.id else "that"
        return colour[cell.behaviours[place].summary]

    parts += _fills(picture, frame, kind, place)
    for x, y, cell in picture.lines:
        a, b, c, d = frame.cell(x, y)
        parts.append(
            tag(
                "path",
                class_=f"line {kind(cell) if cell is not None else 'no'}",
                d=_d(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"),
            )
        )
    parts.append(tag("path", class_="grid", d=_grid(frame)))
    parts.append(tag("path", class_="edge", d=_outline(picture, finding, frame)))
    here_y = picture.y.here if picture.y is not None else 0
    a, b, c, d = frame.cell(picture.x.here, here_y)
    dot = tag("circle", tag("title", "the example"), class_="dot", cx=(a + c) / 2, cy=(b + d) / 2, r=4)
    return tag("g", parts, dot)


def _fills(picture: Picture, frame: _Frame, kind: Callable[[Finding], str], place: int) -> list[Html]:
    """One path for each finding that has a part in the panel, so that each has its words."""
    shapes: dict[str, list[str]] = {}
    for y, row in enumerate(picture.cells):
        for x, cell in enumerate(row):
            if cell is not None:
                a, b, c, d = frame.cell(x, y)
                shapes.setdefault(cell.id, []).append(f"M{a:.1f} {b:.1f}H{c:.1f}V{d:.1f}H{a:.1f}z")
    known = {finding.id: finding for finding in picture.findings}
    return [
        tag("path", tag("title", _words(known[id], place)), class_=kind(known[id]), d=_d("".join(parts)))
        for id, parts in shapes.items()
    ]


def _words(finding: Finding, place: int) -> str:
    if place < 2:
        return f"{finding.behaviours[place].agent} {finding.behaviours[place].summary}"
    return f"{finding.id}: {finding.region.text}"


def _grid(frame: _Frame) -> str:
    left, top, right, bottom = frame.xs[0], min(frame.ys), frame.xs[-1], max(frame.ys)
    across = [f"M{x:.1f} {top:.1f}V{bottom:.1f}" for x in frame.xs]
    return _d("".join([*across, *(f"M{left:.1f} {y:.1f}H{right:.1f}" for y in frame.ys)]))


def _outline(picture: Picture, finding: Finding, frame: _Frame) -> str:
    """The sides of the finding's cells behind which another outcome begins."""

    def mine(x: int, y: int) -> bool:
        cells = picture.cells
        if not (0 <= y < len(cells) and 0 <= x < len(cells[0])):
            return False
        cell = cells[y][x]
        return cell is not None and cell.id == finding.id

    parts = []
    for y, row in enumerate(picture.cells):
        for x in range(len(row)):
            if not mine(x, y):
                continue
            a, b, c, d = frame.cell(x, y)
            if not mine(x - 1, y):
                parts.append(f"M{a:.1f} {b:.1f}V{d:.1f}")
            if not mine(x + 1, y):
                parts.append(f"M{c:.1f} {b:.1f}V{d:.1f}")
            if not mine(x, y - 1):
                parts.append(f"M{a:.1f} {b:.1f}H{c:.1f}")
            if not mine(x, y + 1):
                parts.append(f"M{a:.1f} {d:.1f}H{c:.1f}")
    return _d("".join(parts))


def _d(path: str) -> str:
    return path.replace(".0 ", " ").replace(".0M", "M").replace(".0V", "V").replace(".0H", "H").replace(".0z", "z")


# ---------------------------------------------------------------------------------------------- labels


def _label_depth(axis: Axis, size: float) -> float:
    """The room that labels take below a panel."""
    if _flat(axis, size):
        return 12.0
    return 8 + 0.72 * _CHARACTER * max(len(_short(label, 24)) for label in axis.labels)


def _flat(axis: Axis, size: float) -> bool:
    edges = _edges(axis, 0.0, size)
    room = [b - a for a, b in pairwise(edges)]
    return all(len(label) * _CHARACTER < space for label, space in zip(axis.labels, room, strict=True))


def _x_labels(axis: Axis, edges: Sequence[float], top: float, size: float) -> list[Html]:
    flat, depth = _flat(axis, size), _label_depth(axis, size)
    result, last = [], -100.0
    for place, label in enumerate(axis.labels):
        middle = (edges[place] + edges[place + 1]) / 2
        if middle - last < _LABEL_PITCH and place != axis.here:
            continue
        last = middle
        kind = "tick here" if place == axis.here else "tick"
        if flat:
            result.append(tag("text", label, class_=kind, x=middle, y=top + 12, text_anchor="middle"))
        else:
            at = f"rotate(-45 {middle:.1f} {top + 11:.1f})"
            text = tag("title", label) if len(label) > 24 else None
            result.append(
                tag(
                    "text",
                    _short(label, 24),
                    text,
                    class_=kind,
                    x=middle + 3,
                    y=top + 11,
                    text_anchor="end",
                    transform=at,
                )
            )
    name = tag("text", axis.name, class_="axis", x=(edges[0] + edges[-1]) / 2, y=top + depth + 14, text_anchor="middle")
    return [*result, name]


def _y_labels(axis: Axis, edges: Sequence[float]) -> list[Html]:
    result, last = [], 1e9
    for place, label in enumerate(axis.labels):
        middle = (edges[place] + edges[place + 1]) / 2
        if last - middle < _LABEL_PITCH - 2 and place != axis.here:
            continue
        last = middle
        kind = "tick here" if place == axis.here else "tick"
        text = tag("title", label) if len(label) > 17 else None
        result.append(
            tag("text", _short(label, 17), text, class_=kind, x=_MARGIN - 6, y=middle + 3.5, text_anchor="end")
        )
    middle = (edges[0] + edges[-1]) / 2
    turn = f"rotate(-90 12 {middle:.1f})"
    return [*result, tag("text", axis.name, class_="axis", x=12, y=middle, text_anchor="middle", transform=turn)]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def swatch(kind: str) -> Html:
    """A small square in a picture's colour, for its legend."""
    return tag(
        "svg",
        safe([tag("rect", class_=kind, x=1, y=1, width=14, height=14)]),
        class_="swatch",
        viewBox="0 0 16 16",
        aria_hidden="true",
    )
