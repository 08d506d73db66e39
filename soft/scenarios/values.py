"""The value of one field as a scenario writes it: a number, a name, an address, or a symbolic value with its domain."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from soft.openflow.layout import Field
from soft.scenarios.model import suggestion

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,600}|[0-9]{1,40}")
_SYMBOLIC_KEYS = ("symbolic", "range", "in", "except", "default")
_MOST_CHOICES = 1024


class FieldError(Exception):
    """Something wrong at one place of a scenario: the keys that lead there, and a sentence."""

    def __init__(self, sentence: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.path = path

    def under(self, *keys: str | int) -> FieldError:
        """The same error, seen from further outside."""
        return FieldError(self.sentence, (*keys, *self.path))


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A field that is an input, perhaps within a domain."""

    default: int
    range: tuple[int, int] | None = None
    choices: tuple[int, ...] | None = None
    excluded: tuple[int, ...] = ()


def is_symbolic(value: object) -> bool:
    """Whether a value asks for a variable; its details may still be wrong."""
    return value == "symbolic" or (isinstance(value, dict) and any(key in value for key in _SYMBOLIC_KEYS[:-1]))


def field_value(field: Field, value: object) -> int | Symbolic:
    """A field's value: concrete or symbolic."""
    if value == "symbolic":
        return Symbolic(field.default)
    if isinstance(value, dict):
        return _symbolic(field, value)
    return number(field, value)


def _symbolic(field: Field, table: dict[str, object]) -> Symbolic:
    check_keys(table, _SYMBOLIC_KEYS)
    if not is_symbolic(table) or table.get("symbolic", True) is not True:
        raise FieldError(
            "a table here says {symbolic = true}, perhaps with range = [low, high], in = [...], except = [...] "
            "or default"
        )
    limits: tuple[int, int] | None = None
    if "range" in table:
        pair = table["range"]
        if not isinstance(pair, list) or len(pair) != 2:
            raise FieldError("range takes two values, [lowest, highest]", ("range",))
        low, high = (_inner(field, end, "range") for end in pair)
        if low > high:
            raise FieldError(f"the range from {low} to {high} is empty", ("range",))
        limits = (low, high)
    choices: tuple[int, ...] | None = None
    if "in" in table:
        choices = _values(field, table, "in")
    excluded = _values(field, table, "except") if "except" in table else ()

    def allowed(candidate: int) -> bool:
        inside = candidate not in excluded and (limits is None or limits[0] <= candidate <= limits[1])
        return inside and (choices is None or candidate in choices)

    if "default" in table:
        default = _inner(field, table["default"], "default")
        if not allowed(default):
            raise FieldError("the default is outside the domain", ("default",))
    else:
        # Beside the ends of a range, numbers from its lower end on: one more than can be excluded.
        low, high = limits or (0, (1 << field.bits) - 1)
        candidates = [field.default, *(choices or ()), low, high, *range(low, min(high, low + len(excluded)) + 1)]
        found = next((c for c in candidates if allowed(c)), None)
        if found is None:
            if choices is not None:
                raise FieldError("no value of in = [...] lies within the rest of the domain", ("in",))
            raise FieldError("except = [...] leaves no value", ("except",))
        default = found
    return Symbolic(default, limits, choices, excluded)


def _values(field: Field, table: dict[str, object], key: str) -> tuple[int, ...]:
    """The values that `in` or `except` lists."""
    options = table[key]
    if not isinstance(options, list) or not 0 < len(options) <= _MOST_CHOICES:
        raise FieldError(f"{key} takes a list of 1 to {_MOST_CHOICES} values", (key,))
    return tuple(sorted({_inner(field, option, key) for option in options}))


def _inner(field: Field, value: object, key: str) -> int:
    try:
        return number(field, value)
    except FieldError as error:
        raise error.under(key) from None


def number(field: Field, value: object) -> int:
    """A concrete value: a number, "0x..", a name of the specification, a list of flags, an address, hex bytes."""
    if isinstance(value, bool) or not isinstance(value, int | str | list):
        raise FieldError(f"{quoted(value)} is no value for this field; {_wanted(field)}")
    if isinstance(value, list):
        if field.names is None or not field.names.flags:
            raise FieldError(f"a list is no value for this field; {_wanted(field)}")
        result = 0
        for item in value:
            result |= number(field, item)
        return result
    result = value if isinstance(value, int) else _from_text(field, value)
    if not 0 <= result < 1 << field.bits:
        unit = "1 bit" if field.bits == 1 else f"{field.bits} bits"
        raise FieldError(f"{quoted(value)} does not fit in {unit}, 0 to {hex((1 << field.bits) - 1)}")
    return result


def _from_text(field: Field, text: str) -> int:
    if field.names is not None:
        named = field.names.value(text)
        if named is not None:
            return named
        if field.names.flags and re.fullmatch(r"\w+(\+\w+)+", text):
            return number(field, text.split("+"))
    if field.kind == "mac" and _MAC.fullmatch(text):
        return int(text.replace(":", ""), 16)
    if field.kind == "ipv4" and re.fullmatch(r"[0-9.]+", text) and "." in text:
        try:
            return int(ipaddress.IPv4Address(text))
        except ValueError:
            raise FieldError(f"{text!r} is no IPv4 address") from None
    if field.kind == "bytes":
        data = hex_bytes(text)
        if len(data) * 8 != field.bits:
            raise FieldError(f"{len(data)} bytes given where {field.bits // 8} are needed")
        return int.from_bytes(data, "big")
    if _NUMBER.fullmatch(text):
        return int(text, 0) if text.startswith("0x") else int(text)
    near = suggestion(text, field.names.values) if field.names is not None else f"; {_wanted(field)}"
    raise FieldError(f"{quoted(text)} is no value for this field{near}")


def hex_bytes(text: str) -> bytes:
    """Bytes written in hexadecimal, with or without spaces, colons and a leading 0x."""
    bare = re.sub(r"[\s:]", "", text).removeprefix("0x")
    try:
        return bytes.fromhex(bare)
    except ValueError:
        raise FieldError(f"{quoted(text)} is not a sequence of bytes in hexadecimal") from None


def check_keys(table: dict[str, object], known: tuple[str, ...] | list[str]) -> None:
    for key in table:
        if key not in known:
            raise FieldError(f"there is no {quoted(key)} here{suggestion(key, known)}", (key,))


def quoted(value: object) -> str:
    """A value for an error's sentence, however long it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print very long ones
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wanted(field: Field) -> str:
    kinds = {
        "int": "it takes a number",
        "decimal": "it takes a number",
        "mac": "it takes an address such as 02:00:00:00:0a:01",
        "ipv4": "it takes an address such as 10.0.0.1",
        "bytes": "it takes bytes in hexadecimal",
    }
    names = " or a name" if field.names is not None else ""
    return f'{kinds[field.kind]}{names}, or "symbolic"'
