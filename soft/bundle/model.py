"""What a bundle holds: the paths of one agent through one scenario, with the output and an example input of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from soft.scenarios.model import Scenario
from soft.solve.terms import Term
from soft.trace import Crash, Event, Message, Packet, Trace

# Raised whenever a reader of the older format would misread a bundle.
FORMAT = 1


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much there is: paths, distinct traces (`outputs`), paths that crash, distinct conditions."""

    paths: int
    outputs: int
    crashes: int
    conditions: int


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first thing that a reader reads. `complete` says that the paths cover the scenario's whole input space."""

    format: int
    scenario: str
    digest: str
    agent: str
    tool: str
    counts: Counts
    complete: bool
    reasons: tuple[str, ...] = ()
    normalisation: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    statistics: dict[str, int | float] = {}


@dataclass(frozen=True, slots=True)
class Path:
    """One path: the conditions along its run, by index; its trace, by index; one input that takes it; remarks."""

    conditions: tuple[int, ...]
    trace: int
    witness: Mapping[str, int]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in memory. `source` is where it came from, for messages."""

    manifest: Manifest
    scenario: Scenario
    conditions: Sequence[Term]
    traces: Sequence[Trace]
    paths: Sequence[Path]
    source: str = field(default="the bundle", compare=False)

    def terms_of(self, path: Path) -> tuple[Term, ...]:
        """The conditions of a path."""
        return tuple(self.conditions[index] for index in path.conditions)

    @property
    def variables(self) -> tuple[Term, ...]:
        return tuple(variable.term for variable in self.scenario.variables)

    def crashes(self) -> Iterator[tuple[int, Path, Crash]]:
        """The paths that end in a crash, with their numbers."""
        crashing = {number: crash for number, trace in enumerate(self.traces) if (crash := crash_of(trace))}
        for number, path in enumerate(self.paths):
            if path.trace in crashing:
                yield number, path, crashing[path.trace]


def crash_of(trace: Trace) -> Crash | None:
    for event in trace:
        if isinstance(event, Crash):
            return event
    return None


# One event in a group's key: kind, step, port or reason, and number of bytes (-1: a term of the inputs).
Shape = tuple[tuple[str, int, int | str, int], ...]


def group_key(trace: Trace) -> Shape:
    """The shape of a trace: events, kinds, ports and lengths, without the bytes.

    Two traces of different shape differ on every input, unless a length is a term (-1): then `may_match` decides.
    """
    return tuple(_shape(event) for event in trace)


def may_match(a: Shape, b: Shape) -> bool:
    """Whether traces of these shapes can be equal on some input."""
    return len(a) == len(b) and all(
        x[:3] == y[:3] and (x[3] == y[3] or x[3] < 0 or y[3] < 0) for x, y in zip(a, b, strict=True)
    )


def _shape(event: Event) -> tuple[str, int, int | str, int]:
    kind = type(event).__name__.lower()
    if isinstance(event, Message | Packet):
        length = event.payload.size if event.payload.length is None else -1
        return kind, event.step, event.port if isinstance(event, Packet) else 0, length
    return kind, event.step, event.reason if isinstance(event, Crash) else 0, 0
