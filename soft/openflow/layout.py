"""The building blocks of message layouts, and where to find the layout of an OpenFlow version.

A layout is data: elements in the order of the wire, with names, widths and defaults. Scenarios are built from it, and
traces are shown and normalised by it. A new OpenFlow version is a new table of templates (see openflow10.py) and,
where its messages have another shape (instructions, type-length-value matches), new elements here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soft.errors import SoftError

HEADER_SIZE = 8
LARGEST_MESSAGE = 0xFFFF  # the header's length field has 16 bits


@dataclass(frozen=True, slots=True)
class Names:
    """Names for values of a field: `controller` is 0xfffd; with the specification's prefix, OFPP_CONTROLLER, too."""

    prefix: str
    values: Mapping[str, int]
    flags: bool = False  # each name is one bit; a list of names is their union

    def value(self, text: str) -> int | None:
        name = text.strip().lower().replace("-", "_")
        return self.values.get(name.removeprefix(self.prefix))

    def name(self, value: int) -> str | None:
        for name, known in self.values.items():
            if known == value:
                return name
        if self.flags and value:
            found = [name for name, bit in self.values.items() if bit and value & bit == bit]
            if sum(self.values[name] for name in found) == value:
                return "+".join(found)
        return None


@dataclass(frozen=True, slots=True)
class Field:
    """A number, an address or a bit. `kind` says how people write it: int, decimal, mac, ipv4 or bytes."""

    name: str
    bits: int
    kind: str = "int"
    default: int = 0
    names: Names | None = None


@dataclass(frozen=True, slots=True)
class Pad:
    """Bits that are always the same: padding, or a constant that no scenario needs to change."""

    bits: int
    value: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Fields with a name in common: `match` has `match.dl_src`.

    With `masks`, the fields are wildcard bits of the fields around the group: where a scenario gives a field but not
    its bit, the bit is 0 (the field counts).
    """

    name: str
    elements: tuple[Element, ...]
    masks: bool = False


@dataclass(frozen=True, slots=True)
class Length:
    """The number of bytes of another element, filled in unless a scenario gives it."""

    name: str
    bits: int
    of: str


@dataclass(frozen=True, slots=True)
class Actions:
    """A list of actions."""

    name: str


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes up to the end of the message; none by default."""

    name: str


@dataclass(frozen=True, slots=True)
class Cases:
    """Fields that depend on the value of an earlier field, or plain bytes under `body` where that is not known."""

    selector: str
    cases: Mapping[int, tuple[Element, ...]]
    body: Data


@dataclass(frozen=True, slots=True)
class Repeat:
    """Entries up to the end of the message, `size` bytes each, or as many as each entry's first two bytes say."""

    name: str
    elements: tuple[Element, ...]
    size: int
    own_length: bool = False


Element = Field | Pad | Group | Length | Actions | Data | Cases | Repeat


@dataclass(frozen=True, slots=True)
class Template:
    """A message (what follows its header) or an action (what follows its type and length)."""

    name: str
    code: int
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """One version of the protocol."""

    openflow: str
    version: int
    types: Names
    messages: Mapping[str, Template]  # what a controller may send, by name
    actions: Mapping[str, Template]
    action_types: Names
    replies: Mapping[int, Template] = field(default_factory=dict)  # what a switch sends, by type


VERSIONS = ("1.0",)


def layout_of(openflow: str) -> Layout:
    """The layout of a version, as scenarios write it ("1.0")."""
    if openflow not in VERSIONS:
        raise SoftError(f"There is no message layout for OpenFlow {openflow!r}; known: {', '.join(VERSIONS)}.")
    from soft.openflow.openflow10 import OPENFLOW10

    return OPENFLOW10


def size_of(elements: tuple[Element, ...]) -> int:
    """The number of bytes of elements of fixed size."""
    return sum(map(_bits, elements)) // 8


def _bits(element: Element) -> int:
    if isinstance(element, Field | Pad | Length):
        return element.bits
    if isinstance(element, Group):
        return sum(map(_bits, element.elements))
    return 0
