"""Blocks of real binaries and random states to run them from: what the tests of the machine share."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from harness.machine.compiler import ARCH, REGISTER_SLOTS, REGISTERS, lift
from harness.machine.ends import Fault, Trap, Unsupported
from harness.machine.machine import Machine
from harness.machine.memory import PAGE
from harness.machine.values import Sym, Value, concrete
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

LIBRARIES = Path("/lib/x86_64-linux-gnu")
BINARIES = (Path("/usr/sbin/ovs-vswitchd"), *(LIBRARIES / n for n in ("libc.so.6", "libssl.so.3", "libcrypto.so.3")))
CODE = 0x400000
_GENERAL = [REGISTERS["rax"] + i for i in range(16)]
_FLAGS = [REGISTERS[n] for n in ("cc_op", "cc_dep1", "cc_dep2", "cc_ndep")]
_VECTORS = [REGISTERS["ymm0"] + i for i in range(64)]
_IP = REGISTERS["rip"]
# Values at which arithmetic turns.
EDGES = [0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
EDGES += [0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF80, 0xFFFFFFFF80000000]


@cache
def text(path: Path) -> tuple[int, bytes, tuple[int, ...]]:
    """The address and the bytes of .text, and where its functions start (from the unwind table, which stays when
    symbols are stripped)."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        section, header = elf.get_section_by_name(".text"), elf.get_section_by_name(".eh_frame_hdr")
        base, data, table, where = section["sh_addr"], section.data(), header.data(), header["sh_addr"]
    assert table[:4] == b"\x01\x1b\x03\x3b"  # the table's entries are pairs of 32-bit offsets from its own address
    (count,) = struct.unpack_from("<I", table, 8)
    starts = [where + struct.unpack_from("<i", table, 12 + 8 * i)[0] for i in range(count)]
    return base, data, tuple(s for s in starts if base <= s < base + len(data))


def blocks(seed: int, count: int, binaries: Sequence[Path] = BINARIES) -> Iterator[tuple[Path, int, bytes]]:
    """Random blocks of real functions: (binary, address, bytes)."""
    chance = random.Random(seed)
    while count:
        path = chance.choice(binaries)
        base, data, starts = text(path)
        address = chance.choice(starts)
        for _ in range(chance.randrange(8)):
            block = lift(data[address - base : address - base + 416], address)
            address += block.size if block is not None else 1
        code = data[address - base : address - base + 416]
        if len(code) > 16:
            count -= 1
            yield path, address, code


@dataclass
class Start:
    """A random state: registers, and a memory in which every page is there and holds random bytes."""

    seed: int
    registers: list[int] = field(default_factory=list)
    pages: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.registers = [0] * REGISTER_SLOTS
        for slot in _GENERAL + _VECTORS:
            pointer = chance.randrange(0x10000, 0x7FFF00000000) & ~0xF
            self.registers[slot] = chance.choice([pointer, pointer, chance.choice(EDGES), chance.getrandbits(64)])
        self.registers[REGISTERS["rsp"]] = 0x7FFE00001000 + 8 * chance.randrange(512)
        cc_op, dep1, dep2, ndep = _FLAGS
        self.registers[cc_op] = chance.randrange(53)
        for slot in (dep1, dep2):
            self.registers[slot] = chance.choice([chance.choice(EDGES), chance.getrandbits(64)])
        if chance.random() < 0.5:
            self.registers[dep2] = self.registers[dep1]
        self.registers[ndep] = chance.getrandbits(64)
        self.registers[REGISTERS["d"]] = 1
        self.registers[REGISTERS["fs"]] = 0x7F0000000000

    def page(self, number: int) -> bytes:
        if number not in self.pages:
            chance = random.Random(self.seed << 64 | number)
            # With many zeros and small numbers, more of the code's comparisons come out either way.
            rare = bytes(b if b & 3 == 3 else b >> 2 & 1 for b in range(256))
            self.pages[number] = chance.randbytes(PAGE).translate(rare)
        return self.pages[number]

    def source(self, code: bytes, address: int) -> Callable[[int], tuple[bytes, str] | None]:
        def page(number: int) -> tuple[bytes, str] | None:
            start = number * PAGE
            if start >> 64:
                return None
            if address < start + PAGE and start < address + len(code):
                whole = bytearray(PAGE)
                low, high = max(start, address), min(start + PAGE, address + len(code))
                whole[low - start : high - start] = code[low - address : high - address]
                return bytes(whole), "r-x"
            return self.page(number), "rw-"

        return page


class Recorder:
    """Decides as the concrete values say, and checks that they agree with the terms."""

    def __init__(self, machine: Machine, values: dict[str, int]) -> None:
        self.machine = machine
        self.values = values
        self.conditions: list[Term] = []

    def branch(self, condition: Term, holds: bool) -> None:
        assert bool(evaluate(condition, self.values)) == holds
        self.conditions.append(condition if holds else t.negate(condition))

    def pin(self, value: Sym) -> int:
        assert evaluate(value.term, self.values) == value.value
        self.conditions.append(t.eq(value.term, t.const(value.value, value.term.width)))
        return value.value

    def read(self, address: Sym, size: int) -> Value:
        return self.machine.memory.load(self.pin(address), size)

    def most(self, value: Sym) -> int | None:
        return None

    def simplify(self, value: Value, given: Term) -> Value:
        return value

    def settled(self, condition: Term, holds: bool) -> bool:
        return False

    def bounds(self, value: Sym) -> tuple[int, int]:
        return 0, value.term.most

    def place(self, address: Sym, size: int) -> int:
        return self.pin(address)

    def stored(self, address: Sym, size: int) -> None: ...


@dataclass
class End:
    """After one block: where to go on (address and kind, or the signal), registers and the memory that changed."""

    next: object
    registers: list[Value]
    memory: dict[int, Value]
    pages: set[int]

    def concrete(self) -> tuple[object, list[int], dict[int, int]]:
        registers = [concrete(r) for r in self.registers]
        registers[_IP] = 0
        return self.next, registers, {a: concrete(v) for a, v in self.memory.items()}


def execute(
    code: bytes, address: int, start: Start, symbolic: float = 0.0, memory_too: bool = True
) -> tuple[End, dict[str, int], list[Term]]:
    """Run one block, with about that part of the registers, and of the memory, symbolic.

    Gives the end, the values of the variables and the conditions that were recorded. Raises Unsupported.
    """
    machine = Machine(start.source(code, address))
    values: dict[str, int] = {}
    registers: list[Value] = list(start.registers)
    chance = random.Random(start.seed + 1)
    for slot in _GENERAL + _VECTORS + _FLAGS[1:]:
        if chance.random() < symbolic:
            registers[slot] = _variable(f"r{slot}", 64, start.registers[slot], values)
    machine.reset(registers)
    recorder = Recorder(machine, values)
    machine.decisions = recorder
    if symbolic and memory_too:
        _make_memory_symbolic(machine, code, address, start, symbolic, values)
    touched = set(machine.memory.written)
    following: object
    try:
        result = machine.step(address)
        following = result if not isinstance(result, Sym) else recorder.pin(result)
        if isinstance(result, tuple) and isinstance(result[0], Sym):
            following = (recorder.pin(result[0]), result[1])
    except Trap as trap:
        following = trap.signal
    except Fault:
        following = "SIGSEGV"
    memory = machine.memory
    changed: dict[int, Value] = {}
    for page in sorted(set(memory.written) | touched):
        now = memory.read_values(page * PAGE, PAGE)
        before = start.page(page)
        changed.update(
            {page * PAGE + i: v for i, v in enumerate(now) if concrete(v) != before[i]}
        )
    return End(following, list(machine.registers), changed, set(start.pages)), values, recorder.conditions


def _variable(name: str, width: int, value: int, values: dict[str, int]) -> Value:
    values[name] = value
    return Sym(t.var(name, width), value)


def _make_memory_symbolic(
    machine: Machine, code: bytes, address: int, start: Start, part: float, values: dict[str, int]
) -> None:
    """Make bytes symbolic in the pages that the block touches when everything is concrete."""
    probe = Start(start.seed)
    try:
        execute(code, address, probe)
    except Unsupported:
        return
    chance = random.Random(start.seed + 2)
    for page in sorted(probe.pages):
        for offset in range(0, PAGE, 4):
            if chance.random() < part:
                where, size = page * PAGE + offset, chance.choice((1, 2, 4))
                value = int.from_bytes(start.page(page)[offset : offset + size], "little")
                machine.memory.store(where, _variable(f"m{where:x}", 8 * size, value, values), size)


def assert_consistent(end: End, values: dict[str, int], conditions: list[Term]) -> None:
    """Every term is worth what its pair says, under the values that the run had."""
    memo: dict[Term, int] = {}
    for slot, value in enumerate(end.registers):
        if isinstance(value, Sym):
            assert value.term.width == 64, slot
            assert evaluate(value.term, values, memo) == value.value, f"register {slot}: {value}"
    for where, value in end.memory.items():
        if isinstance(value, Sym):
            assert evaluate(value.term, values, memo) == value.value, f"memory {where:#x}: {value}"
    for condition in conditions:
        assert evaluate(condition, values, memo) == 1, condition


__all__ = ["ARCH", "BINARIES", "CODE", "EDGES", "End", "Start", "assert_consistent", "blocks", "execute", "text"]
