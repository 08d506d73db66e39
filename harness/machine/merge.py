"""Short branches without a path for each side: `if (bits & 1) mask = 0xffff;` becomes one if-then-else.

Where a branch depends on the input and its sides are a few instructions that come together again at once, both are
tried on copies of the registers, and what they leave behind is merged. A side must not do anything but compute, load
and store at known addresses: whatever would need a decision of its own, could fault, or calls something, is refused,
and the branch is decided as any other. So is a branch that chooses between pointers: everything behind it would be
accesses through symbolic addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.machine.cache import Cache
from harness.machine.compiler import REGISTER_SLOTS, Block, Compiler, lift
from harness.machine.ends import Fault, Trap, Unsupported
from harness.machine.memory import Memory
from harness.machine.values import Sym, Value, concrete, low_bits, make, term_of
from soft.solve import terms as t
from soft.solve.terms import Term

# A side of more instructions or bytes than this is worth a path of its own.
_MOST_INSTRUCTIONS = 8
_MOST_BYTES = 64
_SIMPLE = frozenset({"Ist_IMark", "Ist_AbiHint", "Ist_NoOp", "Ist_WrTmp", "Ist_Put", "Ist_Store"})


class _Refused(Exception):
    """This branch has to be decided."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """The two sides of a branch, None for one that does nothing, and where they come together."""

    taken: Block | None
    other: Block | None
    join: int
    used: frozenset[int]
    """The registers that are read where they come together."""


class Merger:
    """Merges the short branches of one machine."""

    def __init__(self, registers: list[Value], memory: Memory, code: Callable[[int], bytes], cache: Cache) -> None:
        self._real = registers
        self._memory = memory
        self._code = code
        self._cache = cache
        self._registers: list[Value] = [0] * REGISTER_SLOTS
        self._stored: dict[int, Value] = {}
        self._shapes: dict[tuple[int, int], _Shape | None] = {}
        self._compiler = Compiler(
            {
                "R": self._registers,
                "load": self._load,
                "store": self._store,
                **{f"load{size}": self._fixed_load(size) for size in (1, 2, 4, 8)},
                **{f"store{size}": self._fixed_store(size) for size in (1, 2, 4, 8)},
                **dict.fromkeys(("decide", "fork", "division", "dirty", "compare_and_swap"), self._refuse),
            },
            cache,
        )

    def forget(self) -> None:
        """Code has changed."""
        self._shapes.clear()

    def merge(self, condition: Term, holds: bool, taken: int, other: int) -> int | None:
        """Execute both sides of a branch and give the address where they meet; None if it must be decided."""
        if (taken, other) not in self._shapes:
            self._shapes[taken, other] = self._shape(taken, other)
        shape = self._shapes[taken, other]
        if shape is None:
            return None
        try:
            first, second = self._try(shape.taken), self._try(shape.other)
        except (_Refused, Fault, Trap, Unsupported):
            return None
        registers, stored = self._merged(condition, holds, first, second, shape.used)
        if registers is None:
            return None
        for slot, value in registers.items():
            self._real[slot] = value
        for address, value in stored.items():
            self._memory.store1(address, value)
        return shape.join

    # ---------------------------------------------------------------------------------------------- which branches

    def _shape(self, taken: int, other: int) -> _Shape | None:
        try:
            if block := self._side(other, taken):
                return _Shape(None, block, taken, self._read_at(taken))
            if block := self._side(taken, other):
                return _Shape(block, None, other, self._read_at(other))
            for one, another in ((other, taken), (taken, other)):
                # One side jumps over the other: if … else …
                join = self._jumps_to(one)
                if join is not None and (second := self._side(another, join)) and (first := self._side(one, join)):
                    sides = (second, first) if one == other else (first, second)
                    return _Shape(*sides, join, self._read_at(join))
        except (Fault, Unsupported):
            pass
        return None

    def _side(self, start: int, join: int) -> Block | None:
        """The code from `start` to `join`, if it is short and simple."""
        code = self._code(start)
        if start < join <= start + _MOST_BYTES:
            code = code[: join - start]
        if self._target(code, start) != join:
            return None
        return self._compiler.whole(code, start)

    def _jumps_to(self, start: int) -> int | None:
        return self._target(self._code(start), start)

    def _target(self, code: bytes, start: int) -> int | None:
        """Where a block leads that may be a side; None if it may not."""
        return self._cache.get("target", start, code, lambda: _target(code, start))

    def _read_at(self, start: int) -> frozenset[int]:
        code = self._code(start)
        return self._cache.get("read", start, code, lambda: _registers_read(code, start))

    # ---------------------------------------------------------------------------------------------- both sides

    def _try(self, side: Block | None) -> tuple[list[Value], dict[int, Value]]:
        """The registers and the stored bytes after one side."""
        if side is None:
            return self._real, {}
        self._registers[:] = self._real
        self._stored.clear()
        side()
        return self._registers.copy(), self._stored.copy()

    def _merged(
        self, condition: Term, holds: bool, one: tuple[list[Value], dict[int, Value]],
        other: tuple[list[Value], dict[int, Value]], used: frozenset[int],
    ) -> tuple[dict[int, Value] | None, dict[int, Value]]:  # fmt: skip
        registers: dict[int, Value] = {}
        for slot, (a, b) in enumerate(zip(one[0], other[0], strict=True)):
            if a is b or _same(a, b):
                registers[slot] = a
                continue
            if slot in used and (self._is_pointer(a) or self._is_pointer(b)):
                return None, {}
            registers[slot] = _either(condition, holds, a, b, 64)
        stored: dict[int, Value] = {}
        for address in one[1].keys() | other[1].keys():
            (old,) = self._memory.read_values(address, 1)
            a, b = one[1].get(address, old), other[1].get(address, old)
            stored[address] = a if _same(a, b) else _either(condition, holds, a, b, 8)
        return registers, stored

    def _is_pointer(self, value: Value) -> bool:
        number = concrete(value)
        return number > 1 << 16 and self._memory.permissions(number >> 12) is not None

    # ---------------------------------------------------------------------------------------------- for the sides

    def _refuse(self, *_: object) -> Any:
        raise _Refused

    def _load(self, address: Value, size: int) -> Value:
        if not isinstance(address, int):
            raise _Refused
        address &= (1 << 64) - 1
        if not any(address + i in self._stored for i in range(size)):
            return self._memory.load(address, size)
        parts = [
            term_of(self._stored[at] if (at := address + i) in self._stored else self._memory.load(at, 1), 8)
            for i in reversed(range(size))
        ]
        value = sum(
            concrete(self._stored[at] if (at := address + i) in self._stored else self._memory.load(at, 1)) << 8 * i
            for i in range(size)
        )
        return make(t.concat(*parts), value)

    def _store(self, address: Value, value: Value, size: int) -> None:
        if not isinstance(address, int):
            raise _Refused
        address &= (1 << 64) - 1
        if any("w" not in (self._memory.permissions(at >> 12) or "") for at in (address, address + size - 1)):
            raise _Refused
        if isinstance(value, Sym):
            value = Sym(term_of(value, 8 * size), value.value)
        for i in range(size):
            self._stored[address + i] = low_bits(value, 8 * i, 8)
        if size == 8 and self._is_pointer(value):
            raise _Refused

    def _fixed_load(self, size: int) -> Callable[[Value], Value]:
        return lambda address: self._load(address, size)

    def _fixed_store(self, size: int) -> Callable[[Value, Value], None]:
        return lambda address, value: self._store(address, value, size)


def _target(code: bytes, start: int) -> int | None:
    block = lift(code, start)
    if (
        block is None
        or block.jumpkind != "Ijk_Boring"
        or block.next.tag != "Iex_Const"
        or block.instructions > _MOST_INSTRUCTIONS
        or any(statement.tag not in _SIMPLE for statement in block.statements)
    ):
        return None
    return int(block.next.con.value)


def _registers_read(code: bytes, start: int) -> frozenset[int]:
    """The registers that a block reads before it writes them."""
    block = lift(code, start)
    read: set[int] = set()
    written: set[int] = set()
    for statement in block.statements if block is not None else ():
        if statement.tag == "Ist_WrTmp" and statement.data.tag == "Iex_Get":
            read.add(statement.data.offset // 8)
        elif statement.tag == "Ist_Put":
            written |= {statement.offset // 8} - read
    return frozenset(read - written)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, Sym):
        return isinstance(b, Sym) and a.term is b.term
    return a == b


def _either(condition: Term, holds: bool, a: Value, b: Value, width: int) -> Value:
    return make(t.ite(condition, term_of(a, width), term_of(b, width)), concrete(a if holds else b))
