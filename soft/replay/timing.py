"""Move the waits of an input away from the moments at which an agent changes its mind.

A path may hold for a wait of exactly 1000 ms. In the model that is a number, and for an agent whose clock is moved; in
real time it is a race. So there each wait is set to a time that leaves some room before and more behind it, for time
only ever runs late; the path stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from soft.bundle.model import Bundle, Path
from soft.replay.runner import waits
from soft.scenarios.model import Scenario, Variable, Wait
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

# Milliseconds: the clocks of an agent are this coarse, and a busy machine is this late.
_BEFORE = 20
_BEHIND = 150


@dataclass(frozen=True, slots=True)
class Edge:
    """Where something that holds for an input ends along one of its waits: the last input inside, the first outside."""

    name: str
    inside: Mapping[str, int]
    outside: Mapping[str, int]


def waiting_seconds(scenario: Scenario, values: Mapping[str, int]) -> float:
    """How long a live agent is left alone under an input."""
    total = 0
    for step in scenario.steps:
        if isinstance(step, Wait):
            duration = step.milliseconds
            total += duration if isinstance(duration, int) else evaluate(duration, values)
    return total / 1000


def playable(bundle: Bundle, path: Path) -> Mapping[str, int] | None:
    """An input that takes the path with some milliseconds to spare. None if the path is too short for real time."""
    return safe_values(bundle.scenario, path.witness, lambda values: _takes(bundle, path, values))


def safe_values(
    scenario: Scenario, values: Mapping[str, int], holds: Callable[[Mapping[str, int]], bool]
) -> Mapping[str, int] | None:
    """The values, with each wait moved as little as it takes to be well inside of where `holds` is true."""
    safe = dict(values)
    for variable in _wait_variables(scenario):

        def holds_at(value: int, name: str = variable.name) -> bool:
            return holds({**safe, name: value})

        low, high = _around(variable, safe[variable.name], holds_at)
        least, most = variable.range or (0, (1 << variable.width) - 1)
        start = low if low == least else low + _BEFORE
        stop = high if high == most else high - _BEHIND
        if start > stop:
            return None
        safe[variable.name] = min(max(safe[variable.name], start), stop)
    return safe


def edges(
    scenario: Scenario, values: Mapping[str, int], holds: Callable[[Mapping[str, int]], bool]
) -> Iterator[Edge]:
    """The ends, along each wait, of the stretch around an input where `holds` is true; not those of the domain."""
    for variable in _wait_variables(scenario):
        name = variable.name

        def holds_at(value: int, name: str = name) -> bool:
            return holds({**values, name: value})

        for end, beyond in zip(_around(variable, values[name], holds_at), (-1, 1), strict=True):
            if variable.allows(end + beyond) and not holds_at(end + beyond):
                yield Edge(name, {**values, name: end}, {**values, name: end + beyond})


def _wait_variables(scenario: Scenario) -> list[Variable]:
    names = {
        name
        for step in scenario.steps
        if isinstance(step, Wait) and isinstance(step.milliseconds, Term)
        for name in step.milliseconds.variables
    }
    return [variable for variable in scenario.variables if variable.name in names]


def _takes(bundle: Bundle, path: Path, values: Mapping[str, int]) -> bool:
    memo: dict[Term, int] = {}
    conditions = (*bundle.scenario.domain, *bundle.terms_of(path))
    return all(evaluate(condition, values, memo) for condition in conditions)


def _around(variable: Variable, value: int, holds: Callable[[int], bool]) -> tuple[int, int]:
    """The ends of the stretch of values around one for which `holds` is true; a gap may go unseen."""
    least, most = variable.range or (0, (1 << variable.width) - 1)
    return _end(value, least, -1, holds), _end(value, most, 1, holds)


def _end(value: int, limit: int, direction: int, holds: Callable[[int], bool]) -> int:
    good, step = value, 1
    while good != limit:
        further = good + direction * step
        further = max(further, limit) if direction < 0 else min(further, limit)
        if holds(further):
            good, step = further, step * 2
        elif step == 1:
            return good
        else:
            step = max(1, step // 4)
    return good


__all__ = ["Edge", "edges", "playable", "safe_values", "waiting_seconds", "waits"]
