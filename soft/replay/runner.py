"""Send a scenario with given values to a live agent and record what it does.

`run` starts an agent for one input and leaves nothing behind; `opening` and `play` are its parts, for whoever keeps an
agent running or freezes one. An agent that crashes, closes, hangs or floods has done something: that is an event.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from soft.errors import SoftError
from soft.launch.agent import Agent, start
from soft.launch.exchange import Burst
from soft.launch.find import Target
from soft.launch.ports import Port
from soft.openflow.cut import cut_steps
from soft.openflow.layout import layout_of
from soft.openflow.normalise import normalise
from soft.replay.live import Live
from soft.scenarios.model import Probe, Scenario, Send, Step, Wait
from soft.trace import Close, Crash, Event, Flood, Hang, Packet, Payload, Trace

# Seconds until an agent that does not come to rest counts as hanging: a thousand times what an answer takes, because
# the machine may be busy.
PATIENCE = 5.0
# A process that ends closes its channel a moment before its end can be seen.
_END_FOLLOWS_CLOSE = 0.02


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario on one live agent."""

    steps: tuple[Step, ...]
    """What was sent: every payload concrete."""
    raw: Trace
    """The events as they came, cut into messages."""
    trace: Trace
    """The events without what may legitimately differ."""
    time: str = ""
    """How the scenario's waits passed, if it has any: `real time`, or by a `moved clock`."""


def run(
    target: Target,
    scenario: Scenario,
    values: Mapping[str, int],
    *,
    patience: float = PATIENCE,
    real_time: bool = False,
) -> Run:
    """Start the agent, shake hands unless the scenario does that itself, play the steps, and end the agent.

    Where the scenario waits, the agent's clock is moved if it can be, unless `real_time` forbids it.
    """
    steps = scenario.bind(values)
    movable = waits(scenario) and not real_time
    nudging = not waits(scenario)
    with start(target.profile, target.binary, scenario.ports, movable_clock=movable, nudging=nudging) as agent:
        before = opening(agent, scenario, patience=patience)
        raw = play(agent, steps, before, patience=patience)
        time = agent.time if waits(scenario) else ""
    return Run(steps, raw, normalise(raw, scenario.openflow), time)


def waits(scenario: Scenario) -> bool:
    return any(isinstance(step, Wait) for step in scenario.steps)


def opening(agent: Agent, scenario: Scenario, *, patience: float = PATIENCE) -> Burst:
    """Bring the agent to where the scenario begins; what it said that counts as part of the first step.

    The words of a handshake do not count. Without one, whatever the agent says as soon as it has a controller does.
    A clock that can be moved stands still from then on.
    """
    if scenario.handshake:
        agent.handshake(layout_of(scenario.openflow).version)
        before = Burst(quiet=True)
    else:
        agent.connect()
        before = agent.collect(patience)
    agent.stop_clock()
    return before


def play(
    agent: Live, steps: Sequence[Step], before: Burst | None = None, *, patience: float = PATIENCE
) -> tuple[Event, ...]:
    """Each step in turn, and all that the agent does until it is quiet again. Behind its end nothing is sent.

    `before` is what it has done already; that belongs to the first step.
    """
    writes: list[tuple[int, Payload]] = []
    events: list[Event] = []

    def note(step: int, burst: Burst) -> bool:
        if burst.control:
            writes.append((step, Payload.of(bytes(burst.control))))
        events.extend(Packet(step, port, Payload.of(frame)) for port, frame in burst.packets)
        endings = _endings(step, burst)
        events.extend(endings)
        return not any(isinstance(event, Crash | Hang | Flood) for event in endings)

    goes_on = before is None or note(0, before)
    for index, step in enumerate(steps):
        if not goes_on:
            break
        goes_on = note(index, _take(agent, step, patience))
    return (*cut_steps(writes), *events)


def _take(agent: Live, step: Step, patience: float) -> Burst:
    at_least = 0.0
    # A channel or a port that the agent has closed takes nothing: that it did so was seen, or will be now.
    with contextlib.suppress(OSError):
        if isinstance(step, Send):
            agent.send(step.payload.concrete() or b"")
        elif isinstance(step, Probe):
            _port(agent, step).send(step.payload.concrete() or b"")
        else:
            at_least = _milliseconds(step) / 1000
    burst = agent.collect(patience, at_least)
    if burst.closed and burst.ended is None and not burst.flooded:
        more = agent.collect(patience, _END_FOLLOWS_CLOSE)
        more.control[:0] = burst.control
        more.packets[:0] = burst.packets
        burst = replace(more, closed=True)
    return burst


def _port(agent: Live, step: Probe) -> Port:
    if step.port not in agent.ports:
        raise SoftError(f"Step {step.id} probes port {step.port}, which the agent's launch profile does not give it.")
    return agent.ports[step.port]


def _milliseconds(step: Wait) -> int:
    if not isinstance(step.milliseconds, int):
        raise TypeError("a step is played with its time bound to a number")
    return step.milliseconds


def _endings(step: int, burst: Burst) -> list[Event]:
    """How the agent ended, if it did. Every process that ends closes its channel: that is no event of its own."""
    if burst.ended is not None:
        return [Crash(step, burst.ended)]
    endings: list[Event] = [Close(step)] if burst.closed else []
    if burst.flooded:
        endings.append(Flood(step))
    elif not burst.quiet:
        endings.append(Hang(step))
    return endings
