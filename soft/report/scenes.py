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
from soft.scenarios import loader
from soft.scenarios.model import Scenario, Variable
from soft.trace import Payload


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
        for variable in self.scenario.variables if self.scenario is not None else ():
            if variable.name == field:
                return variable
        return None

    def show(self, field: str, value: int) -> str:
        """A field's value as people write it."""
        variable = self.variable(field)
        if variable is None or not 0 <= value < 1 << variable.width:
            return str(value) if 0 <= value < 0x1000 else hex(value)
        return variable.show(value)

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


def free_fields(finding: Finding) -> tuple[str, ...]:
    """The fields of the scenario that do not matter."""
    named = {field.field for field in finding.region.fields} | set(finding.fields)
    named |= {name for relation in finding.region.relations for name in (relation.left, relation.right)}
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
