"""Checksums that are computed in different ways: equal where that is claimed, and claimed where agents do it so."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft.crosscheck import checksums
from soft.crosscheck.checksums import Checksums
from soft.crosscheck.space import Space
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Solver
from soft.solve.terms import TRUE, Term
from tests.soft.crosscheck.agents import scenario

A, B = t.var("a", 16), t.var("b", 16)
HEADER = (0x4500, 0x0028, 0x4006, 0x0A00)
CORNERS = (0, 1, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF)


def wide(word: Term, width: int = 32) -> Term:
    return t.zero_extend(width - word.width, word)


def word(value: int) -> Term:
    return t.const(value, 16)


def low(term: Term, bits: int = 16) -> Term:
    return t.extract(bits - 1, 0, term)


def swapped(term: Term) -> Term:
    return t.concat(t.extract(7, 0, term), t.extract(15, 8, term))


def folded(total: Term) -> Term:
    """What is carried over is added to a sum of 32 bits."""
    return t.add(t.zero_extend(16, low(total)), t.lshr(total, t.const(16, 32)))


def at_the_end(words: Sequence[Term]) -> Term:
    total = t.const(0, 32)
    for each in words:
        total = t.add(total, wide(each))
    return t.not_(low(folded(folded(total))))


def at_once(words: Sequence[Term]) -> Term:
    total = t.const(0, 32)
    for each in words:
        total = folded(t.add(total, wide(each)))
    return t.not_(low(folded(total)))


def in_sixteen_bits(words: Sequence[Term]) -> Term:
    total = word(0)
    for each in words:
        carried = t.extract(31, 16, t.add(wide(total), wide(each)))
        total = t.add(t.add(total, each), carried)
    return t.not_(total)


def in_the_other_byte_order(words: Sequence[Term]) -> Term:
    return swapped(at_the_end([swapped(each) for each in reversed(words)]))


def in_sixty_four_bits(words: Sequence[Term]) -> Term:
    total = t.const(0xFFFF, 64)  # nothing, in this arithmetic
    for each in words:
        total = t.add(total, wide(each, 64))
    for _ in range(2):
        total = t.add(t.zero_extend(48, low(total)), t.lshr(total, t.const(16, 64)))
    return t.not_(low(total))


def updated(words: Sequence[Term]) -> Term:
    """From the checksum of other words, as RFC 1624 has it, one after the other."""
    old = [word(0x1234) if each.op == "var" else each for each in words]
    result = at_the_end(old)
    for before, after in zip(old, words, strict=True):
        if before is not after:
            result = at_the_end([t.not_(result), t.not_(before), after])
    return result


Way = Callable[[Sequence[Term]], Term]
WAYS: tuple[Way, ...] = (at_the_end, at_once, in_sixteen_bits, in_the_other_byte_order, in_sixty_four_bits, updated)


ONE, TWO = (A, *map(word, HEADER)), (*map(word, HEADER), A, B)


# At once, with two words, there is a sum of 17 bits between them: that one is left to the solver.
CASES = [(way, words) for way in WAYS[1:] for words in (ONE, TWO) if (way, words) != (at_once, TWO)]


@pytest.mark.parametrize(("way", "words"), CASES)
def test_all_ways_to_compute_a_checksum_are_one(way: Way, words: Sequence[Term]) -> None:
    left, right = at_the_end(words), way(words)
    assert Checksums().settled(t.eq(left, right)) is TRUE
    for values in inputs():
        assert evaluate(left, values) == evaluate(right, values)


def test_a_word_that_is_changed_twice() -> None:
    once = at_the_end([t.not_(at_the_end([A, *map(word, HEADER)])), t.not_(A), B])
    assert Checksums().settled(t.eq(once, at_the_end([B, *map(word, HEADER)]))) is TRUE


@pytest.mark.parametrize(
    "other",
    [
        at_the_end((A, *map(word, HEADER[:-1]))),  # another number
        at_the_end((B, *map(word, HEADER))),  # another word
        swapped(at_the_end((A, *map(word, HEADER)))),  # another byte order
        t.not_(at_the_end((A, *map(word, HEADER)))),  # not inverted
        t.not_(low(folded(t.add(t.add(wide(A), wide(A)), t.const(0x4500, 32))))),  # twice the word
        t.not_(t.add(t.add(A, word(0x4500)), word(0x0A6E))),  # nothing is carried over
    ],
)
def test_other_bytes_are_left_as_they_are(other: Term) -> None:
    condition = t.eq(at_the_end((A, *map(word, HEADER))), other)
    assert Checksums().settled(condition) is not TRUE


def test_nothing_but_words_that_may_all_be_zero() -> None:
    """Of zeros only, what is added up is zero, and not 65535."""
    left, right = in_sixteen_bits((A, B)), in_sixty_four_bits((A, B))
    assert evaluate(left, {"a": 0, "b": 0}) != evaluate(right, {"a": 0, "b": 0})
    assert Checksums().settled(t.eq(left, right)) is not TRUE


@pytest.mark.parametrize("limit", ["_MOST_WORK", "_MOST_VALUES", "_MOST_NODES"])
def test_there_is_a_limit_to_the_work(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, limit, 10)
    condition = t.eq(at_the_end(TWO), in_the_other_byte_order(TWO))
    assert Checksums().settled(condition) is condition


def test_a_sum_that_may_be_anything_does_not_use_up_the_work() -> None:
    known = Checksums()
    large, small = t.var("large", 64), at_the_end(TWO)
    byte = t.extract(23, 16, t.add(large, t.const(1, 64)))
    assert known.settled(t.eq(byte, t.extract(7, 0, small))) is not TRUE
    assert known.settled(t.eq(small, in_the_other_byte_order(TWO))) is TRUE


def inputs() -> list[dict[str, int]]:
    source = random.Random(1)
    found = [{"a": a, "b": b} for a in CORNERS for b in CORNERS]
    return found + [{"a": source.getrandbits(16), "b": source.getrandbits(16)} for _ in range(40)]


OPERATIONS = ("sum", "fold", "invert", "swap", "carry", "add")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.integers(0, 9)), max_size=9))
def test_bytes_are_equal_where_they_are_said_to_be(program: list[tuple[str, int, int]]) -> None:
    """Whatever is computed of two words."""
    words = [A, B, word(0x4500), word(0xFFFF), swapped(A)]
    for operation, first, second in program:
        x, y = words[first % len(words)], words[second % len(words)]
        both = t.add(wide(x), wide(y))
        made = {
            "sum": low(both),
            "fold": low(folded(both)),
            "invert": t.not_(x),
            "swap": swapped(x),
            "carry": t.extract(31, 16, both),
            "add": t.add(x, y),
        }
        words.append(made[operation])
    known = Checksums()
    parts = dict.fromkeys(t.extract(place + 7, place, each) for each in words for place in (0, 8))
    claimed = [(x, y) for x in parts for y in parts if x.uid < y.uid and known.settled(t.eq(x, y)) is TRUE]
    for values in inputs() if claimed else ():
        memo: dict[Term, int] = {}
        for x, y in claimed:
            assert evaluate(x, values, memo) == evaluate(y, values, memo)


SCENE = """\
name = "words"
summary = "Two words of a message"
openflow = "1.0"

[[step]]
send = "flow_mod"
cookie = 1
idle_timeout = "symbolic"
hard_timeout = "symbolic"
"""


def test_the_solver_is_not_asked() -> None:
    """Bitwuzla takes more than 40 s for this."""
    solver = Solver("bitwuzla", timeout=5)
    space = Space(scenario(SCENE), solver)
    first, second = t.var("m0.idle_timeout", 16), t.var("m0.hard_timeout", 16)
    words = (*map(word, HEADER), first, second)
    differ = t.ne(in_the_other_byte_order(words), updated(words))
    assert space.assume(space.everything, differ) is None
    assert solver.queries == 0
    # With one of them known, it is the same question for the other one.
    state = space.restrict(space.everything, "m0.idle_timeout", ((7, 7),))
    assert state is not None
    assert space.assume(state, differ) is None
