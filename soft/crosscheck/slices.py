"""Fields as agents look at them: cut into parts that are looked at by themselves, or put together with their wildcard.

The body of an action of any type is 32 bits to a scenario, but a VLAN id and padding, or a port and a length, to an
agent. Cut where no condition looks at both sides at once, a field's parts are independent, and a region can name the
one part that matters. A field of a match and its wildcard bit are one thing: "02:00:00:00:0a:01, or anything" is a set
of values of both together, and would be two regions otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from soft.bundle.model import Bundle
from soft.crosscheck.space import Input
from soft.crosscheck.substitute import substitute
from soft.errors import SoftError
from soft.scenarios.model import Scenario, Variable
from soft.solve import terms
from soft.solve.terms import Term
from soft.solve.walk import children, post_order
from soft.trace import Event, Message, Packet, Payload

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
    """How a scenario's fields are looked at. `scenario` has what is looked at as its variables.

    `parts` says what each of these is, from its highest bits down; fields that are looked at as they are are left out.
    """

    original: Scenario
    scenario: Scenario
    parts: Mapping[str, tuple[Slice, ...]]

    @property
    def headed(self) -> frozenset[str]:
        """The variables that are a field with its wildcard bit above it."""
        return frozenset(name for name, parts in self.parts.items() if len(parts) == 2)

    def join(self, values: Mapping[str, int]) -> Input:
        """An input of the new scenario as one of the original."""
        result: Input = {}
        for name, value in values.items():
            if name not in self.parts:
                result[name] = value
                continue
            for part in reversed(self.parts[name]):
                result[part.field] = result.get(part.field, 0) | (value & ((1 << part.width) - 1)) << part.low
                value >>= part.width
        return {variable.name: result[variable.name] for variable in self.original.variables}

    def cut(self, values: Mapping[str, int]) -> Input:
        """An input of the original scenario as one of the new one."""
        return {variable.name: _gather(self._parts(variable), values) for variable in self.scenario.variables}

    def _parts(self, variable: Variable) -> tuple[Slice, ...]:
        return self.parts.get(variable.name) or (Slice(variable.name, 0, variable.width),)

    def bundle(self, bundle: Bundle) -> Bundle:
        """A bundle over the new variables."""
        if not self.parts:
            return bundle
        new = _New(self._whole())
        conditions = [new.term(term) for term in bundle.conditions]
        traces = [tuple(map(new.event, trace)) for trace in bundle.traces]
        return replace(bundle, scenario=self.scenario, conditions=conditions, traces=traces)

    def _whole(self) -> dict[str, Term]:
        """Each field that is looked at in another way, put together from the new variables."""
        found: dict[str, list[tuple[int, Term]]] = {}
        for name, parts in self.parts.items():
            offset = width = sum(part.width for part in parts)
            for part in parts:
                offset -= part.width
                term = terms.extract(offset + part.width - 1, offset, terms.var(name, width))
                found.setdefault(part.field, []).append((part.low, term))
        return {
            field: terms.concat(*[term for _, term in sorted(pieces, key=lambda piece: -piece[0])])
            for field, pieces in found.items()
        }


def _gather(parts: Iterable[Slice], values: Mapping[str, int]) -> int:
    result = 0
    for part in parts:
        result = result << part.width | (values[part.field] >> part.low & ((1 << part.width) - 1))
    return result


def name_of(part: Slice) -> str:
    return f"{part.field}[{part.low + part.width - 1}:{part.low}]"


def slices_of(bundles: Sequence[Bundle]) -> Slices:
    """How the conditions of some bundles of one scenario look at its fields."""
    scenario = bundles[0].scenario
    conditions = dict.fromkeys(term for bundle in bundles for term in bundle.conditions)
    looks: dict[str, set[tuple[int, int]]] = {}
    for condition in conditions:
        for name, look in _looks(condition).items():
            looks.setdefault(name, set()).add(look)
    wildcards = _wildcards(scenario, conditions)
    parts: dict[str, tuple[Slice, ...]] = {}
    variables: list[Variable] = []
    for variable in scenario.variables:
        if variable.name in wildcards.values():
            continue
        for new, pieces in _pieces(variable, wildcards.get(variable.name), looks.get(variable.name, set())):
            if pieces:
                parts[new.name] = pieces
                new = replace(new, default=_gather(pieces, scenario.defaults))
            variables.append(new)
    return Slices(scenario, replace(scenario, variables=tuple(variables)), parts)


def _pieces(
    variable: Variable, wildcard: str | None, looks: set[tuple[int, int]]
) -> Iterator[tuple[Variable, tuple[Slice, ...]]]:
    """The new variables for a field, each with what it is."""
    whole = Slice(variable.name, 0, variable.width)
    if wildcard is not None:
        yield Variable(f"{variable.name}*", variable.width + 1, 0), (Slice(wildcard, 0, 1), whole)
        return
    cuts = _cuts(variable.width, looks)
    bound = variable.range is not None or variable.choices is not None or bool(variable.excluded)
    if bound or not 2 < len(cuts) <= _MOST_SLICES + 1:
        yield variable, ()
        return
    for high, low in pairwise(reversed(cuts)):
        part = Slice(variable.name, low, high - low)
        yield Variable(name_of(part), part.width, 0), (part,)


def _wildcards(scenario: Scenario, conditions: Iterable[Term]) -> dict[str, str]:
    """The fields of matches that conditions look at, as they do at their wildcard bit, and these bits."""
    free = {v.name: v.width for v in scenario.variables if v.range is None and v.choices is None and not v.excluded}
    pairs = {}
    for name, width in free.items():
        stem, _, last = name.rpartition(".")
        field = f"{stem.removesuffix('.wildcards')}.{last}"
        if stem.endswith(".wildcards") and width == 1 and field in free:
            pairs[field] = name
    seen = frozenset[str]().union(*[condition.variables for condition in conditions])
    return {field: bit for field, bit in pairs.items() if {field, bit} <= seen}


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


class _New:
    """What is made of terms by the fields that are put together from new variables. Outputs share most of theirs."""

    def __init__(self, whole: Mapping[str, Term]) -> None:
        self._whole = whole
        self._done: dict[Term, Term] = {}

    def term(self, term: Term) -> Term:
        try:
            return substitute(term, self._whole, self._done)
        except RecursionError:
            raise SoftError("The terms of a bundle nest too deep to be compared.") from None

    def event(self, event: Event) -> Event:
        if not isinstance(event, Message | Packet) or event.payload.variables.isdisjoint(self._whole):
            return event
        pieces = [self.term(piece) if isinstance(piece, Term) else piece for piece in event.payload.pieces]
        length = event.payload.length
        return replace(event, payload=Payload(tuple(pieces), None if length is None else self.term(length)))
