"""Rows of bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from soft.report.hexdump import WIDTH, dump, runs, text_lines


@given(st.binary(max_size=32 * WIDTH), st.sets(st.integers(0, 600)))
def test_a_short_payload_is_there_as_a_whole(data: bytes, marked: set[int]) -> None:
    lines = dump(data, marked)
    assert b"".join(bytes(byte for byte, _ in line.cells) for line in lines) == data
    cells = [mark for line in lines for _, mark in line.cells]
    assert [place for place, mark in enumerate(cells) if mark] == sorted(m for m in marked if m < len(data))


@given(st.integers(33 * WIDTH, 65535), st.sets(st.integers(0, 65534), max_size=5))
def test_a_long_payload_keeps_its_head_and_its_marks(size: int, marked: set[int]) -> None:
    lines = dump(bytes(size), {place for place in marked if place < size})
    assert len(lines) < 80
    assert lines[0].offset == 0
    assert sum(line.left_out or 1 for line in lines) == (size + WIDTH - 1) // WIDTH
    shown = {line.offset // WIDTH for line in lines if line.cells}
    assert {place // WIDTH for place in marked if place < size} <= shown


@given(st.lists(st.tuples(st.integers(0, 255), st.booleans()), min_size=1, max_size=WIDTH))
def test_runs_join_what_has_one_mark(cells: list[tuple[int, bool]]) -> None:
    found = list(runs(tuple(cells)))
    assert [(byte, mark) for data, mark in found for byte in data] == cells
    assert all(a[1] != b[1] for a, b in pairwise(found))


def test_a_terminal_gets_carets() -> None:
    assert list(text_lines(b"soft", {1, 3})) == [
        f"0000  {'73 6f 66 74':<47}  soft",
        "         ^^    ^^",
    ]
