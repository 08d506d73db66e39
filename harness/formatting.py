"""Formatted text, as log lines have it: printf and its kin run with the values of this run, and record no condition.

Printing a symbolic number would take a path for each number of digits, and mostly for a log that nobody sees. What such
a call prints then holds for this input only, and so does whatever else it computes. The bytes of its text are therefore
marked by variables that no scenario has: should one of them reach the controller or a port, or decide anything, the
path says `approximate`. A call in which nothing depended on the input is exact and leaves no mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.frozen import Snapshot
from harness.kernel import descriptions as d
from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value, concrete
from harness.marks import APPROXIMATE, mark_variables
from harness.symbols import imported_functions
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

RDI, RSI = (REGISTERS[name] for name in ("rdi", "rsi"))
_TO_BUFFER = ("sprintf", "vsprintf", "snprintf", "vsnprintf")
_TO_POINTER = ("asprintf", "vasprintf")
_TO_FILE = ("fprintf", "vfprintf", "fputs")
_ELSEWHERE = ("printf", "vprintf", "dprintf", "vdprintf", "syslog", "vsyslog", "perror", "puts")
_ALL = (*_TO_BUFFER, *_TO_POINTER, *_TO_FILE, *_ELSEWHERE)
# The place of a FILE's buffer in glibc: where it was written from and to.
_WRITE_BASE, _WRITE_END = 0x20, 0x28
# Calls of the kernel that bring bytes out: write, writev, sendto, sendmsg.
_OUTPUT_CALLS = frozenset({1, 20, 44, 46})


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


def install(machine: Machine, snapshot: Snapshot, kernel: Callable[[], Kernel]) -> None:
    """Hook what this process has of these functions, the checked forms of them included."""
    plain = {f"__{name}_chk": name for name in _ALL} | {name: name for name in _ALL}
    for address, name in imported_functions(snapshot, frozenset(plain)).items():
        machine.hook(address, _formatted(machine, address, plain[name], kernel))


def _formatted(machine: Machine, address: int, name: str, kernel: Callable[[], Kernel]) -> Callable[[], Value]:
    registers, memory = machine.registers, machine.memory
    variables = mark_variables()

    def call() -> Value:
        # What is printed is printed at this time, and not at that of all ticks like this one.
        kernel().idle.stop()
        before, mute = machine.decisions, Mute(machine)
        target = concrete(registers[RSI if name == "fputs" else RDI])

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
        if written or mute.asked:
            for place in _text(machine, name, target, result):
                (byte,) = memory.read(place, 1)
                memory.store1(place, Sym(next(variables), byte))
        return result

    return call


def _text(machine: Machine, name: str, target: int, result: int) -> range:
    """The text that a call has left behind."""
    memory = machine.memory
    length = result & 0xFFFFFFFF
    if name in _TO_FILE:
        base, end = (concrete(memory.load8(target + at)) for at in (_WRITE_BASE, _WRITE_END))
        return range(base, end)
    if length & 1 << 31 or name in _ELSEWHERE or not target:
        return range(0)  # nothing, or only its length was asked for
    if name in _TO_POINTER:
        target = concrete(memory.load8(target))
    # A buffer that is too small for all ends with a zero before.
    end = target
    while end < target + length and memory.read(end, 1) != b"\0":
        end += 1
    return range(target, end)
