"""Which findings have one cause: they show one pair of behaviours, and the same unusual thing in the input makes it.

Most of what a region says is the frame: that the message carries a packet, that a rule matches the probe. The
scenario's default input satisfies it, as most inputs do. What the defaults do *not* satisfy makes the difference, and
is called a trigger here. Findings of one pair of behaviours have one cause

1. if one trigger is in all their regions, in the same words or for another item of a list (an output to the controller,
   as the first action or as the second): what else their regions say is how the cause shows;
2. or else if the same field has triggers in all of them, with other values (a statistics request of type 9, and one of
   type "queue" for no such port): "the same deciding fields".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from soft.crosscheck.behaviour import Met, Way, cause
from soft.crosscheck.model import FieldSet, Finding, Relation
from soft.scenarios.model import Scenario
from soft.trace import Trace

Constraint = FieldSet | Relation
# What a constraint says, for whichever item of a list: the field's role, and its values.
Atom = tuple[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding without its cluster, and what decides which one that is.

    `sides` are the agents, by rank, that do the same with the example as the left and as the right one of the `way`.
    `traces` are what the two agents do with it, in the order of the finding's behaviours.
    """

    finding: Finding
    way: Way
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    swapped: bool  # the way's left is the finding's second agent
    met: frozenset[Met]  # what the way's two agents do in the region, in kind
    covered: bool
    traces: tuple[Trace, Trace]

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return *self.finding.region.fields, *self.finding.region.relations


@dataclass(frozen=True, slots=True)
class Cause:
    """Drafts with one cause. `id` depends on the cause alone, not on how many regions show it.

    `one_trigger`: one trigger is in all their regions. Otherwise a field has triggers in all of them.
    """

    id: str
    drafts: tuple[Draft, ...]
    one_trigger: bool


def identifier(*parts: object) -> str:
    """A short name that depends on the parts alone."""
    return blake2b(msgspec.json.encode(parts), digest_size=6).hexdigest()


def causes(drafts: Sequence[Draft], scenario: Scenario) -> list[Cause]:
    """Drafts by cause."""
    families: dict[str, list[Draft]] = {}
    for draft in drafts:
        families.setdefault(_family(draft, scenario), []).append(draft)
    found: list[Cause] = []
    for family, members in families.items():
        parts = _with_one_trigger(members, scenario)
        for about, part in _with_one_field(parts, scenario):
            one = any(text == about for text, _ in parts)
            found.append(Cause(identifier("cause", family, about), tuple(part), one))
    return found


def triggers(draft: Draft, scenario: Scenario) -> list[Constraint]:
    """What a region says that the scenario's default input does not satisfy."""
    return [constraint for constraint in draft.constraints if not usual(constraint, scenario)]


def usual(constraint: Constraint, scenario: Scenario) -> bool:
    """Whether the scenario's default input satisfies a constraint."""
    return holds(constraint, scenario.defaults)


def holds(constraint: Constraint, values: Mapping[str, int]) -> bool:
    """Whether an input satisfies a constraint."""
    if isinstance(constraint, Relation):
        return constraint.holds(values)
    return constraint.holds(values[constraint.field], values.get(constraint.head, 0))


def atom(constraint: Constraint) -> Atom:
    """What a constraint says, for whichever item of a list."""
    if isinstance(constraint, FieldSet):
        return _role(constraint.name or constraint.field), constraint.intervals
    left, right = _role(constraint.left), _role(constraint.right)
    return f"{left} {constraint.operator} {constraint.factor}·{right} + {constraint.offset} {constraint.head}", ()


def _role(name: str) -> str:
    """A field without its place in a list: the port of any output action."""
    return re.sub(r"\.[0-9]+(?=\.)", "", name)


def _family(draft: Draft, scenario: Scenario) -> str:
    """The pair of behaviours in general, and who shows them."""
    way = draft.way
    # What is wrong with bytes is so wherever they are sent.
    same = way.what in ("bytes", "lengths")
    kinds = ((), ()) if same else (cause(way.left, scenario), cause(way.right, scenario))
    behaviours = sorted(zip(draft.sides, kinds, strict=True))
    return identifier("family", scenario.name, behaviours, way.what)


Part = tuple[str, list[Draft]]


def _with_one_trigger(drafts: Sequence[Draft], scenario: Scenario) -> list[Part]:
    """Drafts that have a trigger in common, that of the most drafts first. Each part with the text of its trigger."""
    atoms = {draft.finding.id: {atom(c) for c in triggers(draft, scenario)} for draft in drafts}
    parts: list[Part] = []
    rest = list(drafts)
    while rest:
        counted = Counter(each for draft in rest for each in atoms[draft.finding.id])
        # Of two triggers that come together, the one that leaves fewer values says more.
        best = min(counted, key=lambda each: (-counted[each], _values(each), each), default=None)
        if best is None:
            break
        parts.append((repr(best), [draft for draft in rest if best in atoms[draft.finding.id]]))
        rest = [draft for draft in rest if best not in atoms[draft.finding.id]]
    # Where the default input differs already, the fields that bound the region are all there is to tell causes apart.
    plain: dict[str, list[Draft]] = {}
    for draft in rest:
        plain.setdefault(repr(sorted(atom(c)[0] for c in draft.constraints)), []).append(draft)
    return [*parts, *plain.items()]


def _values(each: Atom) -> int:
    return sum(high - low + 1 for low, high in each[1])


def _with_one_field(parts: Sequence[Part], scenario: Scenario) -> list[Part]:
    """Put parts together whose drafts all have triggers of one field. Each with the field's role, or its own text."""
    roles = {
        text: set.intersection(*[{atom(c)[0] for c in triggers(draft, scenario)} for draft in drafts])
        for text, drafts in parts
    }
    found: list[Part] = []
    rest = list(parts)
    while rest:
        counted = Counter(role for text, _ in rest for role in roles[text])
        best = min(counted, key=lambda role: (-counted[role], role), default=None)
        if best is None or counted[best] < 2:
            break
        found.append((best, [draft for text, drafts in rest if best in roles[text] for draft in drafts]))
        rest = [part for part in rest if best not in roles[part[0]]]
    return [*found, *rest]
