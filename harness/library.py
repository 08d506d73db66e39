"""Functions that run as ours in place of the agent's code: the vDSO's clocks, and libc's functions over bytes.

The vDSO reads the clock from a page that cannot be frozen. The others are only faster this way, and keep terms whole:
a memcpy of symbolic bytes is the same terms at another place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.frozen import Snapshot
from harness.kernel import times
from harness.machine.compiler import REGISTERS
from harness.machine.ends import Unsupported
from harness.machine.machine import Machine
from harness.machine.values import Value
from harness.symbols import imported_functions, vdso_functions

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

RDI, RSI, RDX = (REGISTERS[name] for name in ("rdi", "rsi", "rdx"))
_MASK64 = (1 << 64) - 1


def install(machine: Machine, snapshot: Snapshot, kernel: Callable[[], Kernel]) -> None:
    """Hook everything that this process has."""
    for name, address in vdso_functions(snapshot).items():
        machine.hook(address, _vdso(name, machine, kernel))
    functions = {
        "memcpy": _memmove,
        "memmove": _memmove,
        "__memcpy_chk": _memmove,
        "__memmove_chk": _memmove,
        "memset": _memset,
        "__memset_chk": _memset,
    }
    for address, name in imported_functions(snapshot, frozenset(functions)).items():
        machine.hook(address, functions[name](machine))


def _vdso(name: str, machine: Machine, kernel: Callable[[], Kernel]) -> Callable[[], Value]:
    registers, pin = machine.registers, machine.pin

    def clock_gettime() -> Value:
        return times.clock_gettime(kernel(), pin(registers[RDI]), pin(registers[RSI]))

    def gettimeofday() -> Value:
        return times.gettimeofday(kernel(), pin(registers[RDI]), pin(registers[RSI]))

    def time() -> Value:
        return times.time(kernel(), pin(registers[RDI]))

    def clock_getres() -> Value:
        return times.clock_getres(kernel(), pin(registers[RDI]), pin(registers[RSI]))

    def other() -> Value:
        raise Unsupported(f"the vDSO's {name}")

    known = {"clock_gettime": clock_gettime, "gettimeofday": gettimeofday, "time": time, "clock_getres": clock_getres}
    return known.get(name, other)


def _memmove(machine: Machine) -> Callable[[], Value]:
    registers, pin, memory = machine.registers, machine.pin, machine.memory

    def memmove() -> Value:
        target, source, size = pin(registers[RDI]), pin(registers[RSI]), pin(registers[RDX])
        if size:
            memory.copy(target, source, size)
        return target

    return memmove


def _memset(machine: Machine) -> Callable[[], Value]:
    registers, pin, memory = machine.registers, machine.pin, machine.memory

    def memset() -> Value:
        target, size, value = pin(registers[RDI]), pin(registers[RDX]), registers[RSI]
        if isinstance(value, int):
            if size:
                memory.write(target, bytes([value & 0xFF]) * size)
        else:
            for offset in range(size):
                memory.store1(target + offset, _low_byte(value))
        return target

    return memset


def _low_byte(value: Value) -> Value:
    from harness.machine.values import low_bits

    return low_bits(value, 0, 8)
