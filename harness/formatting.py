"""Formatted text, as log lines have it: printf and its kin run with the values of this run, and record no condition.

Printing a symbolic number would take a path for each number of digits, and mostly for a log that nobody sees. What such
a call prints then holds for this input only, and so does whatever else it computes. The bytes of its text, as far as it
may reach, and its length are therefore marked by variables that no scenario has: should one of them reach the
controller or a port, or decide anything, the path says `approximate`. The length is known as far as the format tells
it (harness.lengths). A call in which nothing depended on the input is exact and leaves no mark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.frozen import Snapshot
from harness.kernel import descriptions as d
from harness.lengths import total, varying
from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value, concrete, term_of
from harness.marks import APPROXIMATE, between, blur, is_within, places, span
from harness.symbols import imported_functions
from harness.texts import Length, Texts
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

RDI, RSI = (REGISTERS[name] for name in ("rdi", "rsi"))
_TO_BUFFER = ("sprintf", "vsprintf", "snprintf", "vsnprintf")
_TO_POINTER = ("asprintf", "vasprintf")
_TO_FILE = ("fprintf", "vfprintf", "fputs")
_ELSEWHERE = ("printf", "vprintf", "dprintf", "vdprintf", "syslog", "vsyslog", "perror", "puts")
# The number of the argument that is the format.
_FORMATS = {"sprintf": 1, "snprintf": 2, "asprintf": 1, "fprintf": 1, "printf": 0, "dprintf": 1, "syslog": 1}
_ALL = (*_TO_BUFFER, *_TO_POINTER, *_TO_FILE, *_ELSEWHERE)
# The place of a FILE's buffer in glibc: where it was written from and to.
_WRITE_BASE, _WRITE_END = 0x20, 0x28
# Calls of the kernel that bring bytes out: write, writev, sendto, sendmsg.
_OUTPUT_CALLS = frozenset({1, 20, 44, 46})
# A text that may be longer than this has no end that we know.
_MOST_TEXT = 1 << 14


class Mute:
    """Decides as the values of this run say, and keeps nothing but that it had to."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.asked = False

    def branch(self, condition: Term, holds: bool) -> None:
        self.asked = True

    def settled(self, condition: Term, holds: bool) -> bool:
        self.asked = True
        return True

    def pin(self, value: Sym) -> int:
        self.asked = True
        return value.value

    def read(self, address: Sym, size: int) -> Value:
        self.asked = True
        return self._machine.memory.load(address.value, size)

    def most(self, value: Sym) -> int | None:
        self.asked = True
        return None

    def simplify(self, value: Value, given: Term) -> Value:
        return value

    def bounds(self, value: Sym) -> tuple[int, int]:
        self.asked = True
        return span(value.term)

    def place(self, address: Sym, size: int) -> int:
        return self.pin(address)

    def stored(self, address: Sym, size: int) -> None:
        """Where the text goes is known to who called."""


def install(machine: Machine, snapshot: Snapshot, kernel: Callable[[], Kernel], texts: Texts) -> None:
    """Hook what this process has of these functions, the checked forms of them included."""
    plain = {f"__{name}_chk": name for name in _ALL} | {name: name for name in _ALL}
    for address, name in imported_functions(snapshot, frozenset(plain)).items():
        function = _Function(plain[name], is_checked=name.endswith("_chk"))
        machine.hook(address, _formatted(machine, address, function, kernel, texts))


@dataclass(frozen=True, slots=True)
class _Function:
    """One of them: its name, and whether it is the form that knows how large the buffer is."""

    name: str
    is_checked: bool

    @property
    def format_place(self) -> int | None:
        """The number of the argument that is the format."""
        base = self.name.removeprefix("v")
        if base not in _FORMATS:
            return None
        # The checked forms have a flag before the format, and those into a buffer its size too.
        return _FORMATS[base] + ((2 if self.name in _TO_BUFFER else 1) if self.is_checked else 0)


def _formatted(
    machine: Machine, address: int, function: _Function, kernel: Callable[[], Kernel], texts: Texts
) -> Callable[[], Value]:
    registers, memory, name = machine.registers, machine.memory, function.name

    def call() -> Value:
        # What is printed is printed at this time, and not at that of all ticks like this one.
        kernel().idle.stop()
        before, mute = machine.decisions, Mute(machine)
        target, size = registers[RSI if name == "fputs" else RDI], registers[RSI]
        place = function.format_place
        parts = varying(machine, texts, place, name.startswith("v")) if place is not None else None

        def special(place: int, kind: str) -> int:
            number = concrete(registers[REGISTERS["rax"]])
            description = kernel().table.get(concrete(registers[RDI]))
            if number in _OUTPUT_CALLS and mute.asked and isinstance(description, d.Stream | d.Frames):
                kernel().marks[APPROXIMATE] = None
            return kernel().special(place, kind)

        machine.decisions, symbols = mute, dict(memory.symbols)
        try:
            result = concrete(machine.call(address, special))
        finally:
            machine.decisions = before
        written = [place for place, symbol in memory.symbols.items() if symbols.get(place) != symbol]
        for place in written:
            memory.write(place, memory.read(place, 1))
        if not (written or mute.asked):
            return result
        kernel().is_general = False
        if name in _TO_FILE:
            base, end = (concrete(memory.load8(concrete(target) + at)) for at in (_WRITE_BASE, _WRITE_END))
            blur(memory, range(base, end))
        if name == "fputs":
            return result  # says only that it went well
        if result >> 31 & 1:
            kernel().marks[APPROXIMATE] = None  # an error, which another input may not have
            return result
        length = total(parts, result & 0xFFFFFFFF)
        if name in _TO_POINTER:
            start = concrete(memory.load8(concrete(target)))
            texts.mark(start, length, start + (concrete(memory.load8(start - 8)) & ~7) - 8)
        elif name in _TO_BUFFER and concrete(target):
            room = span(term_of(size, 64))[1] if name.endswith("snprintf") else _MOST_TEXT
            if not _mark_buffer(machine, texts, target, length, room):
                kernel().marks[APPROXIMATE] = None
        return between(length.here, length.least, length.most)

    return call


def _mark_buffer(machine: Machine, texts: Texts, target: Value, length: Length, room: int) -> bool:
    """Mark the text that a call has left behind in a buffer; False if nobody can tell how far it may reach."""
    if not room:
        return True
    memory = machine.memory
    stored = Length(*(min(size, room - 1) for size in (length.here, length.least, length.most)))
    where = places(term_of(target, 64), stored.most + 1)
    if stored.most >= _MOST_TEXT or where is None or not is_within(memory, where, "w"):
        blur(memory, range(concrete(target), concrete(target) + stored.here))
        return False
    if isinstance(target, int):
        texts.mark(target, stored, where.stop)
    else:
        blur(memory, where)
    return True
