"""Which events stand side by side, and which bytes differ."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.model import EventRecord, Finding
from soft.report.align import differing, rows
from tests.soft.report import example


def of(left: list[EventRecord], right: list[EventRecord]) -> Finding:
    finding = example.findings().findings[0]
    behaviours = [
        msgspec.structs.replace(behaviour, events=tuple(events))
        for behaviour, events in zip(finding.behaviours, (left, right), strict=True)
    ]
    return msgspec.structs.replace(finding, behaviours=tuple(behaviours))


def message(kind: int, step: int = 0) -> EventRecord:
    return EventRecord("message", step, hex=f"01{kind:02x}000800000000")


def test_a_message_that_one_side_lacks_stands_alone() -> None:
    aligned = rows(of([message(1), message(19)], [message(19)]))
    assert [(row.left, row.right) for row in aligned] == [(message(1), None), (message(19), message(19))]
    assert [row.equal for row in aligned] == [False, True]


def test_only_events_of_one_kind_have_bytes_to_compare() -> None:
    row = rows(of([message(1)], [message(10)]))[0]
    assert not row.comparable
    assert rows(of([message(1)], [msgspec.structs.replace(message(1), hex="01010008000000ff")]))[0].comparable


events = st.lists(st.builds(message, st.integers(0, 3), st.integers(0, 2)), max_size=8)


@given(events, events)
def test_every_event_is_there_once_in_its_order(left: list[EventRecord], right: list[EventRecord]) -> None:
    left, right = (sorted(side, key=lambda event: event.step) for side in (left, right))
    aligned = rows(of(left, right))
    assert [row.left for row in aligned if row.left is not None] == left
    assert [row.right for row in aligned if row.right is not None] == right


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_that_do_not_differ_are_equal(a: bytes, b: bytes) -> None:
    marked = differing(a, b)
    assert all(a[i] == b[i] for i in range(len(a)) if i not in marked)
    assert all(i >= len(b) or a[i] != b[i] for i in marked)
