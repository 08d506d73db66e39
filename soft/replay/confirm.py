"""Confirm findings: the example of each is played on the live agents, several times, and compared with what it says.

`confirmed` is a difference that two live agents showed in every try; `flaky` one that they showed in some;
`not reproduced` one that at least one of them never showed, or could not be asked about. Where a difference depends on
how long the scenario waits, both sides of the moments at which it begins and ends are played too.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import msgspec

from soft.crosscheck.model import Behaviour, Confirmation, EventRecord, Finding, Findings
from soft.errors import SoftError
from soft.launch.find import Target
from soft.openflow.decode import describe_event
from soft.replay.device import Device
from soft.replay.device_stage import DeviceStage
from soft.replay.difference import first_difference
from soft.replay.stage import AgentStage, Stage
from soft.replay.timing import edges, safe_values, waits
from soft.replay.workers import cores, spread
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload, Trace

TRIES = 3
# Stages that a worker keeps open: the two agents of a finding, and those of the next.
_MOST_STAGES = 4
_LONGEST_WORDS = 400
# The moments of one finding that are looked at from both sides: its beginning and its end. Each costs four starts.
_MOST_EDGES = 2

# Opens a stage for a scenario: an agent that we start, or a device.
Opener = Callable[[Scenario], AbstractContextManager[Stage]]


def agent_opener(target: Target) -> Opener:
    return lambda scenario: AgentStage(target, scenario)


def device_opener(device: Device) -> Opener:
    return lambda scenario: DeviceStage(device, scenario)


@dataclass(frozen=True, slots=True)
class Asked:
    """One agent, asked about one finding: in how many tries it did as predicted, and a sentence about it."""

    label: str
    good: int
    tries: int
    words: str


def confirm(
    findings: Findings,
    agents: Mapping[str, Target],
    *,
    tries: int = TRIES,
    jobs: int | None = None,
    watch: Callable[[Finding], None] = lambda finding: None,
) -> Findings:
    """The findings with a confirmation for each whose two agents are among `agents` (label → what to start)."""
    return confirm_with(
        findings, {label: agent_opener(target) for label, target in agents.items()}, tries=tries, jobs=jobs, watch=watch
    )


def confirm_with(
    findings: Findings,
    openers: Mapping[str, Opener],
    *,
    tries: int = TRIES,
    jobs: int | None = None,
    alone: bool = False,
    watch: Callable[[Finding], None] = lambda finding: None,
) -> Findings:
    """As `confirm`, for agents of any kind. With `alone`, one agent of a finding suffices."""
    check_labels(findings, openers)
    chosen = [
        number for number, finding in enumerate(findings.findings)
        if all(label in openers for label in finding.agents) or (alone and any(a in openers for a in finding.agents))
    ]  # fmt: skip
    confirmer = _Confirmer(findings, openers, tries)
    done: dict[int, Finding] = {}
    for number, confirmation in spread(confirmer.work, chosen, _jobs(confirmer) if jobs is None else jobs):
        done[number] = msgspec.structs.replace(findings.findings[number], confirmation=confirmation)
        watch(done[number])
    together = tuple(done.get(number, finding) for number, finding in enumerate(findings.findings))
    return msgspec.structs.replace(findings, findings=together)


@dataclass(frozen=True, slots=True)
class Resemblance:
    """Which agents of a finding a device behaves like, if it does; or why it could not be asked."""

    finding: Finding
    like: tuple[str, ...]
    seen: Trace = ()
    failure: str = ""


def compare_device(findings: Findings, device: Device) -> Iterator[Resemblance]:
    """Play the example of every finding on a device, and see which of the agents it behaves like."""
    scenarios = {record.name: loader.parse(record.text, record.name) for record in findings.scenarios}
    for finding in findings.findings:
        try:
            stage = DeviceStage(device, scenarios[finding.scenario])
            seen = stage.fresh(finding.example.values)
        except SoftError as error:
            yield Resemblance(finding, (), failure=str(error))
            continue
        behaviours = (*finding.behaviours, *finding.others)
        yield Resemblance(finding, tuple(b.agent for b in behaviours if stage.visible(trace_of(b)) == seen), seen)


def check_labels(findings: Findings, labels: Mapping[str, object]) -> None:
    known = [agent.label for agent in findings.agents]
    for label in labels:
        if label not in known:
            raise SoftError(f"The findings know no agent {label!r}; they are about {' and '.join(known)}.")


def trace_of(behaviour: Behaviour) -> Trace:
    """What an agent is predicted to do with the example."""
    return tuple(_event(record) for record in behaviour.events)


def _event(record: EventRecord) -> Event:
    payload = Payload.of(bytes.fromhex(record.hex or ""))
    match record.kind:
        case "message":
            return Message(record.step, payload)
        case "packet":
            return Packet(record.step, record.port or 0, payload)
        case "crash":
            return Crash(record.step, record.reason or "")
        case "close":
            return Close(record.step)
        case "hang":
            return Hang(record.step)
        case "flood":
            return Flood(record.step)


def ask(stage: Stage, values: Mapping[str, int], expected: Trace, label: str, openflow: str, tries: int) -> Asked:
    """Play an example several times, the last time at least on a fresh agent."""
    expected = stage.visible(expected)
    good = 0
    other: Trace | None = None
    for number in range(1, tries + 1):
        seen = stage.again(values) if number < tries else None
        if seen != expected:
            seen = stage.fresh(values)
        good += seen == expected
        other = seen if seen != expected else other
    if other is None:
        how = ", its clock moved" if stage.moves_clock else ""
        return Asked(label, good, tries, f"{label} did as predicted in {tries} of {tries} tries{how}.")
    often = f"{good if good else 'none'} of {tries} tries"
    return Asked(label, good, tries, f"{label} did as predicted in {often}: {_parting(expected, other, openflow)}")


def _parting(expected: Trace, seen: Trace, openflow: str) -> str:
    parting = first_difference(expected, seen)
    assert parting is not None

    def words(event: Event | None) -> str:
        return "nothing more" if event is None else f"step {event.step} {describe_event(event, openflow)}"

    text = f"predicted {words(parting.expected)}; seen {words(parting.seen)}."
    return text if len(text) <= _LONGEST_WORDS else text[: _LONGEST_WORDS - 1] + "…"


class _Confirmer:
    def __init__(self, findings: Findings, openers: Mapping[str, Opener], tries: int) -> None:
        self._findings = findings
        self._openers = openers
        self._tries = tries
        self.scenarios = {record.name: loader.parse(record.text, record.name) for record in findings.scenarios}

    @contextlib.contextmanager
    def work(self) -> Iterator[Callable[[int], tuple[int, Confirmation]]]:
        stages: dict[tuple[str, str], tuple[Stage, contextlib.ExitStack]] = {}

        def stage(name: str, label: str) -> Stage:
            key = name, label
            if key not in stages:
                while len(stages) >= _MOST_STAGES:
                    stages.pop(next(iter(stages)))[1].close()
                stack = contextlib.ExitStack()
                stages[key] = stack.enter_context(self._openers[label](self.scenarios[name])), stack
            return stages[key][0]

        try:
            yield lambda number: (number, self._confirmation(self._findings.findings[number], stage))
        finally:
            for _, stack in stages.values():
                stack.close()

    def _confirmation(self, finding: Finding, stage: Callable[[str, str], Stage]) -> Confirmation:
        scenario = self.scenarios[finding.scenario]
        values: Mapping[str, int] = finding.example.values
        asked: list[Asked] = []
        if waits(scenario) and finding.region.proved and not self._clocks_move(finding, stage):
            # Every input of the region shows the difference: take one whose times are not on the edge.
            values = safe_values(scenario, values, finding.region.holds) or values
        for behaviour in finding.behaviours:
            if behaviour.agent not in self._openers:
                asked.append(Asked(behaviour.agent, 0, 0, f"{behaviour.agent} was not asked."))
                continue
            try:
                one = ask(
                    stage(finding.scenario, behaviour.agent), values, trace_of(behaviour), behaviour.agent,
                    scenario.openflow, self._tries,
                )  # fmt: skip
            except SoftError as error:
                one = Asked(behaviour.agent, 0, self._tries, f"{behaviour.agent} could not be asked: {error}")
            asked.append(one)
        status, words = _status(asked), [one.words for one in asked]
        if status == "confirmed" and finding.region.proved and all(one.tries for one in asked):
            with contextlib.suppress(SoftError):  # they could be asked before
                holds, more = self._both_sides(finding, scenario, stage)
                status = status if holds else "flaky"
                words += more
        return Confirmation(status, self._tries, tuple(map(_line, words)))

    def _both_sides(
        self, finding: Finding, scenario: Scenario, stage: Callable[[str, str], Stage]
    ) -> tuple[bool, list[str]]:
        """Play an input just inside of where the difference begins or ends in time, and one just outside.

        Whether all of the former show a difference, which the region promises. What is outside may be another finding.
        """
        if not waits(scenario) or not self._clocks_move(finding, stage):
            return True, []
        stages = [stage(finding.scenario, behaviour.agent) for behaviour in finding.behaviours]

        def differ(values: Mapping[str, int]) -> bool:
            first, *others = [each.fresh(values) for each in stages]
            return any(other != first for other in others)

        good, words = True, []
        for edge in itertools.islice(edges(scenario, finding.example.values, finding.region.holds), _MOST_EDGES):
            inside, outside = differ(edge.inside), differ(edge.outside)
            good &= inside
            words.append(
                f"With {edge.name} = {edge.inside[edge.name]} they {'differ' if inside else 'do not differ'}, "
                f"with {edge.outside[edge.name]} they {'differ too' if outside else 'do the same'}."
            )
        return good, words

    def _clocks_move(self, finding: Finding, stage: Callable[[str, str], Stage]) -> bool:
        try:
            agents = [behaviour.agent for behaviour in finding.behaviours if behaviour.agent in self._openers]
            return all(stage(finding.scenario, agent).moves_clock for agent in agents)
        except SoftError:
            return False  # asking it will say why


def _status(asked: list[Asked]) -> Literal["confirmed", "not reproduced", "flaky"]:
    given = [one for one in asked if one.tries]
    if all(one.good == one.tries for one in given):
        return "confirmed"
    return "not reproduced" if any(one.good == 0 for one in given) else "flaky"


def _line(text: str) -> str:
    """One printable line: an error may quote the last words of an agent."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))[:1900]


def _jobs(confirmer: _Confirmer) -> int:
    return (8 if any(waits(scenario) for scenario in confirmer.scenarios.values()) else 2) * cores()
