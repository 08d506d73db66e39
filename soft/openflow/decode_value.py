"""Numbers and bytes out of a payload, for people: a term shows as the inputs that it comes from."""

from __future__ import annotations

from soft.openflow.layout import Field, Names
from soft.solve import terms
from soft.solve.terms import Term
from soft.trace import Payload

Value = int | Term

# More inputs than a line can hold are counted.
_MOST_NAMES = 3
_MOST_HEX = 32


def show_term(term: Term) -> str:
    """What a term comes from: the input itself, some of its bits, or a function of inputs."""
    if term.op == "var":
        return str(term.args[0])
    if term.op == "const":
        return hex(term.args[0])
    if term.op == "extract" and term.args[2].op == "var":
        high, low, whole = term.args
        return f"{whole.args[0]}[{high}:{low}]"
    if term.op == "concat":
        parts = [part for part in term.args if part.op != "const"]
        if len(parts) == 1 and term.args[-1] is parts[0] and all(part.args[0] == 0 for part in term.args[:-1]):
            return show_term(parts[0])
    names = sorted(term.variables)
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return f"f({', '.join([*names[:_MOST_NAMES], *more])})"


def show_value(value: Value, field: Field | None = None, names: Names | None = None) -> str:
    """A number as people write it, by name where it has one."""
    if isinstance(value, Term):
        return show_term(value)
    names = names or (field.names if field is not None else None)
    if names is not None and (name := names.name(value)) is not None:
        return name
    kind = field.kind if field is not None else "int"
    if kind == "mac":
        return value.to_bytes(6, "big").hex(":")
    if kind == "ipv4":
        return ".".join(map(str, value.to_bytes(4, "big")))
    if kind == "bytes" and field is not None:
        return _text(value.to_bytes(field.bits // 8, "big"))
    return str(value) if value < 0x10000 else hex(value)


def _text(data: bytes) -> str:
    text = data.rstrip(b"\0")
    if text.isascii() and text.decode("ascii").isprintable():
        return repr(text.decode("ascii"))
    return show_hex(data)


def show_hex(data: bytes) -> str:
    return data[:_MOST_HEX].hex() + ("..." if len(data) > _MOST_HEX else "")


def number_at(payload: Payload, start: int, bits: int) -> Value:
    """The number of so many bits from a bit on; 0 behind the end."""
    first, last = start // 8, (start + bits + 7) // 8
    if last > payload.size:
        return 0
    field = payload.field(first, last)
    behind = 8 * last - start - bits
    if isinstance(field, bytes):
        return int.from_bytes(field, "big") >> behind & ((1 << bits) - 1)
    term = terms.extract(behind + bits - 1, behind, field)
    return int(term.args[0]) if term.op == "const" else term


def show_size(payload: Payload) -> str:
    if payload.length is not None:
        return f"up to {payload.size} bytes ({show_term(payload.length)})"
    return f"{payload.size} byte{'' if payload.size == 1 else 's'}"


def show_data(payload: Payload) -> str:
    """Bytes without a meaning of their own: how many, and the first, or the inputs in them."""
    data = payload.concrete()
    if data is not None:
        return f"{show_size(payload)} {show_hex(data)}" if data else "none"
    names = sorted(payload.variables)
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"{show_size(payload)} with {', '.join(names[:_MOST_NAMES])}{more}"
