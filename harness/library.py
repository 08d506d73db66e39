"""Functions that run as ours in place of the agent's code: the vDSO's clocks, and libc's functions over bytes.

The vDSO reads the clock from a page that cannot be frozen. The others are only faster this way, and keep terms whole:
a memcpy of symbolic bytes is the same terms at another place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness import formatting, locks
from harness.frozen import Snapshot
from harness.kernel import times
from harness.kernel.files import MOST_SYMBOLIC
from harness.machine.compiler import REGISTERS
from harness.machine.ends import Unsupported
from harness.machine.machine import Machine
from harness.machine.memory import Memory
from harness.machine.values import Sym, Value, concrete, low_bits, make, term_of
from harness.marks import UNSTABLE, between, is_within
from harness.symbols import imported_functions, vdso_functions
from harness.texts import Texts
from soft.solve import terms as t

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

# An allocation of symbolic size is as large as it can be, if that is not more than this: a message has up to 64 kB.
_MOST_ALLOCATED = 1 << 17

# A size from here on is a negative one: a difference that went wrong. Added to an address it leads to one below, so
# that libc's functions over bytes, which begin at both ends, may end without having met a page that is not there. Where
# they end is another matter for each processor. So the frozen process's own code runs, and the path is unstable.
_NEGATIVE = (1 << 64) - (1 << 47)
_PIECE = 1 << 16

RDI, RSI, RDX, RCX = (REGISTERS[name] for name in ("rdi", "rsi", "rdx", "rcx"))


def install(machine: Machine, snapshot: Snapshot, kernel: Callable[[], Kernel]) -> None:
    """Hook everything that this process has."""
    for name, address in vdso_functions(snapshot).items():
        machine.hook(address, _vdso(name, machine, kernel))
    texts = Texts(machine.memory)
    functions: dict[str, Callable[[], Value | None]] = {
        "memcpy": _memmove(machine, kernel),
        "memmove": _memmove(machine, kernel),
        "__memcpy_chk": _checked(machine, _memmove(machine, kernel)),
        "__memmove_chk": _checked(machine, _memmove(machine, kernel)),
        "memset": _memset(machine, kernel),
        "__memset_chk": _checked(machine, _memset(machine, kernel)),
        "strlen": _strlen(machine, texts),
    }
    formatting.install(machine, snapshot, kernel, texts)
    locks.install(machine, snapshot)
    sizes = {"malloc": (RDI,), "realloc": (RSI,), "calloc": (RDI, RSI)}
    for address, name in imported_functions(snapshot, frozenset({*functions, *sizes})).items():
        if name in functions:
            machine.shortcut(address, functions[name])
        else:
            machine.before(address, _allocate_most(machine, *sizes[name]))


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


def _memmove(machine: Machine, kernel: Callable[[], Kernel]) -> Callable[[], Value | None]:
    registers, pin, memory = machine.registers, machine.pin, machine.memory

    def memmove() -> Value | None:
        target, source, size = pin(registers[RDI]), pin(registers[RSI]), registers[RDX]
        if isinstance(size, Sym):
            most = _most(machine, size)
            if most is not None:
                _copy_some(machine, target, source, size, most)
                return target
            size = registers[RDX] = pin(size)
        if size >= _NEGATIVE:
            kernel().marks[UNSTABLE] = None
            return None
        if size:
            memory.copy(target, source, size)
        return target

    return memmove


def _checked(machine: Machine, function: Callable[[], Value | None]) -> Callable[[], Value | None]:
    """The form that knows how much room there is, and ends the agent if that is not enough."""
    registers = machine.registers

    def checked() -> Value | None:
        size, room = registers[RDX], registers[RCX]
        fits = concrete(size) <= concrete(room)
        if isinstance(size, Sym) or isinstance(room, Sym):
            assert machine.decisions is not None
            machine.decisions.branch(t.ule(term_of(size, 64), term_of(room, 64)), fits)
        return function() if fits else None

    return checked


def _most(machine: Machine, size: Sym) -> int | None:
    """The largest value of a symbolic size, if so many bytes may be handled one by one."""
    assert machine.decisions is not None
    most = machine.decisions.most(size)
    return most if most is not None and most <= MOST_SYMBOLIC else None


def _copy_some(machine: Machine, target: int, source: int, size: Sym, most: int) -> None:
    """memmove of a symbolic number of bytes: every byte that may be copied is a choice between new and old.

    Bytes behind what is copied in this run need not be mapped, in the run as in a real memmove: where they are not,
    the size is pinned, and other sizes are other paths.
    """
    memory, decisions = machine.memory, machine.decisions
    assert decisions is not None
    sources, targets = range(source, source + most), range(target, target + most)
    if not (is_within(memory, sources, "r") and is_within(memory, targets, "w")):
        memory.copy(target, source, machine.pin(size))
        return
    new, old = memory.read_values(source, most), memory.read_values(target, most)
    result: list[Value] = []
    for index, (fresh, stale) in enumerate(zip(new, old, strict=True)):
        within = t.ult(t.const(index, size.term.width), size.term)
        fresh = decisions.simplify(fresh, within)
        value = concrete(fresh if index < size.value else stale)
        result.append(make(t.ite(within, term_of(fresh, 8), term_of(stale, 8)), value))
    memory.write_values(target, result)


def _allocate_most(machine: Machine, *slots: int) -> Callable[[], None]:
    """Before an allocation of symbolic size: ask for the largest, so that the allocator needs no path for each size."""
    registers = machine.registers

    def ask_for_most() -> None:
        for slot in slots:
            size = registers[slot]
            if isinstance(size, Sym):
                most = machine.decisions.most(size) if machine.decisions is not None else None
                registers[slot] = machine.pin(size) if most is None or most > _MOST_ALLOCATED else most

    return ask_for_most


def _memset(machine: Machine, kernel: Callable[[], Kernel]) -> Callable[[], Value | None]:
    registers, pin, memory = machine.registers, machine.pin, machine.memory

    def memset() -> Value | None:
        target, size, value = pin(registers[RDI]), pin(registers[RDX]), registers[RSI]
        if size >= _NEGATIVE:
            registers[RDX] = size
            kernel().marks[UNSTABLE] = None
            return None
        if isinstance(value, int):
            _fill(memory, target, value & 0xFF, size)
        else:
            for offset in range(size):
                memory.store1(target + offset, low_bits(value, 0, 8))
        return target

    return memset


def _fill(memory: Memory, target: int, byte: int, size: int) -> None:
    """Piece by piece: a size may be larger than any memory, and ends where nothing is mapped."""
    while size:
        piece = min(size, _PIECE)
        memory.write(target, bytes([byte]) * piece)
        target, size = target + piece, size - piece


def _strlen(machine: Machine, texts: Texts) -> Callable[[], Value | None]:
    """Where a byte is an input, whether it is the last one is decided. Printed text may be longer for another input."""
    registers, pin = machine.registers, machine.pin

    def strlen() -> Value | None:
        decide = machine.decisions.branch if machine.decisions is not None else None
        length = texts.length(pin(registers[RDI]), decide=decide)
        return between(length.here, length.least, length.most)

    return strlen
