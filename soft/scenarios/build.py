"""From a step's table to bits: walk the message layout, take each field's value from the table or its default.

The result is a list of chunks, constants and whole variables of any number of bits. Payload and digest are both made
from it, so that the digest does not depend on how terms are simplified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from soft.openflow.layout import (
    HEADER_SIZE,
    LARGEST_MESSAGE,
    Actions,
    Cases,
    Data,
    Element,
    Field,
    Group,
    Layout,
    Length,
    Names,
    Pad,
    Repeat,
    Template,
)
from soft.openflow.packets import FRAMES, fill_checksums
from soft.scenarios.model import Variable, suggestion
from soft.scenarios.values import (
    FieldError,
    Symbolic,
    check_keys,
    field_value,
    hex_bytes,
    is_symbolic,
    number,
    quoted,
)
from soft.solve import terms
from soft.trace import Payload

# A stranger's scenario is bounded. These are far above any real one: the largest of the catalogue has 36 variables.
MOST_VARIABLES = 2000
MOST_SYMBOLIC_BYTES = 256  # in one variable
MOST_ACTIONS = 256
MOST_PARTS = 256

_HEADER_KEYS = ("version", "length", "xid", "size")
_ACTION_DEFAULT_BODY = b"\0\x02\xff\xff"  # of an action whose type is symbolic: read as output, it goes to port 2


@dataclass(frozen=True, slots=True)
class Const:
    bits: int
    value: int


@dataclass(frozen=True, slots=True)
class Var:
    bits: int
    name: str


Chunk = Const | Var
Table = dict[str, object]
T = TypeVar("T")


def payload_of(chunks: Iterable[Chunk], size: Var | None = None) -> Payload:
    """The chunks as bytes and terms; `size` is the variable that says how many bytes of it are sent."""
    parts = [
        terms.const(chunk.value, chunk.bits) if isinstance(chunk, Const) else terms.var(chunk.name, chunk.bits)
        for chunk in chunks
        if chunk.bits
    ]
    pieces = (terms.concat(*parts),) if parts else ()
    return Payload(pieces, terms.var(size.name, size.bits) if size is not None else None)


def canonical_chunks(chunks: Iterable[Chunk]) -> list[list[object]]:
    """A form for the digest: neighbouring constants are one."""
    result: list[list[object]] = []
    run: list[Const] = []

    def close() -> None:
        if run:
            value = 0
            for const in run:
                value = value << const.bits | const.value
            result.append([sum(const.bits for const in run), hex(value)])
            run.clear()

    for chunk in chunks:
        if isinstance(chunk, Const):
            run.append(chunk)
        else:
            close()
            result.append([chunk.bits, chunk.name])
    close()
    return result


class Builder:
    """Builds the steps of one scenario and collects their variables."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.variables: dict[str, Variable] = {}

    # ------------------------------------------------------------------------------------------ steps

    def message(self, step: str, table: Table, xid: int) -> tuple[list[Chunk], Var | None]:
        """A message of a template; `message` has any type and a plain body, `raw` is bytes without a header."""
        name = table["send"]
        rest = {key: value for key, value in table.items() if key != "send"}
        if name == "raw":
            check_keys(rest, ("bytes",))
            if "bytes" not in rest:
                raise FieldError("raw takes bytes = ...", ("send",))
            chunks = self._data(step, "bytes", rest["bytes"])
            self._check_size(chunks)
            return chunks, None
        if name == "message":
            elements: tuple[Element, ...] = (Data("body"),)
            code: object = rest.pop("type", 0)
        else:
            template = self.layout.messages.get(name) if isinstance(name, str) else None
            if template is None:
                known = [*self.layout.messages, "message", "raw"]
                raise FieldError(f"there is no message {quoted(name)}{suggestion(str(name), known)}", ("send",))
            elements, code = template.elements, template.code
        header = {key: rest.pop(key) for key in _HEADER_KEYS if key in rest}
        body = self._elements(step, elements, rest)
        size = HEADER_SIZE + sum(chunk.bits for chunk in body) // 8
        cut = self._size(step, header.pop("size", None), size)
        length: Chunk = cut if cut is not None else Const(16, size)
        chunks = [
            self._field(step, Field("version", 8, default=self.layout.version), header),
            self._field(step, Field("type", 8, names=self.layout.types), {"type": code}),
            self._field(step, Field("length", 16, default=size), header) if "length" in header else length,
            self._field(step, Field("xid", 32, default=xid), header),
            *body,
        ]
        self._check_size(chunks)
        self._in_wire_order(chunks)
        return chunks, cut

    def packet(self, prefix: str, value: object) -> list[Chunk]:
        """A frame: a kind's name, a table with a kind and fields of it, or plain bytes."""
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, dict):
            raise FieldError(f"a packet is a name ({', '.join(FRAMES)}) or a table")
        if "bytes" in value:
            check_keys(value, ("bytes",))
            return self._data(prefix, "bytes", value["bytes"])
        fields = dict(value)
        kind = fields.pop("kind", "tcp")
        frame = FRAMES.get(kind) if isinstance(kind, str) else None
        if frame is None:
            raise FieldError(f"there is no packet {quoted(kind)}{suggestion(str(kind), FRAMES)}", ("kind",))
        chunks = self._elements(prefix, frame.elements, fields)
        data = fill_checksums(frame, self._default_bytes(chunks))
        for checksum in frame.checksums:
            offset = 0
            for index, chunk in enumerate(chunks):
                if offset == 8 * checksum.at:
                    chunks[index] = Const(16, int.from_bytes(data[checksum.at : checksum.at + 2], "big"))
                offset += chunk.bits
        return chunks

    def _in_wire_order(self, chunks: list[Chunk]) -> None:
        """List the variables of a message as they stand in it: its body was built before its header."""
        for chunk in chunks:
            if isinstance(chunk, Var):
                self.variables[chunk.name] = self.variables.pop(chunk.name)

    def _default_bytes(self, chunks: list[Chunk]) -> bytes:
        value = bits = 0
        for chunk in chunks:
            part = chunk.value if isinstance(chunk, Const) else self.variables[chunk.name].default
            value, bits = value << chunk.bits | part, bits + chunk.bits
        return value.to_bytes(bits // 8, "big")

    def _check_size(self, chunks: list[Chunk]) -> None:
        size = sum(chunk.bits for chunk in chunks) // 8
        if not 0 < size <= LARGEST_MESSAGE:
            raise FieldError(f"the message has {size} bytes; a message has 1 to {LARGEST_MESSAGE}", ("send",))

    def _size(self, step: str, value: object, size: int) -> Var | None:
        """How many bytes are sent: all, or a symbolic number from a list."""
        if value is None:
            return None
        try:
            if not isinstance(value, dict) or "in" not in value:
                raise FieldError(f"size takes {{in = [...]}}, the numbers of bytes to send, at most {size}")
            symbolic = field_value(Field("size", 16, "decimal", default=size), value)
            assert isinstance(symbolic, Symbolic)
            if not all(HEADER_SIZE <= choice <= size for choice in symbolic.choices or ()):
                raise FieldError(f"every size must be {HEADER_SIZE} to {size}, what there is to send", ("in",))
        except FieldError as error:
            raise error.under("size") from None
        return self.variable(f"{step}.size", Field("size", 16, "decimal"), symbolic)

    # ------------------------------------------------------------------------------------------ fields

    def _elements(self, prefix: str, elements: tuple[Element, ...], table: Table) -> list[Chunk]:
        """The chunks of a sequence of elements; every key of the table must belong to one of them."""
        chosen = self._choose(elements, table)
        check_keys(table, [e.name for e in chosen if not isinstance(e, Pad | Cases)])
        built: dict[str, list[Chunk]] = {}
        for element in chosen:
            # Lists first: a length may stand before the element whose size it tells.
            if isinstance(element, Actions | Data):
                built[element.name] = self._list(prefix, element, table.get(element.name))
        chunks: list[Chunk] = []
        for element in chosen:
            if isinstance(element, Pad):
                chunks.append(Const(element.bits, element.value))
            elif isinstance(element, Field):
                chunks.append(self._field(prefix, element, table))
            elif isinstance(element, Length):
                size = sum(chunk.bits for chunk in built[element.of]) // 8
                chunks.append(self._field(prefix, Field(element.name, element.bits, default=size), table))
            elif isinstance(element, Group):
                chunks += self._group(prefix, element, table)
            elif isinstance(element, Actions | Data):
                chunks += built[element.name]
            else:
                assert not isinstance(element, Cases | Repeat), "not in what a controller sends"
        return chunks

    def _choose(self, elements: tuple[Element, ...], table: Table) -> list[Element]:
        """The elements with every choice between cases made: by the selector's value, or for a plain body."""
        result: list[Element] = []
        for element in elements:
            if not isinstance(element, Cases):
                result.append(element)
                continue
            selector = next(e for e in elements if isinstance(e, Field) and e.name == element.selector)
            value = table.get(selector.name, selector.default)
            code = None if is_symbolic(value) else _at(selector.name, number, selector, value)
            plain = code is None or code not in element.cases
            if element.body.name in table and not (code in element.cases and element.body in element.cases[code or 0]):
                plain = True
            result += (element.body,) if plain or code is None else element.cases[code]
        return result

    def _group(self, prefix: str, group: Group, table: Table) -> list[Chunk]:
        value = table.get(group.name, {})
        name = f"{prefix}.{group.name}"
        try:
            if value == "symbolic":
                value = _all_symbolic(group)
            if group.masks:
                return self._masks(name, group, value, table)
            if not isinstance(value, dict):
                raise FieldError('a table of fields, or "symbolic", belongs here')
            return self._elements(name, group.elements, value)
        except FieldError as error:
            raise error.under(group.name) from None

    def _masks(self, name: str, group: Group, value: object, siblings: Table) -> list[Chunk]:
        bits = sum(e.bits for e in group.elements if isinstance(e, Field | Pad))
        if isinstance(value, int | str) and not isinstance(value, bool):
            return [Const(bits, number(Field(group.name, bits, names=Names("ofpfw_", {"all": 0x3FFFFF})), value))]
        if not isinstance(value, dict):
            raise FieldError('a table of bits, a number, or "symbolic", belongs here')
        given = {e.name: 0 for e in group.elements if isinstance(e, Field) and e.name in siblings}
        return self._elements(name, group.elements, {**given, **value})

    def _field(self, prefix: str, field: Field, table: Table) -> Chunk:
        if field.name not in table:
            return Const(field.bits, field.default)
        value = _at(field.name, field_value, field, table[field.name])
        if isinstance(value, Symbolic):
            return self.variable(f"{prefix}.{field.name}", field, value)
        return Const(field.bits, value)

    def variable(self, name: str, field: Field, value: Symbolic) -> Var:
        """A new variable of the scenario."""
        if len(self.variables) >= MOST_VARIABLES:
            raise FieldError(f"the scenario has more than {MOST_VARIABLES} symbolic fields", (field.name,))
        if name in self.variables:
            raise FieldError(f"there are two fields named {name}", (field.name,))
        self.variables[name] = Variable(
            name, field.bits, value.default, value.range, value.choices, field.kind, field.names, value.excluded
        )
        return Var(field.bits, name)

    # ------------------------------------------------------------------------------------------ lists and bytes

    def _list(self, prefix: str, element: Actions | Data, value: object) -> list[Chunk]:
        if value is None:
            return []
        if isinstance(element, Data):
            return self._data(prefix, element.name, value)
        if not isinstance(value, list) or len(value) > MOST_ACTIONS:
            raise FieldError(f"actions is a list of at most {MOST_ACTIONS} tables", (element.name,))
        chunks: list[Chunk] = []
        for index, action in enumerate(value):
            try:
                chunks += self._action(f"{prefix}.{element.name}.{index}", action)
            except FieldError as error:
                raise error.under(element.name, index) from None
        return chunks

    def _action(self, prefix: str, table: object) -> list[Chunk]:
        """An action by name with its fields, or with a symbolic or unknown type and four bytes of body."""
        if not isinstance(table, dict) or "type" not in table:
            raise FieldError('an action is a table with a type, such as {type = "output", port = 2}')
        kind = Field("type", 16, names=self.layout.action_types)
        rest = {key: value for key, value in table.items() if key not in ("type", "len")}
        code = None if is_symbolic(table["type"]) else _at("type", number, kind, table["type"])
        template: Template | None = next((t for t in self.layout.actions.values() if t.code == code), None)
        if template is not None and not ("body" in rest and Data("body") not in template.elements):
            body = self._elements(prefix, template.elements, rest)
        else:
            check_keys(rest, ("body",))
            value = rest.get("body", "00000000")
            if value == "symbolic":
                value = {"symbolic": True, "bytes": 4, "default": _ACTION_DEFAULT_BODY.hex()}
            body = self._data(prefix, "body", value)
        size = 4 + sum(chunk.bits for chunk in body) // 8
        if size > LARGEST_MESSAGE:
            raise FieldError(f"the action has {size} bytes; its length field has 16 bits")
        return [self._field(prefix, kind, table), self._field(prefix, Field("len", 16, default=size), table), *body]

    def _data(self, prefix: str, name: str, value: object) -> list[Chunk]:
        """Bytes: hexadecimal, {symbolic, bytes = N}, {packet = ...}, or a list of such parts and named ones."""
        if isinstance(value, dict) and is_symbolic(value) and "bytes" in value:
            size = value["bytes"]
            if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MOST_SYMBOLIC_BYTES:
                raise FieldError(f"bytes is 1 to {MOST_SYMBOLIC_BYTES}", (name, "bytes"))
            field = Field(name, 8 * size, "bytes")
            return [self._field(prefix, field, {name: {k: v for k, v in value.items() if k != "bytes"}})]
        try:
            if isinstance(value, list):
                return self._parts(f"{prefix}.{name}", value)
            if isinstance(value, str) and value != "symbolic":
                data = hex_bytes(value)
                return [Const(8 * len(data), int.from_bytes(data, "big"))]
            if isinstance(value, dict) and "packet" in value:
                check_keys(value, ("packet",))
                return self._packet_at(f"{prefix}.{name}", value["packet"])
        except FieldError as error:
            raise error.under(name) from None
        raise FieldError(
            "bytes are written in hexadecimal, as {symbolic = true, bytes = N}, {packet = ...}, or a list of parts",
            (name,),
        )

    def _packet_at(self, prefix: str, value: object) -> list[Chunk]:
        try:
            return self.packet(prefix, value)
        except FieldError as error:
            raise error.under("packet") from None

    def _parts(self, prefix: str, parts: list[object]) -> list[Chunk]:
        if len(parts) > MOST_PARTS:
            raise FieldError(f"at most {MOST_PARTS} parts")
        chunks: list[Chunk] = []
        for index, part in enumerate(parts):
            named = isinstance(part, dict) and "name" in part
            try:
                chunks += [self._named_part(prefix, part)] if named else self._data(prefix, str(index), part)
            except FieldError as error:
                path = error.path if named else error.path[1:]
                raise FieldError(error.sentence, (index, *path)) from None
        if sum(chunk.bits for chunk in chunks) % 8:
            raise FieldError("the parts together are no whole number of bytes")
        return chunks

    def _named_part(self, prefix: str, part: Any) -> Chunk:
        """{name, bits, value}: a field that the layout does not know."""
        check_keys(part, ("name", "bits", "value"))
        name, bits = part["name"], part.get("bits")
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
            raise FieldError("a part's name is a word of letters, digits and _", ("name",))
        if not isinstance(bits, int) or isinstance(bits, bool) or not 0 < bits <= 8 * MOST_SYMBOLIC_BYTES:
            raise FieldError(f"bits is 1 to {8 * MOST_SYMBOLIC_BYTES}", ("bits",))
        try:
            return self._field(prefix, Field(name, bits), {name: part.get("value", 0)})
        except FieldError as error:
            raise FieldError(error.sentence, ("value", *error.path[1:])) from None


def _all_symbolic(group: Group) -> Table:
    """Every field of a group symbolic, the bits of its masks too; padding stays."""
    return {e.name: "symbolic" for e in group.elements if isinstance(e, Field | Group)}


def _at(name: str, parse: Callable[[Field, object], T], field: Field, value: object) -> T:
    """Parse a field's value; an error says the field's name."""
    try:
        return parse(field, value)
    except FieldError as error:
        raise error.under(name) from None
