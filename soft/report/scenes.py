"""The scenarios behind findings, as far as a report needs them: names of values, widths, and how to run them again.

Findings may be a stranger's. A scenario whose text cannot be read makes the report plainer, not impossible.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from soft.crosscheck.model import Example, Finding, Findings, ScenarioRecord, StepBytes
from soft.errors import SoftError
from soft.openflow.layout import Field, layout_of
from soft.scenarios import loader
from soft.scenarios.model import Probe, Scenario, Send, Variable
from soft.trace import Payload

_PART = re.compile(r"(.*)\[([0-9]{1,6}):([0-9]{1,6})\]")


@dataclass(frozen=True, slots=True)
class Part:
    """Bits of a field: `bits` of them, from bit `low` on. `whole` says that these are all."""

    field: str
    low: int
    bits: int
    whole: bool

    @property
    def top(self) -> int:
        return self.low + self.bits

    @property
    def most(self) -> int:
        return (1 << self.bits) - 1

    @property
    def name(self) -> str:
        return self.field if self.whole else f"{self.field}[{self.top - 1}:{self.low}]"

    def overlaps(self, other: Part) -> bool:
        return self.field == other.field and self.low < other.top and other.low < self.top

    def of(self, values: Mapping[str, int]) -> int:
        return values.get(self.field, 0) >> self.low & self.most


@dataclass(frozen=True, slots=True)
class Scene:
    """One scenario of the findings. `test` is what `soft run --test` takes for it."""

    record: ScenarioRecord
    scenario: Scenario | None
    test: str

    @property
    def file(self) -> str | None:
        """Where the report keeps the scenario, unless the catalogue has the same one."""
        return None if self.test == self.record.name else f"scenarios/{slug(self.record.name)}.toml"

    @property
    def handshake(self) -> bool:
        return self.scenario is None or self.scenario.handshake

    def variable(self, field: str) -> Variable | None:
        for variable in self.variables:
            if variable.name == field:
                return variable
        return None

    def part(self, field: str, low: int = 0, bits: int | None = None) -> Part | None:
        """Some bits of a field, all from `low` on if it is not said how many; None if there are no such bits."""
        variable = self.variable(field)
        if variable is None or not 0 <= low < variable.width:
            return None
        size = variable.width - low if bits is None else bits
        if not 0 < size <= variable.width - low:
            return None
        return Part(field, low, size, size == variable.width)

    def part_named(self, name: str) -> Part | None:
        """The part of a field that has a name such as `m0.actions.0.body[31:16]`."""
        match = _PART.fullmatch(name)
        if match is None:
            return self.part(name)
        high, low = int(match[2]), int(match[3])
        return self.part(match[1], low, high - low + 1)

    def show(self, field: str, value: int) -> str:
        """A field's value as people write it."""
        variable = self.variable(field)
        if variable is None or not 0 <= value < 1 << variable.width:
            return str(value) if 0 <= value < 0x1000 else hex(value)
        return variable.show(value)

    def action_field(self, body: str, name: str) -> Variable | None:
        """The field in an action's body that has a name: `m0.actions.0.port` of `m0.actions.0.body`."""
        stem, _, last = name.rpartition(".")
        variable = self.variable(body)
        if self.scenario is None or variable is None or name == body or stem != body.rpartition(".")[0]:
            return None
        for template in layout_of(self.scenario.openflow).actions.values():
            for element in template.elements:
                if isinstance(element, Field) and element.name == last and element.bits <= variable.width:
                    return Variable(name, element.bits, 0, kind=element.kind, names=element.names)
        return None

    def places(self, field: str, example: Example) -> Mapping[int, frozenset[int]]:
        """The bytes of an example, step by step, that hold a field: those that change with it."""
        variable = self.variable(field)
        fits = all(0 <= example.values.get(v.name, -1) < 1 << v.width for v in self.variables)
        if self.scenario is None or variable is None or not fits:
            return {}
        other = {**example.values, field: example.values[field] ^ ((1 << variable.width) - 1)}
        result = {}
        for number, step in enumerate(self.scenario.steps):
            if isinstance(step, Send | Probe):
                a, b = step.payload.evaluate(example.values), step.payload.evaluate(other)
                result[number] = frozenset(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
        return result

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.scenario.variables if self.scenario is not None else ()

    def is_default(self, field: str, value: int) -> bool:
        variable = self.variable(field)
        return variable is not None and variable.default == value


def scenes(findings: Findings) -> Mapping[str, Scene]:
    """The scenes of all scenarios, by name."""
    return {record.name: _scene(record) for record in findings.scenarios}


def _scene(record: ScenarioRecord) -> Scene:
    scenario = _parsed(record)
    in_catalogue = record.name in loader.names() and loader.load(record.name).digest == record.digest
    return Scene(record, scenario, record.name if in_catalogue else f"scenarios/{slug(record.name)}.toml")


def _parsed(record: ScenarioRecord) -> Scenario | None:
    try:
        return loader.parse(record.text, record.name)
    except SoftError:
        return None


def field_of(name: str) -> str:
    """The field that a part of a field belongs to."""
    return name.partition("[")[0]


def deciding_fields(finding: Finding) -> set[str]:
    return {field_of(name) for name in finding.fields}


def free_fields(finding: Finding) -> tuple[str, ...]:
    """The fields of the scenario that do not matter."""
    named = {field.field for field in finding.region.fields} | deciding_fields(finding)
    named |= {field.head for field in finding.region.fields}
    named = named.union(*[relation.fields for relation in finding.region.relations])
    return tuple(name for name in finding.example.values if name not in named)


def run_command(scene: Scene, agent: str, example: Example) -> str:
    """The command that sends an example to an agent. It runs in the folder of the findings."""
    words = ["soft", "run", agent, "--test", scene.test]
    for setting in example.settings:
        words += ["--set", setting]
    return shlex.join(words)


def slug(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:40] or "x"


def step_words(scene: Scene, step: StepBytes) -> list[str]:
    """What a step does: a line for all of it, then a line for each field that it sends."""
    from soft.openflow.decode import describe, describe_packet

    data = bytes.fromhex(step.hex)
    if step.kind == "wait":
        return [f"wait {step.milliseconds or 0} ms"]
    if step.kind == "probe":
        return [f"probe port {step.port} with {describe_packet(Payload.of(data))}"]
    first, *rest = describe(data, scene.record.openflow)
    return [f"send {first}", *rest]
