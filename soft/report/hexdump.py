"""Bytes in rows of sixteen, with marks. Of a long payload the rows stay that a reader needs."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

WIDTH = 16
# Rows of one dump: 512 bytes show a whole error or packet_in; beyond that only marked rows are of interest.
_MOST_ROWS = 32
_HEAD_ROWS = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One row: its offset and bytes, each with whether it is marked. Without bytes: so many rows are left out."""

    offset: int
    cells: tuple[tuple[int, bool], ...] = ()
    left_out: int = 0


def dump(data: bytes, marked: Set[int] = frozenset()) -> list[Line]:
    """The rows of a payload, in order."""
    total = (len(data) + WIDTH - 1) // WIDTH
    kept = _kept(total, {place // WIDTH for place in marked})
    result: list[Line] = []
    last = -1
    for row in [*kept, total]:
        if row > last + 1:
            result.append(Line((last + 1) * WIDTH, left_out=row - last - 1))
        if row < total:
            places = range(row * WIDTH, min((row + 1) * WIDTH, len(data)))
            result.append(Line(row * WIDTH, tuple((data[place], place in marked) for place in places)))
        last = row
    return result


def _kept(total: int, marked: set[int]) -> list[int]:
    if total <= _MOST_ROWS:
        return list(range(total))
    near = sorted(row for row in {m + d for m in marked for d in (-1, 0, 1)} if _HEAD_ROWS <= row < total)
    rest = near[: _MOST_ROWS - _HEAD_ROWS] if near else range(_HEAD_ROWS, _MOST_ROWS)
    return sorted({*range(_HEAD_ROWS), *rest})


def runs(cells: tuple[tuple[int, bool], ...]) -> Iterator[tuple[bytes, bool]]:
    """Neighbouring bytes with the same mark, together."""
    start = 0
    for place in range(1, len(cells) + 1):
        if place == len(cells) or cells[place][1] != cells[start][1]:
            yield bytes(byte for byte, _ in cells[start:place]), cells[start][1]
            start = place


def printable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


def text_lines(data: bytes, marked: Set[int] = frozenset()) -> Iterator[str]:
    """A dump for a terminal: marked bytes have a caret below them."""
    for line in dump(data, marked):
        if line.left_out:
            yield f"      ... {line.left_out * WIDTH} bytes ..."
            continue
        values = " ".join(f"{byte:02x}" for byte, _ in line.cells)
        yield f"{line.offset:04x}  {values:<47}  {printable(bytes(byte for byte, _ in line.cells))}"
        if any(mark for _, mark in line.cells):
            yield ("      " + " ".join("^^" if mark else "  " for _, mark in line.cells)).rstrip()
