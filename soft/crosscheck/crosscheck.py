"""Bundles of one scenario, two or more: compare every pair, explain, cluster."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from soft import __version__
from soft.bundle.model import Bundle
from soft.bundle.terms_file import TermWriter
from soft.crosscheck.behaviour import clauses, first_difference, kinds, severity
from soft.crosscheck.cause import Draft, identifier
from soft.crosscheck.cluster import cluster
from soft.crosscheck.compare import STOPPED, Explained, Result, compare
from soft.crosscheck.model import (
    FORMAT,
    Agent,
    Behaviour,
    Comparison,
    Counts,
    Doubt,
    Finding,
    Findings,
    Region,
    ScenarioRecord,
    Statistics,
)
from soft.crosscheck.outputs import Outputs, difference
from soft.crosscheck.slices import Slices, slices_of
from soft.crosscheck.sound import Soundness, soundness
from soft.crosscheck.space import Input, Space
from soft.crosscheck.stop import Stop, StoppableSolver, Stopped
from soft.crosscheck.walk import Side
from soft.crosscheck.words import event_records, example_of, field_sets, region_text
from soft.errors import SoftError
from soft.solve import terms
from soft.solve.solver import Solver
from soft.trace import Trace, evaluate_trace

# A stranger's conditions may be a puzzle. Real ones take milliseconds, but for two ways to compute one checksum: that
# they are the same takes 8 s of a core, on a busy machine several times as long.
SECONDS_PER_QUERY = 40.0
# On packet_out of two switches, 480 queries with eight equivalences of checksums among them: 5 s, and 27 s with z3.
SOLVER = "bitwuzla"


@dataclass(frozen=True, slots=True)
class _Party:
    """One agent in one scenario."""

    label: str
    place: int  # in the order in which the user named them
    bundle: Bundle
    side: Side  # of the bundle over the parts of the fields
    soundness: Soundness


def crosscheck(
    bundles: Sequence[Bundle],
    labels: Sequence[str] | None = None,
    *,
    solver: str = SOLVER,
    timeout: float = SECONDS_PER_QUERY,
    progress: Callable[[str], object] | None = None,
    stop: Stop | None = None,
) -> Findings:
    """Compare bundles of one scenario, each with each, until `stop` ends it.

    Raises SoftError if there are fewer than two, their scenarios differ, or one of them contradicts itself.
    """
    start = time.perf_counter()
    labels = unique_labels([bundle.manifest.agent for bundle in bundles]) if labels is None else list(labels)
    _check_comparable(bundles)
    scenario = bundles[0].scenario
    stop = stop or Stop()
    engine = StoppableSolver(solver, timeout, stop)
    # The order of names, not of arguments: (A, B) and (B, A) find the same.
    places = sorted(range(len(bundles)), key=lambda place: labels[place])
    done: dict[tuple[int, int], tuple[Comparison, list[Draft]]] = {}
    with contextlib.suppress(Stopped):
        for pair, result in _compared(bundles, labels, places, engine, stop, progress):
            done[pair] = result
    comparisons: list[Comparison] = []
    drafts: list[Draft] = []
    for pair in combinations(places, 2):
        comparison, made = done.get(pair) or (_not_compared(bundles, labels, sorted(pair)), [])
        comparisons.append(comparison)
        drafts += made
    findings, clusters = cluster(drafts, scenario, len(bundles))
    return Findings(
        format=FORMAT,
        tool=f"soft {__version__}",
        agents=tuple(Agent(label, (bundle.source,)) for label, bundle in zip(labels, bundles, strict=True)),
        scenarios=(
            ScenarioRecord(scenario.name, scenario.digest, scenario.summary, scenario.openflow, scenario.text),
        ),
        comparisons=tuple(comparisons),
        findings=tuple(findings),
        clusters=tuple(clusters),
        seconds=time.perf_counter() - start,
        queries=engine.queries,
    )


def _compared(
    bundles: Sequence[Bundle],
    labels: Sequence[str],
    places: Sequence[int],
    engine: Solver,
    stop: Stop,
    progress: Callable[[str], object] | None,
) -> Iterator[tuple[tuple[int, int], tuple[Comparison, list[Draft]]]]:
    """Each pair of bundles, as far as there is time: the small ones first, as the large ones may need all of it."""
    stop.check()
    if stop.over:
        return
    scenario = bundles[0].scenario
    outputs = Outputs()
    whole = Space(scenario, engine)
    slices = slices_of(bundles)
    space = Space(slices.scenario, engine, slices.headed, stop)
    parties = []
    for place in places:
        if progress:
            progress(f"checking {labels[place]}")
        bundle = bundles[place]
        found = soundness(bundle, labels[place], whole)
        side = Side(slices.bundle(bundle), outputs, space, whole=found.whole)
        parties.append(_Party(labels[place], place, bundle, side, found))
    ranks = {party.label: rank for rank, party in enumerate(parties)}
    for pair in sorted(combinations(parties, 2), key=lambda pair: sum(len(party.bundle.paths) for party in pair)):
        stop.check()
        if stop.over:
            return
        names = f"{pair[0].label} and {pair[1].label}"
        tell = None if progress is None else partial(_tell, progress, names)
        if progress:
            progress(names)
        begin, queries, kept = time.perf_counter(), engine.queries, space.kept
        try:
            witnesses = (slices.cut(path.witness) for party in pair for path in party.bundle.paths)
            result = compare(space, pair[0].side, pair[1].side, outputs, witnesses, tell)
        except RecursionError:
            raise SoftError(f"{bundles[0].source}: terms nest too deep to be compared.") from None
        made = [_draft(explained, pair, parties, space, slices, outputs, ranks) for explained in result.explained]
        statistics = Statistics(time.perf_counter() - begin, engine.queries - queries, space.kept - kept)
        yield (pair[0].place, pair[1].place), (_comparison(pair, result, made, scenario.name, statistics), made)


def _tell(progress: Callable[[str], object], names: str, what: str) -> None:
    progress(f"{names}: {what}")


def unique_labels(labels: Sequence[str]) -> list[str]:
    """Names for the agents: their own, numbered where several have the same."""
    result: list[str] = []
    for label in labels:
        number, name = 1, label
        while name in result:
            number += 1
            name = f"{label} ({number})"
        result.append(name)
    return result


def _check_comparable(bundles: Sequence[Bundle]) -> None:
    if len(bundles) < 2:
        raise SoftError("A crosscheck needs two bundles or more.")
    first = bundles[0]
    for other in bundles[1:]:
        if other.scenario.digest != first.scenario.digest:
            raise SoftError(
                f"{other.source}: this bundle is of another scenario ({other.scenario.name}) than {first.source} "
                f"({first.scenario.name}), or of another version of it; only equal scenarios can be compared."
            )
        if other.manifest.normalisation != first.manifest.normalisation:
            raise SoftError(
                f"{other.source}: other rules of normalisation were applied to this bundle than to {first.source}; "
                "explore both with one version of soft."
            )


# ---------------------------------------------------------------------------------------------- one pair


def _comparison(
    pair: tuple[_Party, _Party], result: Result, drafts: Sequence[Draft], scenario: str, statistics: Statistics
) -> Comparison:
    first, second = sorted(pair, key=lambda party: party.place)
    doubts = [*first.soundness.doubts, *second.soundness.doubts]
    if result.undecided:
        sentence = f"The solver gave up on {result.undecided} of the parts of the input space in which outputs meet."
        doubts.append(Doubt("undecided", None, sentence))
    if result.unfinished:
        doubts.append(Doubt("undecided", None, result.unfinished))
    sides = (first.bundle.manifest.counts, second.bundle.manifest.counts)
    return Comparison(
        scenario=scenario,
        agents=(first.label, second.label),
        verdict="differ" if drafts else "unknown" if doubts else "agree",
        counts=Counts(
            paths=(sides[0].paths, sides[1].paths),
            outputs=(sides[0].outputs, sides[1].outputs),
            overlaps=result.overlaps,
            differing=result.differing,
        ),
        findings=tuple(draft.finding.id for draft in drafts),
        doubts=tuple(doubts),
        statistics=statistics,
    )


def _not_compared(bundles: Sequence[Bundle], labels: Sequence[str], pair: Sequence[int]) -> Comparison:
    """What there was no time for."""
    first, second = (bundles[place].manifest.counts for place in pair)
    return Comparison(
        scenario=bundles[0].scenario.name,
        agents=(labels[pair[0]], labels[pair[1]]),
        verdict="unknown",
        counts=Counts((first.paths, second.paths), (first.outputs, second.outputs), overlaps=0, differing=0),
        findings=(),
        doubts=(Doubt("undecided", None, STOPPED),),
        statistics=Statistics(0.0, 0),
    )


def _draft(
    explained: Explained,
    pair: tuple[_Party, _Party],
    parties: Sequence[_Party],
    space: Space,
    slices: Slices,
    outputs: Outputs,
    ranks: Mapping[str, int],
) -> Draft:
    """A region as a finding, in the order in which the user named the agents."""
    scenario, parts = slices.original, explained.example
    values = slices.join(parts)
    first, second = sorted(pair, key=lambda party: party.place)
    traces = {party.label: _trace(party, parts, values) for party in parties}
    left, right = traces[first.label], traces[second.label]
    assert left is not None
    assert right is not None
    words = clauses(left, right, scenario)
    others = tuple(
        _behaviour(party, parts, trace, clauses(trace, left, scenario)[0] if trace != left else words[0])
        for party in sorted(parties, key=lambda party: party.place)
        if party not in pair and (trace := traces[party.label]) is not None
    )
    fields = field_sets(slices, explained.box.fields, space.domain)
    relations = tuple(tie.relation(slices) for tie in explained.box.ties)
    region = Region(
        fields=fields,
        relations=relations,
        text=region_text(fields, relations),
        proved=explained.proved,
        exact=explained.exact,
    )
    named = {name for field in fields for name in (field.field, field.head)}
    named = named.union(*[relation.fields for relation in relations])
    deciding = tuple(name for name in scenario.variable_names if name in named)
    way = explained.way
    finding = Finding(
        id=identifier(
            "finding",
            scenario.name,
            [ranks[party.label] for party in pair],
            (way.left, way.right, way.what),
            [(f.name, f.low, [list(map(str, interval)) for interval in f.intervals]) for f in fields],
            relations,
        ),
        cluster="",
        scenario=scenario.name,
        agents=(first.label, second.label),
        severity=severity(left, right),
        behaviours=(_behaviour(first, parts, left, words[0]), _behaviour(second, parts, right, words[1])),
        others=others,
        difference=first_difference(left, right),
        example=example_of(scenario, values),
        region=region,
        fields=deciding,
        pairs=max(1, len(explained.pairs)),
        conditions="",
    )
    like_left, like_right = (
        tuple(ranks[label] for label, trace in traces.items() if trace == traces[party.label]) for party in pair
    )
    met = frozenset((kinds(outputs.traces[a]), kinds(outputs.traces[b])) for a, b in explained.pairs)
    return Draft(
        finding,
        way,
        (like_left, like_right),
        swapped=first is not pair[0],
        met=met,
        covered=explained.covered,
        traces=(left, right),
    )


def _trace(party: _Party, parts: Input, values: Input) -> Trace | None:
    """What an agent does with an input (by parts of fields, and by fields); None if that was not explored."""
    twig = party.side.follow(parts)
    if twig is None:
        return None
    path = party.bundle.paths[party.side.path(twig)]
    return evaluate_trace(party.bundle.traces[path.trace], values)


def _behaviour(party: _Party, parts: Input, trace: Trace, summary: str) -> Behaviour:
    twig = party.side.follow(parts)
    assert twig is not None
    number = party.side.path(twig)
    path = party.bundle.paths[number]
    records = event_records(trace, party.bundle.scenario.openflow)
    return Behaviour(party.label, summary, records, number, path.trace, path.marks)


# ---------------------------------------------------------------------------------------------- files


def condition_files(findings: Findings, bundles: Mapping[str, Bundle]) -> dict[str, bytes]:
    """The conditions of each finding as SMT-LIB, by the file's name. `bundles` are those of its agents, by label."""
    return {finding.conditions: _conditions(finding, bundles) for finding in findings.findings}


def _conditions(finding: Finding, bundles: Mapping[str, Bundle]) -> bytes:
    """The paths that both agents take on the example, and that their outputs differ: the example is a model."""
    scenario = bundles[finding.agents[0]].scenario
    writer = TermWriter(scenario)
    lines = [f"; {finding.scenario}, finding {finding.id}\n", "(set-option :produce-models true)\n", writer.head()]
    traces = []
    for behaviour in finding.behaviours:
        bundle = bundles[behaviour.agent]
        path = bundle.paths[behaviour.path]
        traces.append(bundle.traces[path.trace])
        lines.append(f"; path {behaviour.path} of {behaviour.agent}, which {behaviour.summary}\n")
        for term in bundle.terms_of(path):
            number = writer.condition(term, lines)
            lines.append(f"(assert c{number})\n")
    lines.append("; the outputs differ\n")
    number = writer.condition(terms.disj(*difference(*traces)), lines)
    lines += [f"(assert c{number})\n", "(check-sat)\n"]
    if scenario.variables:
        lines.append(f"(get-value ({' '.join(scenario.variable_names)}))\n")
    return "".join(lines).encode()
