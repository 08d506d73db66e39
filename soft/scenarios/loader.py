"""Read scenarios: by name from the catalogue, or from a user's file. README.md beside this file describes the format.

A scenario may be a stranger's (it comes with a bundle): sizes are bounded, and every error is a sentence with file,
line and field.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

from soft.errors import SoftError
from soft.openflow.layout import VERSIONS, Field, layout_of
from soft.scenarios import model
from soft.scenarios.build import Builder, Chunk, Table, canonical_chunks, payload_of
from soft.scenarios.lines import line_of
from soft.scenarios.model import Probe, Scenario, Send, Step, Wait, suggestion
from soft.scenarios.values import FieldError, Symbolic, check_keys, field_value, is_symbolic
from soft.solve import terms

# Bounds for a stranger's file. The largest message has 65,535 bytes, twice as many hexadecimal digits.
MOST_TEXT = 256 << 10
# tomllib takes time quadratic in the parts of a dotted key; a scenario's have three.
MOST_DOTS = 64
MOST_STEPS = 256
MOST_PORTS = 16  # what soft.launch gives an agent
DEFAULT_PORTS = 4
# A day: longer than the longest timeout of a rule, 65,535 s.
LONGEST_WAIT = 86_400_000
# A frame, from its Ethernet header to what a device without jumbo frames takes.
FRAME_BYTES = (14, 1518)

_SCENARIO_KEYS = ("name", "summary", "openflow", "ports", "handshake", "step")
_STEP_KINDS = ("send", "probe", "wait")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WAIT = Field("ms", 32, "decimal", default=1000)


def names() -> list[str]:
    """The names of the catalogue."""
    folder = resources.files("soft.scenarios").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name_or_path: str) -> Scenario:
    """A scenario of the catalogue (flowmod, FlowMod and flow-mod are flow_mod), or the one in a file."""
    known = {_bare(name): name for name in names()}
    found = known.get(_bare(name_or_path))
    if found is not None:
        entry = resources.files("soft.scenarios").joinpath("catalogue", f"{found}.toml")
        return parse(entry.read_text(encoding="utf-8"), f"{found}.toml")
    path = Path(name_or_path)
    try:
        if path.is_file():
            return parse(_read(path), name_or_path)
        if path.is_dir() and name_or_path:
            raise SoftError(f"{name_or_path} is a directory, not a scenario's file.")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SoftError(f"{name_or_path!r}: the file cannot be read ({reason}).") from None
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        raise SoftError(f"There is no file {name_or_path!r}.")
    raise SoftError(f"There is no scenario {name_or_path!r}{suggestion(name_or_path, known.values())}.")


def parse(text: str, source: str) -> Scenario:
    """The scenario that a text describes; `source` names it in errors."""
    table = _toml(text, source)
    try:
        return _scenario(table, text)
    except FieldError as error:
        line = line_of(text, error.path)
        raise SoftError(f"{source}, line {line}: {_where(error.path, table)}{error.sentence}.") from None
    except RecursionError:
        raise SoftError(f"{source}: the values are nested too deeply.") from None


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _read(path: Path) -> str:
    with path.open("rb") as stream:
        data = stream.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise SoftError(f"{path}: the file is larger than {MOST_TEXT} bytes, the most that a scenario may have.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SoftError(f"{path}, line {line}: this is not UTF-8 text.") from None


def _toml(text: str, source: str) -> Table:
    if len(text) > MOST_TEXT:
        raise SoftError(f"{source}: the text is longer than {MOST_TEXT} characters, the most that a scenario may have.")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS:
            raise SoftError(f"{source}, line {number}: more than {MOST_DOTS} dots in one line.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        number = int(at[1]) if at and at[1] else text.count("\n") + 1
        reason = str(error)[: at.start()] if at else str(error)
        raise SoftError(f"{source}, line {number}: this is not TOML: {reason[:1].lower()}{reason[1:200]}.") from None
    except ValueError as error:  # a decimal number of thousands of digits
        raise SoftError(f"{source}: this is not TOML: {str(error)[:200]}.") from None
    except RecursionError:
        raise SoftError(f"{source}: the values are nested too deeply.") from None


def _where(path: tuple[str | int, ...], table: Table) -> str:
    """The field as its variable would be named: m0.actions.1.port."""
    parts: list[str | int] = list(path)
    if len(parts) >= 2 and parts[0] == "step" and isinstance(parts[1], int):
        steps = table["step"]
        step = steps[parts[1]] if isinstance(steps, list) else None
        kind = next((kind for kind in _STEP_KINDS if isinstance(step, dict) and kind in step), None)
        parts[:2] = [f"step {parts[1]}" if kind is None else _id(kind, parts[1])]
    return f"{'.'.join(map(str, parts))[:200]}: " if parts else ""


def _id(kind: str, index: int) -> str:
    """A step's id, from its kind and its place among all steps: m0, p1, w2."""
    return f"{'m' if kind == 'send' else kind[0]}{index}"


# ---------------------------------------------------------------------------------------------- the tables


def _scenario(table: Table, text: str) -> Scenario:
    check_keys(table, _SCENARIO_KEYS)
    openflow = _string(table, "openflow", "1.0")
    if openflow not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise FieldError(f"there is no message layout for OpenFlow {openflow[:20]!r}; known: {known}", ("openflow",))
    ports = table.get("ports", DEFAULT_PORTS)
    if not _is_number(ports, 1, MOST_PORTS):
        raise FieldError(f"ports is a number from 1 to {MOST_PORTS}", ("ports",))
    assert isinstance(ports, int)
    handshake = table.get("handshake", True)
    if not isinstance(handshake, bool):
        raise FieldError("handshake is true or false", ("handshake",))
    tables = table.get("step", [])
    if not isinstance(tables, list) or not 0 < len(tables) <= MOST_STEPS:
        raise FieldError(f"a scenario has 1 to {MOST_STEPS} steps, each under [[step]]", ("step",))
    name, summary = _name(table), _summary(table)
    builder = Builder(layout_of(openflow))
    steps: list[Step] = []
    meanings: list[object] = []
    for index, entry in enumerate(tables):
        try:
            step, meaning = _step(builder, index, entry, ports)
        except FieldError as error:
            raise error.under("step", index) from None
        steps.append(step)
        meanings.append(meaning)
    variables = tuple(builder.variables.values())
    return Scenario(
        name=name,
        summary=summary,
        openflow=openflow,
        ports=ports,
        steps=tuple(steps),
        variables=variables,
        domain=tuple(limit for limit in (variable.domain for variable in variables) if limit is not terms.TRUE),
        digest=model.digest(openflow, ports, meanings, variables, handshake),
        text=text,
        handshake=handshake,
    )


def _name(table: Table) -> str:
    name = _string(table, "name", "")
    if not _NAME.fullmatch(name):
        raise FieldError("a scenario has a name of up to 64 letters, digits, _ and -", ("name",))
    return name


def _summary(table: Table) -> str:
    summary = _string(table, "summary", "")
    if len(summary) > 200 or not summary.isprintable():
        raise FieldError("the summary is one line of at most 200 characters", ("summary",))
    return summary


def _string(table: Table, key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise FieldError("a text in quotation marks belongs here", (key,))
    return value


def _is_number(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


# ---------------------------------------------------------------------------------------------- steps


def _step(builder: Builder, index: int, table: object, ports: int) -> tuple[Step, object]:
    """A step, and what it means for the digest."""
    if not isinstance(table, dict):
        raise FieldError("a step is a table under [[step]]")
    kinds = [kind for kind in _STEP_KINDS if kind in table]
    if len(kinds) != 1:
        found = f"this one has {' and '.join(kinds)}" if kinds else "this one has none of them"
        raise FieldError(f"a step has one of {', '.join(_STEP_KINDS)}; {found}")
    name = _id(kinds[0], index)
    if kinds[0] == "send":
        return _send(builder, name, table, index)
    if kinds[0] == "probe":
        return _probe(builder, name, table, ports)
    return _wait(builder, name, table)


def _send(builder: Builder, name: str, table: Table, index: int) -> tuple[Step, object]:
    chunks, size = builder.message(name, table, xid=index + 1)
    kind = table["send"]
    assert isinstance(kind, str)
    meaning: list[object] = ["send", canonical_chunks(chunks)]
    if size is not None:
        meaning.append(size.name)
    return Send(name, kind, payload_of(chunks, size)), meaning


def _probe(builder: Builder, name: str, table: Table, ports: int) -> tuple[Step, object]:
    check_keys(table, ("probe", "packet"))
    port = table["probe"]
    if not _is_number(port, 1, ports):
        raise FieldError(f"probe is the number of a port, 1 to {ports}", ("probe",))
    assert isinstance(port, int)
    try:
        chunks = builder.packet(name, table.get("packet", "tcp"))
        _check_frame(chunks)
    except FieldError as error:
        raise error.under("packet") from None
    return Probe(name, port, payload_of(chunks)), ["probe", port, canonical_chunks(chunks)]


def _check_frame(chunks: list[Chunk]) -> None:
    size = sum(chunk.bits for chunk in chunks) // 8
    least, most = FRAME_BYTES
    if not least <= size <= most:
        raise FieldError(f"the packet has {size} bytes; a frame has {least} to {most}")


def _wait(builder: Builder, name: str, table: Table) -> tuple[Step, object]:
    """`wait = 500`, `wait = "symbolic"` with `range_ms` beside it, or a table as for any field; milliseconds."""
    check_keys(table, ("wait", "range_ms"))
    value = table["wait"]
    if "range_ms" in table:
        if value != "symbolic":
            raise FieldError('range_ms belongs to wait = "symbolic"', ("range_ms",))
        value = {"symbolic": True, "range": table["range_ms"]}
    if value == "symbolic":
        value = {"symbolic": True}
    if isinstance(value, dict) and is_symbolic(value) and not ("range" in value or "in" in value):
        value = {**value, "range": [0, LONGEST_WAIT]}
    try:
        duration = field_value(_WAIT, value)
        _check_wait(duration)
    except FieldError as error:
        path = ("range_ms",) if "range_ms" in table else ("wait", *error.path)
        raise FieldError(error.sentence, path) from None
    if isinstance(duration, int):
        return Wait(name, duration), ["wait", duration]
    variable = builder.variable(f"{name}.{_WAIT.name}", _WAIT, duration)
    return Wait(name, terms.var(variable.name, 32)), ["wait", variable.name]


def _check_wait(duration: int | Symbolic) -> None:
    values = (duration,) if isinstance(duration, int) else (*(duration.range or ()), *(duration.choices or ()))
    if any(value > LONGEST_WAIT for value in values):
        raise FieldError(f"a wait has at most {LONGEST_WAIT} milliseconds, a day")
