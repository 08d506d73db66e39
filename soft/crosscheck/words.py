"""Regions and events for people. Everything that decodes bytes for reading is called from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soft.crosscheck.model import EventRecord, Example, FieldSet, Relation, StepBytes
from soft.crosscheck.values import Intervals, complement, count, intersect, low_bits
from soft.openflow.layout import Field, layout_of
from soft.scenarios.model import Probe, Scenario, Send, Variable, Wait
from soft.trace import Crash, Event, Message, Packet, Trace

# Values that are listed before the rest is only counted.
_MOST_SHOWN = 8
# Named values that are listed one by one, though they stand side by side.
_MOST_NAMES = 4
# Intervals past which a set is told as a test of low bits, if it is one.
_MANY = 16


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
    scenario: Scenario, region: Mapping[str, Intervals], domain: Mapping[str, Intervals]
) -> tuple[FieldSet, ...]:
    """The fields of a region in the scenario's order, each with its values in words."""
    return tuple(
        _field_set(v, region[v.name], _field_text(scenario, v, region, domain))
        for v in scenario.variables
        if v.name in region
    )


def _field_set(variable: Variable, values: Intervals, text: str) -> FieldSet:
    if len(values) > _MANY:
        low = low_bits(values, variable.width)
        if low is not None:
            return FieldSet(variable.name, low[0], text, low[1])
    return FieldSet(variable.name, values, text)


def region_text(fields: Sequence[FieldSet], relations: Sequence[Relation]) -> str:
    """A region in one line."""
    parts = [field.text for field in fields] + [f"{r.left} {r.operator} {r.right}" for r in relations]
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


def _field_text(
    scenario: Scenario, variable: Variable, region: Mapping[str, Intervals], domain: Mapping[str, Intervals]
) -> str:
    part = _action_part(scenario, variable, region)
    name, width = variable.name, variable.width
    values, within = region[name], domain[name]
    shown = variable
    if part is not None:
        name, width, shown = part
        shift = variable.width - width
        values, within = _shortened(values, shift), _shortened(within, shift)
    return f"{name} {_values_text(shown, values, within, width)}"


def _action_part(
    scenario: Scenario, variable: Variable, region: Mapping[str, Intervals]
) -> tuple[str, int, Variable] | None:
    """The field at the head of an action's body, if the action's type is known and the rest of the body is free."""
    stem, _, last = variable.name.rpartition(".")
    kinds = region.get(f"{stem}.type")
    if last != "body" or not kinds or count(kinds) != 1:
        return None
    layout = layout_of(scenario.openflow)
    for template in layout.actions.values():
        if template.code == kinds[0][0] and template.elements and isinstance(template.elements[0], Field):
            first = template.elements[0]
            free = variable.width - first.bits
            if first.bits <= variable.width and _low_bits_free(region[variable.name], free):
                short = Variable(f"{stem}.{first.name}", first.bits, 0, kind=first.kind, names=first.names)
                return short.name, first.bits, short
    return None


def _low_bits_free(values: Intervals, bits: int) -> bool:
    mask = (1 << bits) - 1
    return all(low & mask == 0 and high & mask == mask for low, high in values)


def _shortened(values: Intervals, bits: int) -> Intervals:
    return tuple((low >> bits, high >> bits) for low, high in values)


def _values_text(variable: Variable, values: Intervals, domain: Intervals, width: int) -> str:
    """The relation of a field to its values: "= set_vlan_vid", "≥ 4096", "≠ 0", "in {1, 3, 5 to 9}"."""
    show = variable.show
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
