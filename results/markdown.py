"""Markdown: tables and pages."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> list[str]:
    """A table whose first `left` columns are text and whose others are numbers, set to the right."""
    lines = [_row(head), _row(["---" if column < left else "---:" for column in range(len(head))])]
    for row in rows:
        assert len(row) == len(head), row
        lines.append(_row(row))
    return lines


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: object) -> str:
    text = "–" if cell is None else str(cell)
    return text.replace("|", "\\|").replace("\n", " ")


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} m"


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def machine() -> str:
    """Where the numbers are from, for the foot of a page."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
