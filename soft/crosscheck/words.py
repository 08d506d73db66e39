"""Regions and events for people. Everything that decodes bytes for reading is called from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from soft.crosscheck.model import EventRecord, Example, FieldSet, Relation, StepBytes
from soft.crosscheck.slices import Slice, Slices, name_of
from soft.crosscheck.values import Intervals, complement, count, full, intersect, low_bits, single, union
from soft.openflow.layout import Field, Pad, layout_of
from soft.scenarios.model import Probe, Scenario, Send, Variable, Wait
from soft.trace import Crash, Event, Message, Packet, Trace

# Values that are listed before the rest is only counted.
_MOST_SHOWN = 8
# Named values that are listed one by one, though they stand side by side.
_MOST_NAMES = 4
# Intervals past which parts of a field are told one by one.
_MANY = 64


def event_records(trace: Trace, openflow: str) -> tuple[EventRecord, ...]:
    """A concrete trace as it stands in findings.json."""
    return tuple(_record(event, openflow) for event in trace)


def _record(event: Event, openflow: str) -> EventRecord:
    from soft.openflow.decode import describe, describe_event, describe_packet

    if isinstance(event, Message | Packet):
        lines = describe(event.payload, openflow) if isinstance(event, Message) else [describe_packet(event.payload)]
        return EventRecord(
            kind="message" if isinstance(event, Message) else "packet",
            step=event.step,
            port=event.port if isinstance(event, Packet) else None,
            hex=(event.payload.concrete() or b"").hex(),
            words=tuple(_printable(line) for line in lines),
        )
    words = (_printable(describe_event(event, openflow)),)
    reason = event.reason if isinstance(event, Crash) else None
    kind = type(event).__name__.lower()
    return EventRecord(kind=kind, step=event.step, reason=reason, words=words)  # type: ignore[arg-type]


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in line)[:2000]


def example_of(scenario: Scenario, values: Mapping[str, int]) -> Example:
    """An input with everything that is needed to send it again."""
    settings = [
        f"{variable.name}={_setting(variable, values[variable.name])}"
        for variable in scenario.variables
        if values[variable.name] != variable.default
    ]
    steps = []
    for step in scenario.bind(values):
        if isinstance(step, Wait):
            assert isinstance(step.milliseconds, int)
            steps.append(StepBytes(step.id, "wait", milliseconds=step.milliseconds))
        else:
            data = (step.payload.concrete() or b"").hex()
            port = step.port if isinstance(step, Probe) else None
            steps.append(StepBytes(step.id, "send" if isinstance(step, Send) else "probe", data, port))
    return Example({v.name: values[v.name] for v in scenario.variables}, tuple(settings), tuple(steps))


def _setting(variable: Variable, value: int) -> str:
    return variable.show(value)


# ---------------------------------------------------------------------------------------------- regions


def field_sets(
    slices: Slices, region: Mapping[str, Intervals], domain: Mapping[str, Intervals]
) -> tuple[FieldSet, ...]:
    """The fields of a region in the scenario's order, each with its values in words.

    Parts of one field that people know as one thing, such as a VLAN id, are put together again.
    """
    found: list[FieldSet] = []
    for variable in slices.original.variables:
        left: dict[Slice, Intervals | None] = {}
        for name, parts in slices.parts.items():
            if parts[-1].field == variable.name and len(parts) == 1:
                left[parts[0]] = region.get(name)
            elif parts[-1].field == variable.name and name in region:
                found += _with_head(variable, slices.original.variable(parts[0].field), region[name])
        if not left:
            left = {Slice(variable.name, 0, variable.width): region.get(variable.name)}
        for thing, low in _things(slices.original, variable, region):
            _part_at(left, low, thing.width)
            inside = [part for part in left if low <= part.low and part.low + part.width <= low + thing.width]
            bound = any(left[part] is not None for part in inside)
            joined = _joined(sorted(inside, key=lambda part: -part.low), left, thing.width) if bound else None
            if joined is not None:
                within = domain[variable.name] if thing is variable and variable.name in domain else full(thing.width)
                found.append(_named_part(variable, thing, low, joined, within))
                for part in inside:
                    del left[part]
        for part, rest in left.items():
            if rest is not None:
                alone = Variable(name_of(part), part.width, 0)
                found.append(_named_part(variable, alone, part.low, rest, full(part.width)))
    return tuple(found)


def _with_head(variable: Variable, head: Variable, values: Intervals) -> Iterator[FieldSet]:
    """A field of a match, together with its wildcard bit."""
    size = 1 << variable.width
    plain, wild = intersect(values, ((0, size - 1),)), intersect(values, ((size, 2 * size - 1),))
    wild = tuple((low - size, high - size) for low, high in wild)
    everything = full(variable.width)
    if not plain or not wild:
        # The bit is decided: two sets say the same.
        yield FieldSet(head.name, single(int(bool(wild))), f"{head.name} = {int(bool(wild))}", name=head.name)
        if (plain or wild) != everything:
            text = f"{variable.name} {_values_text(variable, plain or wild, everything)}"
            yield FieldSet(variable.name, plain or wild, text, name=variable.name)
        return
    text = f"{variable.name} {_values_text(variable, plain, everything)}" if plain != everything else "not wildcarded"
    if wild == everything:
        text += " or wildcarded"
    elif plain == everything:
        text = f"{variable.name} {_values_text(variable, wild, everything)} or not wildcarded"
    elif wild != plain:
        text += f" or wildcarded and {_values_text(variable, wild, everything)}"
    yield FieldSet(variable.name, values, text, 0, variable.width, variable.name, head.name)


def _part_at(left: dict[Slice, Intervals | None], low: int, width: int) -> None:
    """Part a slice in two where a thing that people know begins, if its values leave all below that free."""
    for part, values in list(left.items()):
        free = low - part.low
        if free > 0 and part.low + part.width == low + width and (values is None or _low_bits_free(values, free)):
            del left[part]
            head = None if values is None else tuple((first >> free, last >> free) for first, last in values)
            left[Slice(part.field, low, width)] = head
            left[Slice(part.field, part.low, free)] = None


def _low_bits_free(values: Intervals, bits: int) -> bool:
    mask = (1 << bits) - 1
    return all(low & mask == 0 and high & mask == mask for low, high in values)


def _named_part(variable: Variable, thing: Variable, low: int, values: Intervals, domain: Intervals) -> FieldSet:
    text = f"{thing.name} {_values_text(thing, values, domain)}"
    bits = thing.width if thing.width < variable.width else None
    return FieldSet(variable.name, values, text, low, bits, thing.name)


def _things(scenario: Scenario, variable: Variable, region: Mapping[str, Intervals]) -> Iterator[tuple[Variable, int]]:
    """What people know parts of a field as: the fields of an action whose type is known, or else the field as a whole.

    Each with the number of its lowest bit.
    """
    stem, _, last = variable.name.rpartition(".")
    kinds = region.get(f"{stem}.type")
    if last == "body" and kinds and count(kinds) == 1:
        for template in layout_of(scenario.openflow).actions.values():
            if template.code == kinds[0][0]:
                low = variable.width
                for element in template.elements:
                    if not isinstance(element, Field | Pad) or element.bits > low:
                        break
                    low -= element.bits
                    if isinstance(element, Field):
                        name = f"{stem}.{element.name}"
                        yield Variable(name, element.bits, 0, kind=element.kind, names=element.names), low
    yield variable, 0


def _joined(parts: Sequence[Slice], values: Mapping[Slice, Intervals | None], width: int) -> Intervals | None:
    """The values of parts, from the highest down, as values of the whole; None if these are not a few intervals."""
    if sum(part.width for part in parts) != width:
        return None
    result: Intervals = ((0, 0),)
    for part in parts:
        allowed = values[part]
        if len(parts) == 1 and allowed is not None:
            return allowed
        if allowed is None or allowed == full(part.width):
            result = tuple((low << part.width, (high + 1 << part.width) - 1) for low, high in result)
            continue
        if count(result) * len(allowed) > _MANY:
            return None
        heads = [head << part.width for low, high in result for head in range(low, high + 1)]
        result = union(*[tuple((head + low, head + high) for low, high in allowed) for head in heads])
    return result


def constraint_texts(fields: Sequence[FieldSet], relations: Sequence[Relation]) -> list[str]:
    """What a region says, one text for each field and relation."""
    cut = [f for f in fields if f.bits is not None and f.name and not f.head]
    names = {name_of(Slice(f.field, f.low, f.bits or 0)): f.name for f in cut}
    return [field.text for field in fields] + relation_texts(relations, names)


def relation_texts(relations: Sequence[Relation], names: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """What relations say; `names` are what people call parts of fields. Two bounds of one field are told together."""
    found: list[str] = []
    rest = list(relations)
    while rest:
        first = rest.pop(0)
        left = names.get(first.left, first.left)
        same = [r for r in rest if (r.left, r.right) == (first.left, first.right)]
        other = next((r for r in same if {r.operator, first.operator} == {"≥", "≤"}), None)
        if other is not None:
            rest.remove(other)
            low, high = (first, other) if first.operator == "≥" else (other, first)
            found.append(f"{left} from {_sum_text(low, names)} to {_sum_text(high, names)}")
            continue
        strict = {("≤", -1): "<", ("≥", 1): ">"}.get((first.operator, first.offset))
        if strict is not None:
            found.append(f"{left} {strict} {_sum_text(msgspec.structs.replace(first, offset=0), names)}")
            continue
        wild = (" or wildcarded" if first.wild else " and not wildcarded") if first.head else ""
        found.append(f"{left} {first.operator} {_sum_text(first, names)}{wild}")
    return found


def _sum_text(relation: Relation, names: Mapping[str, str]) -> str:
    right = names.get(relation.right, relation.right)
    if relation.factor < 0:
        less = right if relation.factor == -1 else f"{-relation.factor}·{right}"
        return f"{relation.offset} - {less}"
    product = right if relation.factor == 1 else f"{relation.factor}·{right}"
    if relation.offset == 0:
        return product
    return f"{product} {'+' if relation.offset > 0 else '-'} {abs(relation.offset)}"


def region_text(fields: Sequence[FieldSet], relations: Sequence[Relation]) -> str:
    """A region in one line."""
    parts = constraint_texts(fields, relations)
    return f"{', '.join(parts)}; everything else free" if parts else "every input"


def subject(scenario: Scenario, fields: Sequence[str]) -> tuple[str, str]:
    """What a heading is about: the message (or messages) that hold the deciding fields, and their common prefix."""
    steps = {step.id: step for step in scenario.steps}
    ids = sorted({name.partition(".")[0] for name in fields} & set(steps), key=list(steps).index)
    if not ids:
        sent = [step for step in scenario.steps if isinstance(step, Send)]
        return (sent[-1].message_type if sent else scenario.name), ""
    names = []
    for id in ids:
        step = steps[id]
        names.append(step.message_type if isinstance(step, Send) else "probe" if isinstance(step, Probe) else "wait")
    return " and ".join(dict.fromkeys(names)), f"{ids[0]}." if len(ids) == 1 else ""


def _values_text(variable: Variable, values: Intervals, domain: Intervals) -> str:
    """The relation of a field to its values: "= set_vlan_vid", "≥ 4096", "≠ 0", "in {1, 3, 5 to 9}"."""
    show, width = variable.show, variable.width
    if count(values) == 1:
        return f"= {show(values[0][0])}"
    excluded = intersect(domain, complement(values, width))
    if count(excluded) == 1:
        return f"≠ {show(excluded[0][0])}"
    if variable.names is not None and not variable.names.flags and count(values) <= _MOST_NAMES:
        each = tuple((value, value) for low, high in values for value in range(low, high + 1))
        if all(variable.names.name(value) is not None for value, _ in each):
            return f"in {_set_text(variable, each)}"
    if len(values) == 1:
        low, high = values[0]
        if low == domain[0][0]:
            return f"≤ {show(high)}"
        if high == domain[-1][1]:
            return f"≥ {show(low)}"
        return f"from {show(low)} to {show(high)}"
    mask = _mask_text(variable, values, width)
    if mask is not None:
        return mask
    if len(excluded) < len(values) and len(excluded) <= _MOST_SHOWN:
        return f"not in {_set_text(variable, excluded)}"
    return f"in {_set_text(variable, values)}"


def _mask_text(variable: Variable, values: Intervals, width: int) -> str | None:
    """A test of low bits, if that is what the values are."""
    found = low_bits(values, width) if len(values) > 2 else None
    if found is None:
        return None
    (low, high), mask = found[0][0], found[1]
    if len(found[0]) == 1 and high == mask and low & (low - 1) == 0:
        return f"& {mask & ~(low - 1):#x} ≠ 0"
    if len(found[0]) == 1 and low == 0 and high & (high + 1) == 0:
        return f"& {mask & ~high:#x} = 0"
    return f"& {mask:#x} in {_set_text(variable, found[0])}"


def _set_text(variable: Variable, values: Intervals) -> str:
    shown = [
        variable.show(low) if low == high else f"{variable.show(low)} to {variable.show(high)}"
        for low, high in values[:_MOST_SHOWN]
    ]
    more = len(values) - _MOST_SHOWN
    return "{" + ", ".join(shown) + (f", and {more} more" if more > 0 else "") + "}"
