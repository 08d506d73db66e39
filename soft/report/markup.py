"""HTML from values: every text is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Elements that have no end.
_VOID = frozenset({"br", "col", "input", "link", "meta"})


class Html(str):
    """Markup that is safe to put into a page."""

    __slots__ = ()


Child = str | None | Iterable["str | None"]


def tag(name: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """An element. `class_` is the attribute class, `data_x` is data-x; None and False leave an attribute out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.rstrip("_").replace("_", "-")
        parts.append(f" {shown}" if value is True else f' {shown}="{escape(_number(value))}"')
    parts.append(">")
    if name not in _VOID:
        parts += [*map(safe, children), f"</{name}>"]
    return Html("".join(parts))


def safe(child: Child) -> Html:
    """A text escaped, markup as it is, or several of them in a row."""
    if child is None:
        return Html("")
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return Html(escape(child, quote=False))
    return Html("".join(map(safe, child)))


def _number(value: str | int | float) -> str:
    """Coordinates need no more than a tenth of a pixel."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
