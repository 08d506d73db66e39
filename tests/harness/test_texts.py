"""Printed text in memory, and how long it may be."""

from __future__ import annotations

from harness.machine.memory import PAGE, Memory
from harness.machine.values import Sym
from harness.texts import MOST_LENGTH, Length, Texts
from soft.solve import terms as t
from soft.solve.terms import Term
from tests.harness.machine.test_memory import FIRST, memory

START = FIRST * PAGE
INPUT = t.var("input", 8)


def printed(text: bytes, length: Length, room: int = 100) -> tuple[Memory, Texts]:
    m = memory()
    m.write(START, text + b"\0")
    texts = Texts(m)
    texts.mark(START, length, START + room)
    return m, texts


def test_a_text_knows_its_bounds() -> None:
    for length in (Length(4, 1, 5), Length(4, 4, 4), Length(4, 4, 9), Length(4, 0, 4)):
        m, texts = printed(b"4711", length)
        assert texts.length(START) == length
        assert m.read(START, 5) == b"4711\0"


def test_the_rest_of_a_text_is_as_much_shorter() -> None:
    _, texts = printed(b"4711", Length(4, 3, 9))
    assert texts.length(START + 2) == Length(2, 1, 7)


def test_no_more_than_was_asked_for() -> None:
    _, texts = printed(b"4711", Length(4, 1, 9))
    assert texts.length(START, 3) == Length(3, 1, 3)
    assert texts.length(START, 8) == Length(4, 1, 8)


def test_a_text_that_was_cut_ends_there() -> None:
    m, texts = printed(b"4711", Length(4, 3, 9))
    m.store1(START + 2, 0)
    assert texts.length(START) == Length(2, 2, 2)


def test_something_written_over_the_end_leaves_it_open() -> None:
    m, texts = printed(b"4711", Length(4, 3, 9))
    m.store1(START + 4, Sym(t.var("!1", 8), 0))
    assert texts.length(START) == Length(4, 3, MOST_LENGTH)


def test_a_byte_of_the_input_is_decided_or_open() -> None:
    m = memory()
    texts = Texts(m)
    m.write(START, b"ab\0")
    m.store1(START + 1, Sym(INPUT, ord("b")))
    asked: list[tuple[Term, bool]] = []
    assert texts.length(START, decide=lambda condition, holds: asked.append((condition, holds))) == Length(2, 2, 2)
    assert asked == [(t.eq(INPUT, t.const(0, 8)), False)]
    assert texts.length(START) == Length(2, 1, 2)
