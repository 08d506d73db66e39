"""One order for the paths of a bundle, whatever the order in which they were found.

Paths are ordered by the contents of their conditions, not by when these were seen, and everything is numbered anew in
that order. So two workers find the same bundle as one, and an interrupted exploration the same as an uninterrupted one.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from soft.bundle import wire
from soft.bundle.model import Counts, crash_of
from soft.bundle.tables import PathTable
from soft.bundle.terms_file import TermWriter
from soft.scenarios.model import Scenario
from soft.solve.terms import Term
from soft.solve.walk import post_order
from soft.trace import Trace

Write = Callable[[bytes], object]


class Digests:
    """A digest of each term's structure: the same in every process."""

    def __init__(self) -> None:
        self._known: dict[Term, bytes] = {}

    def term(self, root: Term) -> bytes:
        known = self._known
        for term in post_order((root,), known):
            parts = [known[arg] if isinstance(arg, Term) else str(arg).encode() for arg in term.args]
            head = f"{term.op} {term.width} ".encode()
            known[term] = blake2b(head + b"\0".join(parts), digest_size=16).digest()
        return known[root]

    def trace(self, trace: Trace) -> bytes:
        return blake2b(wire.encode_trace(trace, lambda term: self.term(term).hex()), digest_size=16).digest()


def write_canonical(
    scenario: Scenario,
    conditions: Sequence[Term],
    traces: Sequence[Trace],
    paths: PathTable,
    write_terms: Write,
    write_traces: Write,
    write_paths: Write,
) -> Counts:
    """Write the paths in canonical order, each once, with the terms and traces that they use."""
    terms = TermWriter(scenario)
    write_terms(terms.head().encode())
    lines: list[str] = []

    def reference(term: Term) -> str:
        return terms.reference(term, lines)

    numbers: dict[int, int] = {}
    count = crashes = 0
    crashing = {number for number, trace in enumerate(traces) if crash_of(trace)}
    for index in _order(conditions, traces, paths):
        path = paths[index]
        indices = [terms.condition(conditions[number], lines) for number in path.conditions]
        if path.trace not in numbers:
            numbers[path.trace] = len(numbers)
            write_traces(wire.encode_trace(traces[path.trace], reference))
        if lines:
            write_terms("".join(lines).encode())
            lines.clear()
        values = [path.witness[name] for name in scenario.variable_names]
        write_paths(wire.encode_path(indices, numbers[path.trace], values, path.marks))
        count += 1
        crashes += path.trace in crashing
    return Counts(paths=count, outputs=len(numbers), crashes=crashes, conditions=terms.condition_count)


def _order(conditions: Sequence[Term], traces: Sequence[Trace], paths: PathTable) -> Iterable[int]:
    """The numbers of the paths in canonical order. A path that is there twice (same run, found again) comes once."""
    digests = Digests()
    rank = _ranks([digests.term(term) for term in conditions])
    trace_rank = _ranks([digests.trace(trace) for trace in traces])

    def key(index: int) -> bytes:
        numbers = array("I", [rank[number] for number in paths.conditions(index)])
        numbers.append(trace_rank[paths.trace(index)])
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    previous = None
    for index, this in sorted(((index, key(index)) for index in range(len(paths))), key=lambda pair: pair[1]):
        if this != previous:
            yield index
        previous = this


def _ranks(digests: list[bytes]) -> list[int]:
    # One more than the rank: a path that ends where another goes on then comes before it or after it, but never equal.
    places = {digest: place for place, digest in enumerate(sorted(digests), 1)}
    return [places[digest] for digest in digests]
