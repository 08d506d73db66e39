"""What goes over a channel comes out the same: the very same terms, each sent once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.path import Fork, Job
from harness.run import Outcome
from harness.transport import Channel
from harness.workers import Report
from soft.solve.terms import Term
from soft.trace import Crash, Message, Payload
from tests.soft.solve.strategies import any_term

Ends = tuple[Channel, Channel]


def channels() -> Ends:
    one, other = multiprocessing.Pipe()
    return Channel(one), Channel(other)


@pytest.fixture
def ends() -> Iterator[Ends]:
    pair = channels()
    yield pair
    for end in pair:
        end.connection.close()


@settings(max_examples=40)
@given(st.lists(any_term(), max_size=6), st.integers(0, 1 << 64))
def test_terms_arrive_as_themselves(sent: list[Term], number: int) -> None:
    here, there = channels()
    for value in ({"n": number}, tuple(sent), [sent, sent[::-1]], Job({"x": number}, 3, tuple(sent))):
        here.send(value)
        assert there.receive() == value
    here.send(sent)
    for original, received in zip(sent, there.receive(), strict=True):
        assert received is original


@given(any_term())
def test_a_term_is_sent_once(term: Term) -> None:
    here, there = channels()
    sizes = []
    for _ in range(3):
        here.send((term, term))
        data = there.connection.recv_bytes()
        sizes.append(len(data))
    assert sizes[1] == sizes[2] <= sizes[0]
    assert sizes[1] < 120


def test_reports(ends: Ends) -> None:
    x = Payload((b"ab",))
    outcome = Outcome({"x": 1}, (), (Message(0, x), Crash(1, "SIGSEGV")), (Job({"x": 2}, fork=Fork((), ())),), 7)
    report = Report(Job({"x": 1}), outcome, 1, 2, {0x1000: 5})
    here, there = ends
    there.send(report)
    here.send("the other way")
    assert here.receive() == report
    assert there.receive() == "the other way"


def test_the_other_end_is_gone(ends: Ends) -> None:
    here, there = ends
    there.connection.close()
    with pytest.raises(EOFError):
        here.receive()
