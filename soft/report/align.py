"""Two behaviours side by side: which event of one agent stands beside which of the other, and where bytes differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from soft.crosscheck.model import EventRecord, Finding

# Past this many events in a step they are paired one by one: the best pairing takes the square of the time.
_MANY = 200


@dataclass(frozen=True, slots=True)
class Row:
    """Two events that stand side by side; None where an agent has nothing to set against the other's."""

    step: int
    left: EventRecord | None
    right: EventRecord | None

    @property
    def equal(self) -> bool:
        return self.left == self.right

    @property
    def comparable(self) -> bool:
        """Both are of one kind, so that it makes sense to compare their bytes."""
        return self.left is not None and self.right is not None and _key(self.left) == _key(self.right)


def rows(finding: Finding) -> list[Row]:
    """The two behaviours of a finding, step by step."""
    left, right = (behaviour.events for behaviour in finding.behaviours)
    steps = sorted({event.step for event in (*left, *right)})
    result: list[Row] = []
    for step in steps:
        a = [event for event in left if event.step == step]
        b = [event for event in right if event.step == step]
        result += [Row(step, x, y) for x, y in _paired(a, b)]
    return result


def _key(event: EventRecord) -> tuple[object, ...]:
    """What must be the same for two events to be versions of one: kind, port, a message's type."""
    return event.kind, event.port, (event.hex or "")[2:4] if event.kind == "message" else event.reason


def _paired(
    a: Sequence[EventRecord], b: Sequence[EventRecord]
) -> Iterator[tuple[EventRecord | None, EventRecord | None]]:
    if len(a) > _MANY or len(b) > _MANY:
        yield from _one_by_one(a, b)
        return
    matcher = SequenceMatcher(None, [_key(e) for e in a], [_key(e) for e in b], autojunk=False)
    for _, low_a, high_a, low_b, high_b in matcher.get_opcodes():
        yield from _one_by_one(a[low_a:high_a], b[low_b:high_b])


def _one_by_one(
    a: Sequence[EventRecord], b: Sequence[EventRecord]
) -> Iterator[tuple[EventRecord | None, EventRecord | None]]:
    for number in range(max(len(a), len(b))):
        yield (a[number] if number < len(a) else None), (b[number] if number < len(b) else None)


def payload(event: EventRecord | None) -> bytes:
    return bytes.fromhex(event.hex) if event is not None and event.hex else b""


def differing(data: bytes, other: bytes) -> frozenset[int]:
    """The places in `data` whose byte the other does not have there."""
    return frozenset(i for i, byte in enumerate(data) if i >= len(other) or other[i] != byte)
