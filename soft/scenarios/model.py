"""A scenario as the rest of the pipeline sees it: steps with payloads over variables, and the variables' domains."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from soft.errors import SoftError
from soft.openflow.layout import Names
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.trace import Payload


@dataclass(frozen=True, slots=True)
class Variable:
    """One symbolic field. `default` is what a run sends when nothing else is asked for; it lies in the domain."""

    name: str
    width: int
    default: int
    range: tuple[int, int] | None = None
    choices: tuple[int, ...] | None = None
    kind: str = "int"  # how people write a value: int, decimal, mac, ipv4 or bytes
    names: Names | None = None
    excluded: tuple[int, ...] = ()

    @property
    def term(self) -> Term:
        return terms.var(self.name, self.width)

    def allows(self, value: int) -> bool:
        """Whether a value fits the width and lies in the domain."""
        if not 0 <= value < 1 << self.width:
            return False
        if self.range is not None and not self.range[0] <= value <= self.range[1]:
            return False
        if value in self.excluded:
            return False
        return self.choices is None or value in self.choices

    @property
    def domain(self) -> Term:
        """The Boolean term that is true exactly in the domain; TRUE if there is no restriction."""
        term, limits = self.term, []
        if self.range is not None:
            limits += [terms.ule(terms.const(self.range[0], self.width), term)]
            limits += [terms.ule(term, terms.const(self.range[1], self.width))]
        if self.choices is not None:
            limits.append(terms.disj(*[terms.eq(term, terms.const(value, self.width)) for value in self.choices]))
        limits += [terms.ne(term, terms.const(value, self.width)) for value in self.excluded]
        return terms.conj(*limits)

    def describe_domain(self) -> str:
        """The domain for people; empty if it is the whole width."""
        parts = []
        if self.range is not None:
            parts.append(f"{self.show(self.range[0])} to {self.show(self.range[1])}")
        if self.choices is not None:
            parts.append("one of " + ", ".join(map(self.show, self.choices)))
        if self.excluded:
            parts.append("not " + ", ".join(map(self.show, self.excluded)))
        return "; ".join(parts)

    def show(self, value: int) -> str:
        """A value as people write it; `parse` reads it back."""
        if self.names is not None and (name := self.names.name(value)) is not None:
            return name
        if self.kind == "mac":
            return value.to_bytes(6, "big").hex(":")
        if self.kind == "ipv4":
            return ".".join(map(str, value.to_bytes(4, "big")))
        if self.kind == "bytes":
            return value.to_bytes(self.width // 8, "big").hex()
        return str(value) if value < 0x1000 or self.kind == "decimal" else hex(value)

    def parse(self, text: str) -> int:
        """A value from what a person wrote, such as the right side of `--set m0.buffer_id=7`."""
        from soft.openflow.layout import Field
        from soft.scenarios.values import FieldError, number

        try:
            value = number(Field(self.name, self.width, self.kind, self.default, self.names), text)
        except FieldError as error:
            raise SoftError(f"{self.name}: {error.sentence}") from None
        if not self.allows(value):
            raise SoftError(f"{self.name}: {text} is outside the scenario's domain ({self.describe_domain()}).")
        return value


@dataclass(frozen=True, slots=True)
class Send:
    """A message to the agent over the control channel.

    A payload with a `length` is sent only that far: its length class is an input like any field, and a run that has
    chosen one must record the condition `length == chosen`.
    """

    id: str
    message_type: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class Probe:
    """A packet into a data-plane port."""

    id: str
    port: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Wait:
    """Time that passes: a number, or a 32-bit variable of the scenario, `w1.ms` for step 1."""

    id: str
    milliseconds: int | Term


Step = Send | Probe | Wait


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is sent, over which inputs. Two scenarios with one digest have the same inputs and the same steps.

    Without `handshake` the scenario begins as soon as the control channel is there, and the hello is its own affair.
    """

    name: str
    summary: str
    openflow: str
    ports: int
    steps: tuple[Step, ...]
    variables: tuple[Variable, ...]
    domain: tuple[Term, ...]
    digest: str
    text: str
    handshake: bool = True

    def variable(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise SoftError(f"Scenario {self.name} has no variable {name!r}{suggestion(name, self.variable_names)}.")

    @property
    def variable_names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @property
    def defaults(self) -> dict[str, int]:
        return {variable.name: variable.default for variable in self.variables}

    def parse_values(self, settings: Iterable[str]) -> dict[str, int]:
        """Values from settings `NAME=VALUE`, as the command line gives them."""
        values: dict[str, int] = {}
        for setting in settings:
            name, equals, text = setting.partition("=")
            if not equals:
                raise SoftError(f"{setting!r} is not of the form NAME=VALUE, such as m0.buffer_id=7.")
            values[name.strip()] = self.variable(name.strip()).parse(text.strip())
        return values

    def complete(self, values: Mapping[str, int]) -> dict[str, int]:
        """A value for every variable: the given one, checked, or the default."""
        result = self.defaults
        for name, value in values.items():
            variable = self.variable(name)
            if not variable.allows(value):
                limit = variable.describe_domain() or f"{variable.width} bits"
                raise SoftError(f"{name}: {value} is outside the scenario's domain ({limit}).")
            result[name] = value
        return result

    def bind(self, values: Mapping[str, int]) -> tuple[Step, ...]:
        """The steps under one input, all concrete. Variables that are not given have their default."""
        complete = self.complete(values)
        memo: dict[Term, int] = {}

        def bound(step: Step) -> Step:
            if not isinstance(step, Wait):
                return replace(step, payload=Payload.of(step.payload.evaluate(complete, memo)))
            duration = step.milliseconds
            return step if isinstance(duration, int) else replace(step, milliseconds=evaluate(duration, complete, memo))

        return tuple(bound(step) for step in self.steps)


# Bump when the canonical form below changes: bundles of different forms must not compare as equal.
_DIGEST_FORMAT = 1


def digest(
    openflow: str, ports: int, steps: Iterable[object], variables: Iterable[Variable], handshake: bool = True
) -> str:
    """sha256 over what the scenario means: white space, comments, names of constants and defaults do not matter."""
    meaning: dict[str, object] = {
        "format": _DIGEST_FORMAT,
        "openflow": openflow,
        "ports": ports,
        "steps": list(steps),
        "variables": [_meaning(variable) for variable in sorted(variables, key=lambda v: v.name)],
    }
    if not handshake:
        meaning["handshake"] = False
    return sha256(json.dumps(meaning, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _meaning(variable: Variable) -> list[object]:
    meaning: list[object] = [variable.name, variable.width, variable.range, variable.choices]
    return [*meaning, variable.excluded] if variable.excluded else meaning


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """The words to append to "no such name": near names, or the first few that there are."""
    names = list(known)
    near = difflib.get_close_matches(wrong.lower(), names, n=3, cutoff=0.6)
    if not near:
        # A person often knows part of a name: the end of a variable's path, or a name written without its underscores.
        bare = re.sub(r"[^a-z0-9]", "", wrong.lower())
        near = [name for name in names if bare and bare in re.sub(r"[^a-z0-9]", "", name.lower())][:3]
    if near:
        return f"; did you mean {' or '.join(near)}"
    if not names:
        return "; it takes none"
    return f"; there are {', '.join(names[:16])}{', ...' if len(names) > 16 else ''}"
