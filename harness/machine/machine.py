"""The machine: registers, memory and compiled blocks of one frozen process, run again and again from the freeze."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from harness.machine.compiler import MOST_BYTES, REGISTER_SLOTS, REGISTERS, Block, Compiler
from harness.machine.memory import PAGE, Fault, Memory, PageSource
from harness.machine.operations import Unsupported
from harness.machine.values import Sym, Value, concrete
from soft.solve import terms as t
from soft.solve.terms import Term

RAX, RSP = REGISTERS["rax"], REGISTERS["rsp"]
_MASK64 = (1 << 64) - 1


class Decisions(Protocol):
    """What a run decides where a value depends on the input (see harness.path)."""

    def branch(self, condition: Term, holds: bool) -> None: ...

    def pin(self, value: Sym) -> int: ...

    def read(self, address: Sym, size: int) -> Value: ...


class Trap(Exception):
    """The processor stopped the agent: the signal's name."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


class BlockLimit(Exception):
    """The run executed more blocks than a run may: an endless loop, as far as we can tell."""


class Machine:
    """`run` executes until something other than a jump happens, and leaves it to `special` to say where to go on."""

    def __init__(self, source: PageSource) -> None:
        self.registers: list[Value] = [0] * REGISTER_SLOTS
        self.memory = Memory(source)
        self.memory.on_symbolic_address = self._symbolic_address
        self.blocks: dict[int, Block] = {}
        self.sizes: dict[int, int] = {}
        self.executed = 0
        self.decisions: Decisions | None = None
        self.clock: Callable[[], int] = lambda: 0
        m = self.memory
        self._compiler = Compiler(
            {
                "R": self.registers,
                **{name: getattr(m, name) for name in ("load", "load1", "load2", "load4", "load8")},
                **{name: getattr(m, name) for name in ("store", "store1", "store2", "store4", "store8")},
                "decide": self._decide,
                "divisor": self._divisor,
                "dirty": self._dirty,
                "compare_and_swap": self._compare_and_swap,
            }
        )

    def reset(self, registers: list[Value]) -> None:
        self.registers[:] = registers
        self.memory.reset()
        self.executed = 0

    def hook(self, address: int, function: Callable[[], Value]) -> None:
        """Run `function` in place of the code at `address`: a whole function of the agent, which then returns."""

        def call() -> Value:
            stack = self.registers[RSP]
            assert isinstance(stack, int)
            result = function()
            back = self.memory.load8(stack)
            self.registers[RAX] = result
            self.registers[RSP] = stack + 8
            return back

        self.blocks[address] = call

    def run(self, address: Value, special: Callable[[int, str], int], most_blocks: int) -> None:
        """Execute from `address` on; `special` gets (address, jump kind) and gives the next address.

        It ends by an exception: of `special`, a Fault, a Trap, Unsupported or BlockLimit.
        """
        blocks = self.blocks
        get = blocks.get
        count = 0
        ip: Any = address
        try:
            while count < most_blocks:
                block = get(ip)
                if block is None:
                    if ip.__class__ is tuple:
                        target, kind = ip
                        if target.__class__ is not int:
                            target = self.pin(target)
                        ip = special(target, kind)
                        continue
                    if ip.__class__ is not int:
                        ip = self.pin(ip)
                        continue
                    block = self._compile(ip)
                count += 1
                ip = block()
            raise BlockLimit(f"{most_blocks} blocks without an end")
        finally:
            self.executed += count

    def pin(self, value: Value) -> int:
        """The concrete value, with the condition that it is this one."""
        if isinstance(value, int):
            return value
        assert self.decisions is not None
        return self.decisions.pin(value)

    def _compile(self, address: int) -> Block:
        permissions = self.memory.permissions(address >> 12)
        if permissions is None or "x" not in permissions:
            raise Fault(address, "execution")
        code = self.memory.read(address, min(MOST_BYTES, PAGE - address % PAGE))
        if len(code) < MOST_BYTES and self.memory.permissions((address >> 12) + 1) is not None:
            code += self.memory.read(address + len(code), MOST_BYTES - len(code))
        if code.startswith(b"\x0f\x0b"):
            raise Trap("SIGILL")
        block = self._compiler.compile(code, address)
        self.blocks[address] = block
        return block

    # ---------------------------------------------------------------------------------------------- for the blocks

    def _decide(self, guard: Sym) -> int:
        assert self.decisions is not None
        condition = (
            t.eq(guard.term, t.const(1, 1)) if guard.term.width == 1 else t.ne(guard.term, t.const(0, guard.term.width))
        )
        self.decisions.branch(condition, bool(guard.value))
        return guard.value

    def _divisor(self, value: Value) -> None:
        if isinstance(value, Sym):
            assert self.decisions is not None
            self.decisions.branch(t.eq(value.term, t.const(0, value.term.width)), value.value == 0)

    def _symbolic_address(self, address: Sym, size: int, for_write: bool) -> Value:
        assert self.decisions is not None
        if for_write:
            return self.decisions.pin(address)
        return self.decisions.read(address, size)

    def _compare_and_swap(self, address: Value, expected: Value, new: Value, size: int) -> Value:
        where = self.pin(address)
        old = self.memory.load(where, size)
        if isinstance(old, Sym) or isinstance(expected, Sym):
            self.pin(old)
            self.pin(expected)
        if concrete(old) == concrete(expected):
            self.memory.store(where, new, size)
        return old

    def _dirty(self, name: str, arguments: list[Value]) -> Value:
        if name == "amd64g_dirtyhelper_RDTSC":
            # A counter at 1 GHz of virtual time.
            return self.clock() & _MASK64
        raise Unsupported(name if name.startswith(("the ", "a ")) else f"the instruction behind {name}")
