"""How long formatted text can be: bounds for all inputs, from the format and what is printed by it.

Only conversions whose argument depends on the input vary: "%u" of a symbolic byte has one to three digits, "%02x" two.
Whatever else was printed has the length that it has in this run.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value, concrete, low_bits
from harness.texts import MOST_LENGTH, Length, Texts

_INTEGERS = tuple(REGISTERS[name] for name in ("rdi", "rsi", "rdx", "rcx", "r8", "r9"))
_RSP = REGISTERS["rsp"]
# Where a va_list has its state, and where the part of it that came in registers ends.
_REGISTER_PART = 48
_DIRECTIVE = re.compile(
    rb"%(?P<flags>[-+ #0']*)(?P<width>\*|\d*)(\.(?P<precision>\*|\d*))?"
    rb"(?P<size>hh|h|ll|l|q|j|z|t|L)?(?P<kind>.)",
    re.DOTALL,
)
_BITS = {b"hh": 8, b"h": 16, None: 32}
_BASES = {b"d": 10, b"i": 10, b"u": 10, b"x": 16, b"X": 16, b"o": 8}
_FLOATS = b"aAeEfFgG"


class _Unclear(Exception):
    """Nothing can be said about a conversion."""


def varying(machine: Machine, texts: Texts, place: int, is_list: bool) -> list[Length] | None:
    """The lengths of all conversions that depend on the input, before they are printed; None if that is unclear.

    `place` is the number of the argument that is the format; behind it stand the arguments, or a list of them.
    """
    try:
        given = _from_list(machine, place + 1) if is_list else _from_call(machine, place + 1)
        return _varying(machine, texts, _format(machine, _argument(machine, place)), given)
    except _Unclear:
        return None


def total(parts: list[Length] | None, length: int) -> Length:
    """The length of a text with these parts, which is `length` in this run: what does not vary is as it is here."""
    fixed = length - sum(part.here for part in parts) if parts is not None else -1
    if parts is None or fixed < 0:
        return Length(length, 0, MOST_LENGTH)
    least, most = (fixed + sum(sizes) for sizes in ([p.least for p in parts], [p.most for p in parts]))
    return Length(length, least, min(most, MOST_LENGTH))


def _format(machine: Machine, pointer: Value) -> bytes:
    if isinstance(pointer, Sym):
        raise _Unclear
    content = bytearray()
    while True:
        byte = machine.memory.load1(pointer + len(content))
        if isinstance(byte, Sym):
            raise _Unclear
        if not byte:
            return bytes(content)
        content.append(byte)


def _varying(machine: Machine, texts: Texts, text: bytes, given: Callable[[], Value]) -> list[Length]:
    found = []
    for directive in _DIRECTIVE.finditer(text):
        kind, size = directive["kind"], directive["size"]
        if kind == b"%" or kind == b"m":
            continue
        width = abs(_number(directive["width"], given) or 0)
        precision = _number(directive["precision"], given)
        if precision is not None and precision < 0:
            precision = None
        if kind in _FLOATS and size != b"L":
            continue  # in registers of their own; such numbers of the input end the path elsewhere
        if kind in _BASES:
            value = low_bits(given(), 0, _BITS.get(size, 64))
            if isinstance(value, Sym):
                found.append(_integer(machine, value, directive, width, 1 if precision is None else precision))
        elif kind == b"c" and size is None:
            given()
        elif kind == b"p":
            if isinstance(given(), Sym):
                raise _Unclear
        elif kind == b"s" and size is None:
            pointer = given()
            if isinstance(pointer, Sym):
                raise _Unclear
            if pointer:
                found.append(_string(texts.length(pointer, precision), width))
        else:
            raise _Unclear
    return found


def _number(text: bytes | None, given: Callable[[], Value]) -> int | None:
    """A width or a precision. One that is given and negative is a width to the left, or no precision."""
    if text is None:
        return None
    if text != b"*":
        return int(text or b"0")
    value = low_bits(given(), 0, 32)
    if isinstance(value, Sym):
        raise _Unclear
    return value - (1 << 32) if value >> 31 else value


def _integer(machine: Machine, value: Sym, directive: re.Match[bytes], width: int, precision: int) -> Length:
    flags, kind = directive["flags"], directive["kind"]
    if b"'" in flags or (b"#" in flags and kind == b"o"):
        raise _Unclear
    assert machine.decisions is not None
    signed, half, wraps = kind in b"di", 1 << value.term.width - 1, 1 << value.term.width
    plus = int(signed and (b"+" in flags or b" " in flags))

    def length(number: int) -> int:
        before = plus
        if signed and number >= half:
            number, before = wraps - number, 1
        elif number and b"#" in flags and kind in b"xX":
            before = 2
        return max(width, max(_digits(number, _BASES[kind]), precision) + before)

    least, most = machine.decisions.bounds(value)
    ends = [least, half - 1, half, most] if signed and least < half <= most else [least, most]
    lengths = [length(end) for end in ends]
    return Length(length(value.value), min(lengths), max(lengths))


def _digits(number: int, base: int) -> int:
    count = 0
    while number:
        number //= base
        count += 1
    return count


def _string(length: Length, width: int) -> Length:
    return Length(max(width, length.here), max(width, length.least), max(width, length.most))


def _argument(machine: Machine, number: int) -> Value:
    if number < len(_INTEGERS):
        return machine.registers[_INTEGERS[number]]
    stack = concrete(machine.registers[_RSP])
    return machine.memory.load8(stack + 8 + 8 * (number - len(_INTEGERS)))


def _from_call(machine: Machine, first: int) -> Callable[[], Value]:
    """The arguments of a call, one after the other."""
    number = first

    def following() -> Value:
        nonlocal number
        number += 1
        return _argument(machine, number - 1)

    return following


def _from_list(machine: Machine, number: int) -> Callable[[], Value]:
    """The arguments of a va_list."""
    place, memory = _argument(machine, number), machine.memory
    if isinstance(place, Sym):
        raise _Unclear
    offset = concrete(memory.load4(place))
    overflow, saved = (concrete(memory.load8(place + at)) for at in (8, 16))

    def following() -> Value:
        nonlocal offset, overflow
        if offset < _REGISTER_PART:
            offset += 8
            return memory.load8(saved + offset - 8)
        overflow += 8
        return memory.load8(overflow - 8)

    return following
