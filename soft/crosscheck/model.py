"""What a crosscheck found: the structures are exactly the contents of findings.json.

The schema, from the outside in (every key below is always there; sequences keep their order):

- `Findings`: the agents (their labels, each once), the scenarios, one `Comparison` for each scenario and pair of
  agents, all `Finding`s, all `Cluster`s (most serious first), and what it took.
- `Comparison`: the verdict on one pair of agents in one scenario, how much was compared, and the `Doubt`s: parts of
  the input space about which nothing is proved, each with an example input.
- `Finding`: a region of inputs in which two agents differ in one way; an example input with its bytes, what each agent
  does with it, and the region in terms of fields.
- `Cluster`: findings with one cause: one pair of behaviours, made by the same unusual values or fields.

Numbers are integers (values of fields may have more than 64 bits), bytes are hexadecimal strings, names of files are
relative to the folder of findings.json. Reading is safe for files of strangers: sizes are bounded, nothing unknown is
accepted, and every error is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from soft.errors import SoftError

# Raised whenever a reader of the older format would misread findings.json.
FORMAT = 2
NAME = "findings.json"
# 1,000 findings of a scenario with a large packet take some 20 MB.
MOST_BYTES = 256 << 20
MOST_ITEMS = 100_000
LONGEST_TEXT = 2_000
LONGEST_SCENARIO = 1 << 20
LONGEST_PAYLOAD = 2 * 65_535 + 1
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
_PART = re.compile(r"([^\[\]]+)(?:\[[0-9]{1,5}:[0-9]{1,5}\])?\Z")
_ID = re.compile(r"[0-9a-f]{12}\Z")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,3}\Z")

Verdict = Literal["differ", "agree", "unknown"]
# Most serious first. "forwarding": packets leave through other ports, or to the controller instead. "lost error" and
# "lost message": one agent sends it, the other does not. "content": the same events with other bytes.
Severity = Literal["crash", "forwarding", "lost error", "lost message", "different error", "content"]
SEVERITIES: tuple[Severity, ...] = ("crash", "forwarding", "lost error", "lost message", "different error", "content")


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


# ---------------------------------------------------------------------------------------------- inputs


class StepBytes(_Struct, frozen=True):
    """What one step of the scenario sends under an example: bytes to the control channel (`send`) or into a port
    (`probe`), or time that passes (`wait`)."""

    id: str
    kind: Literal["send", "probe", "wait"]
    hex: str = ""
    port: int | None = None
    milliseconds: int | None = None


class Example(_Struct, frozen=True):
    """One input: the value of every field of the scenario, and the bytes of every step.

    `settings` are those values that are not the scenario's default, as `soft run --set` takes them.
    """

    values: dict[str, int]
    settings: tuple[str, ...]
    steps: tuple[StepBytes, ...]


class FieldSet(_Struct, frozen=True):
    """The values that a field has in a region: closed intervals in ascending order. `text` says it for people.

    `field` is the scenario's. With `bits`, the intervals are those of a part of it: that many bits, from bit `low` (0
    is the lowest) on. `name` is what people call that part: m0.actions.0.vlan_vid for the head of m0.actions.0.body.
    With a `head` (a field of one bit, a wildcard), the intervals are those of both together, the head's bit above the
    field's `bits`: so one set says "02:00:00:00:0a:01, or wildcarded".
    """

    field: str
    intervals: tuple[tuple[int, int], ...]
    text: str
    low: int = 0
    bits: int | None = None
    name: str = ""
    head: str = ""
    wild: bool = False

    def holds(self, value: int, head: int = 0) -> bool:
        """Whether the field may have a value, while its head has the given one."""
        part = value >> self.low
        if self.bits is not None:
            part = (part & ((1 << self.bits) - 1)) | head << self.bits
        return any(low <= part <= high for low, high in self.intervals)


class Relation(_Struct, frozen=True):
    """What a region says about two fields at once. A part of a field is written with its bits: `m0.x.body[31:16]`.

    `left` is compared with `factor` times `right` plus `offset`. With a `head` (a field of one bit, a wildcard of
    `left`), `wild` says whether it holds if that bit is set, whatever the fields are.
    """

    left: str
    operator: Literal["=", "≠", "≥", "≤"]
    right: str
    factor: int = 1
    offset: int = 0
    head: str = ""
    wild: bool = False

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether an input satisfies it."""
        left, right = _part(values, self.left), self.factor * _part(values, self.right) + self.offset
        if self.operator == "≥":
            return left >= right
        if self.operator == "≤":
            return left <= right
        if self.head and values[self.head]:
            return self.wild
        return (left == right) == (self.operator == "=")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it speaks of."""
        return tuple(name.partition("[")[0] for name in (self.left, self.right, self.head) if name)


class Region(_Struct, frozen=True):
    """A set of inputs: every field that is named has one of its values, every relation holds, all else is free.

    `proved`: every input in it on which both agents were explored shows the finding's two behaviours. `exact`: no input
    outside of it does.
    """

    fields: tuple[FieldSet, ...]
    relations: tuple[Relation, ...]
    text: str
    proved: bool
    exact: bool

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether an input lies in the region."""
        return all(field.holds(values[field.field], values.get(field.head, 0)) for field in self.fields) and all(
            relation.holds(values) for relation in self.relations
        )


def _part(values: Mapping[str, int], name: str) -> int:
    field, bracket, bits = name.partition("[")
    if not bracket:
        return values[field]
    high, _, low = bits.rstrip("]").partition(":")
    return values[field] >> int(low) & ((1 << (int(high) - int(low) + 1)) - 1)


# ---------------------------------------------------------------------------------------------- outputs


class EventRecord(_Struct, frozen=True):
    """One event under the example. `hex` is the payload of a message or packet; `words` are its decoded lines."""

    kind: Literal["message", "packet", "crash", "close", "hang", "flood"]
    step: int
    port: int | None = None
    reason: str | None = None
    hex: str | None = None
    words: tuple[str, ...] = ()


class Behaviour(_Struct, frozen=True):
    """What one agent does with the example. `summary` is a clause without its subject: "is silent".

    `path` and `trace` number the path and the output in the agent's bundle; `marks` are the path's.
    """

    agent: str
    summary: str
    events: tuple[EventRecord, ...]
    path: int
    trace: int
    marks: tuple[str, ...] = ()


class Difference(_Struct, frozen=True):
    """The first place where two behaviours part: the number of the event on both sides (one side may have ended), and
    the first byte that differs if both have it."""

    event: int
    byte: int | None = None


class Confirmation(_Struct, frozen=True):
    """What the live agents did with the example. `words` says in sentences what was seen."""

    status: Literal["confirmed", "not reproduced", "flaky"]
    runs: int
    words: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------- results


class Finding(_Struct, frozen=True):
    """A region of inputs in which two agents differ in one way.

    `id` depends on scenario, behaviours and region, not on the run that found it. `agents` are the two in the order of
    `behaviours`; `others` is what any further agents of the crosscheck do with the example. `fields` are those that
    decide. `pairs` counts the pairs of distinct outputs that differ in this way. `conditions` is the file that holds
    the two paths of the example, and that their outputs differ, as SMT-LIB.
    """

    id: str
    cluster: str
    scenario: str
    agents: tuple[str, str]
    severity: Severity
    behaviours: tuple[Behaviour, Behaviour]
    others: tuple[Behaviour, ...]
    difference: Difference
    example: Example
    region: Region
    fields: tuple[str, ...]
    pairs: int
    conditions: str
    confirmation: Confirmation | None = None


class Cluster(_Struct, frozen=True):
    """Findings with one cause. `heading`, read alone, says what differs; `fields` are those that decide, in all of its
    findings or in some; `folder` holds its files.

    `odd_one_out` is the agent that differs from all others while these agree, if more than two were compared. `covered`
    says that every input on which the agents differ in this way lies in the region of some finding.
    """

    id: str
    scenario: str
    heading: str
    severity: Severity
    findings: tuple[str, ...]
    fields: tuple[str, ...]
    folder: str
    covered: bool
    odd_one_out: str | None = None


class Doubt(_Struct, frozen=True):
    """A part of the input space about which nothing is proved.

    `unexplored`: the agent's bundle has no path there. `undecided`: the solver gave up, or the crosscheck was stopped.
    `unstable`: the agent's paths there depend on memory that it never wrote. `approximate`: the bundle holds their
    outputs for one input only.
    """

    kind: Literal["unexplored", "undecided", "unstable", "approximate"]
    agent: str | None
    sentence: str
    example: Example | None = None


class Statistics(_Struct, frozen=True):
    """What a comparison took. `kept` counts the questions that were answered without the solver."""

    seconds: float
    queries: int
    kept: int = 0


class Counts(_Struct, frozen=True):
    """How much there was: paths and distinct outputs of each agent; overlapping pairs that were looked at; pairs of
    distinct outputs that differ (what the paper calls inconsistencies)."""

    paths: tuple[int, int]
    outputs: tuple[int, int]
    overlaps: int
    differing: int


class Comparison(_Struct, frozen=True):
    """The verdict on two agents in one scenario. `agree` is a proof over the whole input space."""

    scenario: str
    agents: tuple[str, str]
    verdict: Verdict
    counts: Counts
    findings: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    statistics: Statistics


class ScenarioRecord(_Struct, frozen=True):
    """A scenario that was compared; `text` is its TOML, so that findings can be repeated without the bundles."""

    name: str
    digest: str
    summary: str
    openflow: str
    text: str


class Agent(_Struct, frozen=True):
    """One side of the comparison. `label` is unique; `sources` are the bundles, as they were named."""

    label: str
    sources: tuple[str, ...]


class Findings(_Struct, frozen=True):
    """Everything that one crosscheck found out."""

    format: int
    tool: str
    agents: tuple[Agent, ...]
    scenarios: tuple[ScenarioRecord, ...]
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    clusters: tuple[Cluster, ...]
    seconds: float
    queries: int

    @property
    def verdict(self) -> Verdict:
        """The worst of all comparisons: one difference is a difference, and one doubt is no agreement."""
        verdicts = {comparison.verdict for comparison in self.comparisons}
        if "differ" in verdicts:
            return "differ"
        return "agree" if verdicts == {"agree"} else "unknown"

    def finding(self, id: str) -> Finding:
        for finding in self.findings:
            if finding.id == id:
                return finding
        raise SoftError(f"There is no finding {id!r}.")

    def of(self, cluster: Cluster) -> tuple[Finding, ...]:
        """The findings of a cluster, in its order."""
        known = {finding.id: finding for finding in self.findings}
        return tuple(known[id] for id in cluster.findings)

    def scenario(self, name: str) -> ScenarioRecord:
        for scenario in self.scenarios:
            if scenario.name == name:
                return scenario
        raise SoftError(f"No scenario {name!r} was compared.")


# ---------------------------------------------------------------------------------------------- files

T = TypeVar("T")
_encoder = msgspec.json.Encoder()


def encode(findings: Findings) -> bytes:
    """The bytes of findings.json."""
    return msgspec.json.format(_encoder.encode(findings), indent=1) + b"\n"


def read_findings(path: str | Path) -> Findings:
    """The findings in a folder, or in a findings.json itself. Raises SoftError for anything else."""
    file = Path(path)
    if file.is_dir():
        file = file / NAME
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise SoftError(f"{path}: there are no findings here ({NAME} is missing).") from None
    except OSError as error:
        raise SoftError(f"{file}: the file cannot be read ({error.strerror}).") from None
    if len(data) > MOST_BYTES:
        raise SoftError(f"{file}: the file is too large to hold findings.")
    return decode(data, str(file))


def decode(data: bytes, where: str) -> Findings:
    head = _decoded(data, _Head, where)
    if head.format != FORMAT:
        raise SoftError(f"{where}: the findings have format {head.format}; this version of soft reads {FORMAT}.")
    findings = _decoded(data, Findings, where)
    try:
        _check(findings)
    except SoftError as error:
        raise SoftError(f"{where}: {error}") from None
    return findings


class _Head(msgspec.Struct, frozen=True):
    format: int


def _decoded(data: bytes, type_: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = "it nests too deep" if isinstance(error, RecursionError) else str(error)[:200].rstrip(".")
        raise SoftError(f"{where}: these are not findings ({reason}).") from None


def _check(findings: Findings) -> None:
    """What the types do not say: bounds, identifiers that are there once and are known, names that stay inside."""
    _check_texts(findings)
    labels = _unique([agent.label for agent in findings.agents], "agent")
    scenarios = _unique([scenario.name for scenario in findings.scenarios], "scenario")
    ids = _unique([finding.id for finding in findings.findings], "finding")
    clusters = _unique([cluster.id for cluster in findings.clusters], "cluster")
    for comparison in findings.comparisons:
        _known(comparison.scenario, scenarios, "scenario")
        for label in comparison.agents:
            _known(label, labels, "agent")
        for id in comparison.findings:
            _known(id, ids, "finding")
    for finding in findings.findings:
        _check_region(finding)
        _known(finding.scenario, scenarios, "scenario")
        _known(finding.cluster, clusters, "cluster")
        for behaviour in (*finding.behaviours, *finding.others):
            _known(behaviour.agent, labels, "agent")
        for name in (finding.id, finding.cluster):
            if not _ID.match(name):
                raise SoftError(f"{name[:60]!r} is not the id of a finding or cluster.")
        _check_file(finding.conditions)
    for cluster in findings.clusters:
        _known(cluster.scenario, scenarios, "scenario")
        for id in cluster.findings:
            _known(id, ids, "finding")
        _check_file(cluster.folder)


def _check_region(finding: Finding) -> None:
    values = finding.example.values
    names = [name for field in finding.region.fields for name in (field.field, field.head) if name]
    for relation in finding.region.relations:
        names += [name for name in (relation.left, relation.right, relation.head) if name]
        if not 1 <= abs(relation.factor) < 1 << 64 or not abs(relation.offset) < 1 << 64:
            raise SoftError(f"The relation of {relation.left[:60]!r} has a factor or an offset that none has.")
    for name in names:
        match = _PART.match(name)
        if match is None or match[1] not in values:
            raise SoftError(f"{name[:60]!r} is not a field of the finding's example.")
    for field in finding.region.fields:
        if not 0 <= field.low < 1 << 16 or not 1 <= (field.bits or 1) < 1 << 16 or (field.head and not field.bits):
            raise SoftError(f"A part of the field {field.field[:60]!r} has bits that no field has.")


def _check_file(name: str) -> None:
    if not _FILE.match(name):
        raise SoftError(f"{name[:60]!r} is not the name of a file of findings.")


def _unique(names: list[str], what: str) -> set[str]:
    known = set(names)
    if len(known) != len(names):
        raise SoftError(f"One {what} is there twice.")
    return known


def _known(name: str, known: set[str], what: str) -> None:
    if name not in known:
        raise SoftError(f"There is no {what} {name[:60]!r}.")


def _check_texts(root: Any) -> None:
    """Every text is short and printable, every payload hexadecimal, every sequence bounded."""
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        key, item = stack.pop()
        if isinstance(item, str):
            _check_text(key, item)
        elif isinstance(item, tuple | dict):
            if len(item) > MOST_ITEMS:
                raise SoftError(f"There are {len(item)} {key}; at most {MOST_ITEMS} are allowed.")
            stack += [(key, part) for part in item]
        elif isinstance(item, msgspec.Struct):
            stack += [(name, getattr(item, name)) for name in item.__struct_fields__]


def _check_text(key: str, text: str) -> None:
    if key == "hex":
        if len(text) > LONGEST_PAYLOAD or not _HEX.match(text):
            raise SoftError(f"{text[:60]!r} is not a payload in hexadecimal.")
    elif key == "text" and "\n" in text:  # a scenario's TOML
        if len(text) > LONGEST_SCENARIO:
            raise SoftError("The text of a scenario is too long.")
    elif len(text) > LONGEST_TEXT or not text.isprintable():
        raise SoftError(f"The {key} {text[:60]!r} is not a printable line of at most {LONGEST_TEXT} characters.")
