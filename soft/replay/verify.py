"""Check a bundle on the live agent: the example of every path is sent to it, and what it does is compared.

This measures how faithful the model is that made the bundle. Agents are always started from the binary as it is: what
a launch profile replaces for exploring is not replaced here.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from soft.bundle.model import Bundle
from soft.bundle.tree import PathTree
from soft.errors import SoftError
from soft.launch.clock import MOVED_CLOCK, REAL_TIME, library
from soft.launch.find import Target
from soft.openflow.layout import layout_of
from soft.replay.difference import Difference, first_difference, kind_of
from soft.replay.shrink import shrink
from soft.replay.stage import AgentStage, Observation, observe
from soft.replay.timing import playable, waits
from soft.replay.workers import cores, spread
from soft.trace import Crash, Event, Message, Trace, evaluate_trace

# A worker and its agent take turns, so two pairs keep a core busy; more where they sleep most of the time, waiting out
# their settle time or the scenario's.
_PAIRS_A_CORE = 2
_SETTLING_A_CORE = 4
_WAITING_A_CORE = 16
# A scenario's steps take no time in the model. On a live agent a millisecond may begin between two of them, and a timer
# then ends a second later: a third of all tries, so many must all fail.
_TRIES, _TRIES_IN_TIME = 3, 6
# Disagreements that look alike are shown once; so many different ones are shrunk.
_MOST_SHRUNK = 20


@dataclass(frozen=True, slots=True)
class Check:
    """One path's example on the live agent. `observation` is kept where there is something to tell."""

    path: int
    verdict: str
    """`agreed`, `disagreed`, `skipped` (it needs a clock that real time does not have) or `failed`."""
    again: bool = False
    """It was played by an agent that had played others before."""
    retried: bool = False
    """Such an agent did not do as predicted, a fresh one did."""
    time: str = ""
    """How its waits passed, if it has any: in `real time`, or by a `moved clock`."""
    steady: bool = True
    observation: Observation | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Paths on which the agent does not do what was predicted, in one and the same manner; one of them, shrunk."""

    paths: tuple[int, ...]
    values: Mapping[str, int]
    fields: tuple[str, ...]
    """Those that must differ from their defaults to show it."""
    expected: Trace
    seen: Trace
    difference: Difference
    steady: bool


@dataclass(slots=True)
class Verification:
    """All that was checked."""

    bundle: Bundle
    target: Target
    checks: list[Check] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def times(self) -> list[str]:
        """How the waits of the scenario passed, if it has any."""
        return sorted({check.time for check in self.checks if check.time})

    def count(self, verdict: str) -> int:
        return sum(check.verdict == verdict for check in self.checks)

    @property
    def good(self) -> bool:
        return all(check.verdict in ("agreed", "skipped") for check in self.checks)

    def table(self) -> list[tuple[str, int, int]]:
        """For each kind of predicted behaviour: how many examples were played, and how many agreed."""
        played: Counter[str] = Counter()
        agreed: Counter[str] = Counter()
        for check in self.checks:
            if check.verdict in ("agreed", "disagreed"):
                name = behaviour(self.bundle.traces[self.bundle.paths[check.path].trace], self.bundle.scenario.openflow)
                played[name] += 1
                agreed[name] += check.verdict == "agreed"
        return [(name, count, agreed[name]) for name, count in played.most_common()]


def behaviour(trace: Trace, openflow: str) -> str:
    """A trace in a few words, without its bytes: "packet_in, packet, crash (SIGSEGV)"."""
    words = Counter(_word(event, openflow) for event in trace)
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in words.items()) or "silence"


def _word(event: Event, openflow: str) -> str:
    if isinstance(event, Message):
        first = event.payload.pieces[0] if event.payload.pieces else b""
        name = layout_of(openflow).types.name(first[1]) if isinstance(first, bytes) and len(first) > 1 else None
        return name or "message"
    if isinstance(event, Crash):
        return f"crash ({event.reason})"
    return type(event).__name__.lower()


def sampled(count: int, sample: int | None) -> Sequence[int]:
    """All numbers below `count`, or so many of them, evenly spaced, the first and the last included."""
    if sample is None or sample >= count:
        return range(count)
    if sample == 1:
        return [0]
    return [index * (count - 1) // (sample - 1) for index in range(sample)]


def verify(
    bundle: Bundle,
    target: Target,
    *,
    sample: int | None = None,
    jobs: int | None = None,
    keep_agents: bool = True,
    real_time: bool = False,
    watch: Callable[[Check], None] = lambda check: None,
) -> Verification:
    """Play the examples of all paths, or of `sample` of them, and compare. Raises SoftError if no agent starts."""
    begin = time.monotonic()
    result = Verification(bundle, target)
    paths = sampled(len(bundle.paths), sample)
    checker = _Checker(bundle, target, keep_agents, real_time)
    for check in spread(checker.work, paths, jobs or _jobs(bundle, target, real_time)):
        result.checks.append(check)
        watch(check)
    result.checks.sort(key=lambda check: check.path)
    result.seconds = time.monotonic() - begin
    result.disagreements = _explain(bundle, target, result.checks, real_time)
    return result


def _jobs(bundle: Bundle, target: Target, real_time: bool) -> int:
    if waits(bundle.scenario) and (real_time or library() is None):
        return _WAITING_A_CORE * cores()
    return (_PAIRS_A_CORE if target.profile.settle_ms == 0 else _SETTLING_A_CORE) * cores()


class _Checker:
    def __init__(self, bundle: Bundle, target: Target, keep_agents: bool, real_time: bool) -> None:
        self._bundle = bundle
        self._target = target
        self._keep_agents = keep_agents
        self._real_time = real_time
        self._started = False

    @contextlib.contextmanager
    def work(self) -> Iterator[Callable[[int], Check]]:
        scenario = self._bundle.scenario
        with AgentStage(self._target, scenario, keep_agents=self._keep_agents, real_time=self._real_time) as stage:
            yield lambda number: self._check(stage, number)

    def _check(self, stage: AgentStage, number: int) -> Check:
        path = self._bundle.paths[number]
        try:
            in_time = waits(self._bundle.scenario) and not stage.moves_clock
            values = playable(self._bundle, path) if in_time else path.witness
            if values is None:
                return Check(number, "skipped", time=REAL_TIME)
            expected = evaluate_trace(self._bundle.traces[path.trace], values)
            seen = observe(stage, values, expected, _TRIES_IN_TIME if in_time else _TRIES)
        except SoftError as error:
            # The first agent must start; that a later one does not is an outcome.
            if not self._started:
                raise
            return Check(number, "failed", failure=str(error))
        self._started = True
        time = "" if not waits(self._bundle.scenario) else MOVED_CLOCK if stage.moves_clock else REAL_TIME
        if not seen.agrees:
            return Check(number, "disagreed", steady=seen.steady, observation=seen, time=time)
        retried = stage.keeps and seen.tries > 0
        return Check(number, "agreed", again=seen.tries == 0, retried=retried, steady=seen.steady, time=time)


def _explain(bundle: Bundle, target: Target, checks: list[Check], real_time: bool) -> list[Disagreement]:
    """Disagreements that look alike as one, with the first of them shrunk."""
    alike: dict[object, list[Check]] = {}
    for check in checks:
        if check.observation is not None:
            parting = first_difference(check.observation.expected, check.observation.seen)
            assert parting is not None
            key = (parting.event, kind_of(parting.expected), kind_of(parting.seen), parting.byte)
            alike.setdefault(key, []).append(check)
    found: list[Disagreement] = []
    if not alike:
        return found
    tree = PathTree(bundle)
    with AgentStage(target, bundle.scenario, real_time=real_time) as stage:
        for group in sorted(alike.values(), key=len, reverse=True):
            found.append(_disagreement(bundle, tree, stage, group, shrinking=len(found) < _MOST_SHRUNK))
    return _merged(found)


def _merged(found: list[Disagreement]) -> list[Disagreement]:
    """Those that were shrunk to the same input are one."""
    together: dict[tuple[tuple[str, int], ...], list[Disagreement]] = {}
    for each in found:
        together.setdefault(tuple(sorted(each.values.items())), []).append(each)
    merged = [
        replace(
            same[0],
            paths=tuple(sorted(path for each in same for path in each.paths)),
            steady=all(each.steady for each in same),
        )
        for same in together.values()
    ]
    return sorted(merged, key=lambda each: -len(each.paths))


def _disagreement(
    bundle: Bundle, tree: PathTree, stage: AgentStage, group: list[Check], *, shrinking: bool
) -> Disagreement:
    observation = group[0].observation
    assert observation is not None
    path = bundle.paths[group[0].path]
    values = (None if stage.moves_clock else playable(bundle, path)) or path.witness
    if shrinking:
        with contextlib.suppress(SoftError):
            values, observation = shrink(bundle, tree, stage, values, observation)
    difference = first_difference(observation.expected, observation.seen)
    assert difference is not None
    defaults = bundle.scenario.defaults
    return Disagreement(
        paths=tuple(check.path for check in group),
        values=values,
        fields=tuple(name for name, value in values.items() if value != defaults[name]),
        expected=observation.expected,
        seen=observation.seen,
        difference=difference,
        steady=observation.steady,
    )
