"""A place where inputs are played on live agents, one after the other, at the least cost that is sound.

A start takes ten milliseconds to a second, an input much less. So an agent that can be put back to where the scenario
begins takes the next input too: rewound if it is a process of one thread, else reset over its control channel. What it
does then is believed where it is what was expected; everything else is asked again of an agent that was just started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from soft.errors import SoftError
from soft.launch.agent import Agent, start
from soft.launch.clock import MOVED_CLOCK
from soft.launch.exchange import Burst
from soft.launch.find import Target
from soft.openflow.layout import layout_of
from soft.openflow.normalise import normalise
from soft.replay.reset import Reset
from soft.replay.rewind import Moment, mark, rewind
from soft.replay.runner import PATIENCE, opening, play, waits
from soft.scenarios.model import Scenario
from soft.trace import Close, Crash, Flood, Hang, Trace


@dataclass(frozen=True, slots=True)
class Observation:
    """What a live agent did with one input, compared with what was expected of it."""

    expected: Trace
    seen: Trace
    tries: int = 1
    """On how many agents that were just started the input was played; 0 if one that had played before sufficed."""
    steady: bool = True
    """No fresh agent did anything else."""

    @property
    def agrees(self) -> bool:
        return self.seen == self.expected


class Stage(Protocol):
    """Where inputs are played."""

    def again(self, values: Mapping[str, int]) -> Trace | None:
        """The trace of an input on an agent that may have played others before; None if there is no such agent."""

    def fresh(self, values: Mapping[str, int]) -> Trace:
        """The trace of an input on an agent that has done nothing else."""

    def visible(self, trace: Trace) -> Trace:
        """What can be seen here of what an agent does."""

    @property
    def moves_clock(self) -> bool:
        """Whether the waits of an input are kept to the millisecond here."""


def observe(stage: Stage, values: Mapping[str, int], expected: Trace, tries: int = 3) -> Observation:
    """Play an input. One that does not go as expected is played on up to `tries` fresh agents before that counts."""
    expected = stage.visible(expected)
    if (seen := stage.again(values)) == expected:
        return Observation(expected, expected, tries=0)
    others: list[Trace] = []
    for number in range(1, tries + 1):
        if (seen := stage.fresh(values)) == expected:
            return Observation(expected, seen, number, steady=not others)
        others.append(seen)
    return Observation(expected, others[0], tries, steady=all(other == others[0] for other in others))


class AgentStage:
    """A stage for an agent that we start ourselves."""

    def __init__(
        self,
        target: Target,
        scenario: Scenario,
        *,
        patience: float = PATIENCE,
        keep_agents: bool = True,
        real_time: bool = False,
    ) -> None:
        self._target = target
        self._scenario = scenario
        self._patience = patience
        # Time cannot be put back.
        self._keeps = keep_agents and not waits(scenario)
        self._movable = waits(scenario) and not real_time
        self._moves: bool | None = None if self._movable else False
        self._resource = contextlib.ExitStack()
        self._kept: _Kept | None = None
        self._reset: Reset | None = None
        self.started = 0
        """How many agents were started so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    @property
    def keeps(self) -> bool:
        """Whether agents play more than one input here."""
        return self._keeps

    @property
    def moves_clock(self) -> bool:
        """An agent tells as soon as it runs."""
        if self._moves is None:
            with self._resource:
                self._start()
        return bool(self._moves)

    def again(self, values: Mapping[str, int]) -> Trace | None:
        if not self._keeps:
            return None
        kept = self._ready()
        if kept is None:
            self._keeps = False
            return None
        raw = play(kept.agent, self._scenario.bind(values), kept.before, patience=self._patience)
        self._note(kept, raw)
        return normalise(raw, self._scenario.openflow)

    def fresh(self, values: Mapping[str, int]) -> Trace:
        self._drop()
        agent, before = self._start()
        # It may play others afterwards. What can only be asked for over its channel is known from another agent.
        way = mark(agent) or self._reset if self._keeps else None
        raw = play(agent, self._scenario.bind(values), before, patience=self._patience)
        self._moves = agent.time == MOVED_CLOCK
        if way is not None:
            self._kept = _Kept(agent, before, way, self._scenario.openflow)
            self._note(self._kept, raw)
        else:
            self._drop()
        return normalise(raw, self._scenario.openflow)

    def visible(self, trace: Trace) -> Trace:
        return trace

    def _start(self) -> tuple[Agent, Burst]:
        self.started += 1
        target, ports = self._target, self._scenario.ports
        nudging = not waits(self._scenario)
        starting = start(target.profile, target.binary, ports, movable_clock=self._movable, nudging=nudging)
        agent = self._resource.enter_context(starting)
        before = opening(agent, self._scenario, patience=self._patience)
        self._moves = agent.time == MOVED_CLOCK
        return agent, before

    def _ready(self) -> _Kept | None:
        """An agent where the scenario begins: the one at hand if it can be put back, else another."""
        if self._kept is not None and self._kept.put_back():
            return self._kept
        self._drop()
        agent, before = self._start()
        openflow = self._scenario.openflow
        if (moment := mark(agent)) is not None:
            self._kept = _Kept(agent, before, moment, openflow)
        elif self._scenario.handshake and (reset := Reset.of(agent, openflow, patience=0)) is not None:
            self._reset = reset
            self._kept = _Kept(agent, before, reset, openflow)
        else:
            self._drop()
        return self._kept

    def _note(self, kept: _Kept, raw: Trace) -> None:
        """What an agent has done decides how it is put back, and whether."""
        kept.used = True
        kept.closed = any(isinstance(event, Close) for event in raw)
        if any(isinstance(event, Crash | Hang | Flood) for event in raw):
            self._drop()

    def _drop(self) -> None:
        self._kept = None
        self._resource.close()


@dataclass(slots=True)
class _Kept:
    """An agent that runs, what it said before the first step, and the way back to there."""

    agent: Agent
    before: Burst
    way: Moment | Reset
    openflow: str
    used: bool = False
    closed: bool = False
    """The agent has closed its control channel."""

    def put_back(self) -> bool:
        if self.used:
            try:
                self.used = not self._go(self.way)
            except SoftError:
                return False
        return not self.used

    def _go(self, way: Moment | Reset) -> bool:
        if isinstance(way, Moment):
            return not self.closed and rewind(self.agent, way)
        # Half a message may be left in the channel, and whatever follows is no message then: another channel is clean.
        version = layout_of(self.openflow).version
        return (not self.closed and way.apply(self.agent)) or (self.agent.reconnect(version) and way.apply(self.agent))
