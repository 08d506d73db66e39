"""Fields in slices: where agents only ever look at parts of a field, each part is a field of its own.

The body of an action of any type is 32 bits to a scenario, but a VLAN id and padding, or a port and a length, to an
agent. Cut where no condition looks at both sides at once, a field's parts are independent, their values are few
intervals, and a region can name the one part that matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from soft.bundle.model import Bundle
from soft.crosscheck.space import Input, substitute
from soft.errors import SoftError
from soft.scenarios.model import Scenario, Variable
from soft.solve import terms
from soft.solve.terms import Term
from soft.solve.walk import children, post_order
from soft.trace import Event, Message, Packet, Payload, Trace

# A field that is cut into more parts than this is better left whole.
_MOST_SLICES = 16


@dataclass(frozen=True, slots=True)
class Slice:
    """Bits `low` up to `low + width - 1` of a field."""

    field: str
    low: int
    width: int


@dataclass(frozen=True, slots=True)
class Slices:
    """How a scenario's fields are cut. `scenario` has the parts as its variables; `parts` says what they are."""

    original: Scenario
    scenario: Scenario
    parts: Mapping[str, Slice]  # variable of the cut scenario → what it is; fields that are not cut are left out

    def join(self, values: Mapping[str, int]) -> Input:
        """An input of the cut scenario as one of the original."""
        result: Input = {}
        for name, value in values.items():
            part = self.parts.get(name)
            if part is None:
                result[name] = value
            else:
                result[part.field] = result.get(part.field, 0) | value << part.low
        return {variable.name: result[variable.name] for variable in self.original.variables}

    def cut(self, values: Mapping[str, int]) -> Input:
        """An input of the original scenario as one of the cut one."""
        result = {}
        for variable in self.scenario.variables:
            part = self.parts.get(variable.name)
            if part is None:
                result[variable.name] = values[variable.name]
            else:
                result[variable.name] = values[part.field] >> part.low & ((1 << part.width) - 1)
        return result

    def bundle(self, bundle: Bundle) -> Bundle:
        """A bundle over the parts of the fields."""
        if not self.parts:
            return bundle
        whole = self._whole()
        conditions = [_rewritten(term, whole) for term in bundle.conditions]
        traces = [_trace(trace, whole) for trace in bundle.traces]
        return replace(bundle, scenario=self.scenario, conditions=conditions, traces=traces)

    def _whole(self) -> dict[str, Term]:
        """Each field that is cut, as its parts put together."""
        found: dict[str, list[Slice]] = {}
        for part in self.parts.values():
            found.setdefault(part.field, []).append(part)
        return {
            field: terms.concat(*[terms.var(name_of(p), p.width) for p in sorted(parts, key=lambda p: -p.low)])
            for field, parts in found.items()
        }


def name_of(part: Slice) -> str:
    return f"{part.field}[{part.low + part.width - 1}:{part.low}]"


def slices_of(bundles: Sequence[Bundle]) -> Slices:
    """Cut the fields of a scenario where no condition of the bundles looks at both sides at once."""
    scenario = bundles[0].scenario
    looks: dict[str, set[tuple[int, int]]] = {}
    for condition in dict.fromkeys(term for bundle in bundles for term in bundle.conditions):
        for name, look in _looks(condition).items():
            looks.setdefault(name, set()).add(look)
    parts: dict[str, Slice] = {}
    variables: list[Variable] = []
    for variable in scenario.variables:
        cuts = _cuts(variable.width, looks.get(variable.name, set()))
        bound = variable.range is not None or variable.choices is not None
        if bound or not 2 < len(cuts) <= _MOST_SLICES + 1:
            variables.append(variable)
            continue
        for high, low in pairwise(reversed(cuts)):
            part = Slice(variable.name, low, high - low)
            default = variable.default >> low & ((1 << part.width) - 1)
            parts[name_of(part)] = part
            variables.append(Variable(name_of(part), part.width, default))
    return Slices(scenario, replace(scenario, variables=tuple(variables)), parts)


def _looks(condition: Term) -> dict[str, tuple[int, int]]:
    """The bits of each field that a condition looks at: from the lowest up to the one behind the highest."""
    found: dict[str, tuple[int, int]] = {}
    for term in post_order((condition,)):
        if term.op == "extract":
            looks = [(child.args[0], term.args[1], term.args[0] + 1) for child in children(term) if child.op == "var"]
        else:
            looks = [(child.args[0], 0, child.width) for child in children(term) if child.op == "var"]
        for name, low, high in looks:
            known = found.get(name, (low, high))
            found[name] = min(known[0], low), max(known[1], high)
    return found


def _cuts(width: int, looks: Iterable[tuple[int, int]]) -> list[int]:
    """The places at which no look is cut through."""
    places = {0, width}.union(*looks)
    return [place for place in sorted(places) if not any(low < place < high for low, high in looks)]


def _rewritten(term: Term, whole: Mapping[str, Term]) -> Term:
    try:
        return substitute(term, whole)
    except RecursionError:
        raise SoftError("The terms of a bundle nest too deep to be compared.") from None


def _trace(trace: Trace, whole: Mapping[str, Term]) -> Trace:
    return tuple(_event(event, whole) for event in trace)


def _event(event: Event, whole: Mapping[str, Term]) -> Event:
    if not isinstance(event, Message | Packet) or event.payload.variables.isdisjoint(whole):
        return event
    pieces = [_rewritten(piece, whole) if isinstance(piece, Term) else piece for piece in event.payload.pieces]
    length = event.payload.length
    return replace(event, payload=Payload(tuple(pieces), None if length is None else _rewritten(length, whole)))
