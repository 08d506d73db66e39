"""Where two traces part: the first event in which they differ, and the first byte of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from soft.trace import Event, Message, Packet, Trace


@dataclass(frozen=True, slots=True)
class Difference:
    """The number of the first event that differs, what it is on both sides (None: that side has ended), and the first
    byte that differs if both are payloads of one kind."""

    event: int
    expected: Event | None
    seen: Event | None
    byte: int | None = None


def first_difference(expected: Trace, seen: Trace) -> Difference | None:
    """None if the traces are equal. Both must be concrete and normalised."""
    for number, (one, other) in enumerate(zip_longest(expected, seen)):
        if one != other:
            return Difference(number, one, other, _first_byte(one, other))
    return None


def _first_byte(one: Event | None, other: Event | None) -> int | None:
    if not isinstance(one, Message | Packet) or not isinstance(other, Message | Packet):
        return None
    if kind_of(one) != kind_of(other):
        return None
    left, right = one.payload.concrete() or b"", other.payload.concrete() or b""
    common = min(len(left), len(right))
    return next((at for at in range(common) if left[at] != right[at]), common)


def kind_of(event: Event | None) -> tuple[str, int, int | str]:
    """What an event is without its bytes: for counting differences that look alike."""
    if event is None:
        return "nothing", 0, 0
    name = type(event).__name__.lower()
    if isinstance(event, Message):
        head = (event.payload.concrete() or b"")[:2]
        return name, event.step, head[1] if len(head) == 2 else -1
    if isinstance(event, Packet):
        return name, event.step, event.port
    return name, event.step, getattr(event, "reason", 0)
