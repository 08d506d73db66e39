"""delays.svg: the classes of behaviour that random runs have seen as time goes on, beside the exploration's."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from results.delays import Case, Record
from soft.report.markup import Html, tag

_COLUMNS = 4
_WIDTH, _HEIGHT = 190.0, 110.0
_LEFT, _TOP = 34.0, 40.0
_PITCH_X, _PITCH_Y = 240.0, 190.0
# The axis of time is logarithmic: a run takes some 10 ms.
_FIRST, _LAST = 0.01, 100.0
_COLOURS = {"uniform": "#c2571a", "informed": "#7a5195"}
_SYMBOLIC = "#1f6f54"
_STYLE = "text{font:11px sans-serif;fill:#333}.t{font-weight:bold}path{fill:none;stroke-width:1.8}.a{stroke:#bbb}"


def plot(cases: Sequence[Case]) -> Html:
    """A panel for each case, and what the colours mean."""
    rows = -(-len(cases) // _COLUMNS)
    panels = [_panel(case, n % _COLUMNS * _PITCH_X, n // _COLUMNS * _PITCH_Y) for n, case in enumerate(cases)]
    width, height = _COLUMNS * _PITCH_X, rows * _PITCH_Y + 24
    legend = [("symbolic", _SYMBOLIC), *_COLOURS.items()]
    words = [
        tag("text", f"{name} delays", x=_LEFT + 150 * n, y=height - 8, style=f"fill:{colour}")
        for n, (name, colour) in enumerate(legend)
    ]
    view = f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", tag("style", _STYLE), panels, words, xmlns="http://www.w3.org/2000/svg", viewBox=view)


def _panel(case: Case, left: float, top: float) -> Html:
    x0, y0 = left + _LEFT, top + _TOP

    def at(seconds: float, classes: int) -> str:
        place = (log10(min(max(seconds, _FIRST), _LAST)) - log10(_FIRST)) / (log10(_LAST) - log10(_FIRST))
        return f"{x0 + place * _WIDTH:.1f} {y0 + _HEIGHT * (1 - classes / max(case.classes, 1)):.1f}"

    def steps(record: Record) -> str:
        path, before = "M" + at(_FIRST, 0), 0
        for mark in record.marks:
            path += f"L{at(mark.seconds, before)}L{at(mark.seconds, mark.classes)}"
            before = mark.classes
        return f"{path}L{at(record.seconds, before)}"

    parts = [
        tag("text", f"{case.agent}, {case.scenario}", class_="t", x=x0, y=y0 - 18),
        tag("path", class_="a", d=f"M{x0} {y0}V{y0 + _HEIGHT}H{x0 + _WIDTH}"),
        tag("text", str(case.classes), x=x0 - 6, y=y0 + 4, text_anchor="end"),
        tag("text", "0", x=x0 - 6, y=y0 + _HEIGHT + 4, text_anchor="end"),
    ]
    for seconds in (0.01, 1.0, 100.0):
        x = at(seconds, 0).split()[0]
        parts.append(tag("text", f"{seconds:g} s", x=x, y=y0 + _HEIGHT + 16, text_anchor="middle"))
    parts += [tag("path", d=steps(each), stroke=_COLOURS[each.drawing]) for each in case.records]
    parts.append(tag("path", d=f"M{at(case.seconds, 0)}L{at(case.seconds, case.classes)}", stroke=_SYMBOLIC))
    x, y = at(case.seconds, case.classes).split()
    parts.append(tag("circle", cx=x, cy=y, r=3.5, style=f"fill:{_SYMBOLIC}"))
    return tag("g", parts)
