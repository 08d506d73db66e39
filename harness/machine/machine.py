"""The machine: registers, memory and compiled blocks of one frozen process, run again and again from the freeze."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from harness.machine.cache import Cache
from harness.machine.compiler import MOST_CODE, REGISTER_SLOTS, REGISTERS, Block, Compiler
from harness.machine.ends import BlockLimit, Fault, Trap, Unsupported
from harness.machine.memory import PAGE, Memory, PageSource
from harness.machine.merge import Merger
from harness.machine.operations import division_overflows, operation
from harness.machine.values import Sym, Value, concrete, term_of
from soft.solve import terms as t
from soft.solve.terms import Term

RAX, RSP = REGISTERS["rax"], REGISTERS["rsp"]
# Jump kinds that are signals. Alignment faults and privileged instructions are SIGSEGV on this processor.
_SIGNALS = {
    "Ijk_SigFPE": "SIGFPE",
    "Ijk_SigFPE_IntDiv": "SIGFPE",
    "Ijk_SigFPE_IntOvf": "SIGFPE",
    "Ijk_SigSEGV": "SIGSEGV",
    "Ijk_Privileged": "SIGSEGV",
    "Ijk_SigBUS": "SIGBUS",
    "Ijk_SigTRAP": "SIGTRAP",
    "Ijk_SigILL": "SIGILL",
}
_UD2 = b"\x0f\x0b"
_HLT = b"\xf4"
# Where nothing ever is: functions that we call return to there.
_BACK = 0x500
_MOST_OF_A_CALL = 1_000_000
# The longest instruction of this processor.
_MOST_INSTRUCTION = 15


class Decisions(Protocol):
    """What a run decides where a value depends on the input (see harness.path)."""

    def branch(self, condition: Term, holds: bool) -> None: ...

    def pin(self, value: Sym) -> int: ...

    def read(self, address: Sym, size: int) -> Value: ...

    def most(self, value: Sym) -> int | None: ...

    def simplify(self, value: Value, given: Term) -> Value: ...

    def settled(self, condition: Term, holds: bool) -> bool: ...

    def bounds(self, value: Sym) -> tuple[int, int]: ...

    def place(self, address: Sym, size: int) -> int: ...

    def stored(self, address: Sym, size: int) -> None: ...


class Machine:
    """`run` executes until something other than a jump happens, and leaves it to `special` to say where to go on."""

    def __init__(self, source: PageSource, cache: Cache | None = None) -> None:
        self._cache = cache or Cache()
        self.registers: list[Value] = [0] * REGISTER_SLOTS
        self.memory = Memory(source)
        self.memory.on_symbolic_address = self._symbolic_address
        self.memory.on_symbolic_store = self._symbolic_store
        self.memory.on_code_change = self._forget
        self.blocks: dict[int, Block] = {_BACK: _returned}
        self._hooks: dict[int, Block] = {_BACK: _returned}
        self._behind: dict[int, Block] = {}
        self._covered: dict[int, int] = {}
        self.executed = 0
        """Blocks of this run so far."""
        self.own = 0
        """Those of them that `run` did not execute inside another `run`."""
        self._depth = 0
        self.decisions: Decisions | None = None
        self.clock: Callable[[], int] = lambda: 0
        m = self.memory
        self._merger = Merger(self.registers, m, self._code, self._cache)
        self._compiler = Compiler(
            {
                "R": self.registers,
                **{name: getattr(m, name) for name in ("load", "load1", "load2", "load4", "load8")},
                **{name: getattr(m, name) for name in ("store", "store1", "store2", "store4", "store8")},
                "decide": self._decide,
                "fork": self._fork,
                "division": self._division,
                "dirty": self._dirty,
                "compare_and_swap": self._compare_and_swap,
            },
            self._cache,
        )

    def reset(self, registers: list[Value], unwritten: range = range(0)) -> None:
        self.registers[:] = registers
        self.memory.reset(unwritten)
        self.executed = self.own = 0

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

        self._hooks[address] = self.blocks[address] = call

    def before(self, address: int, function: Callable[[], None]) -> None:
        """Run `function` before the code at `address`, which it may show other arguments."""

        def call() -> Any:
            function()
            return self._compiled_once(address)()

        self._hooks[address] = self.blocks[address] = call

    def shortcut(self, address: int, function: Callable[[], Value | None]) -> None:
        """Run `function` in place of the function at `address` where it gives a result, and before it otherwise."""
        registers, memory = self.registers, self.memory

        def call() -> Any:
            result = function()
            if result is None:
                return self._compiled_once(address)()
            stack = registers[RSP]
            registers[RAX] = result
            registers[RSP] = stack + 8  # type: ignore[operator]
            return memory.load8(stack)

        self._hooks[address] = self.blocks[address] = call

    def _compiled_once(self, address: int) -> Block:
        block = self._behind.get(address)
        if block is None:
            hook = self.blocks.pop(address, None)
            block = self._behind[address] = self.prepare(address)
            if hook is not None:
                self.blocks[address] = hook
        return block

    def call(self, address: int, special: Callable[[int, str], int]) -> Value:
        """Run the function at `address`, which has a hook, as it is until it returns; gives what it returns."""
        stack = self.registers[RSP]
        assert isinstance(stack, int)
        back = self.memory.load8(stack)
        self.memory.store8(stack, _BACK)
        try:
            self.run(self._compiled_once(address)(), special, _MOST_OF_A_CALL)
        except _Returned:
            self.memory.store8(stack, back)
            self.registers[RSP] = stack
        return self.registers[RAX]

    def run(self, address: Value, special: Callable[[int, str], int], most_blocks: int) -> None:
        """Execute from `address` on; `special` gets (address, jump kind) of a system call and gives the next address.

        It ends by an exception: of `special`, a Fault, a Trap, Unsupported or BlockLimit.
        """
        get = self.blocks.get
        count = counted = 0
        ip: Any = address
        depth, self._depth = self._depth, self._depth + 1
        try:
            for count in range(most_blocks):
                block = get(ip)
                if block is None:
                    self._add(count - counted, depth)
                    counted = count
                    block = self._arrive(ip, special)
                ip = block()
            raise BlockLimit(f"{most_blocks} blocks without an end")
        finally:
            self._add(count - counted, depth)
            self._depth = depth

    def _add(self, blocks: int, depth: int) -> None:
        self.executed += blocks
        if depth == 0:
            self.own += blocks

    def follow(self, address: Any, special: Callable[[int, str], int]) -> Any:
        """Execute the one block that comes next, and give what comes after it."""
        return (self.blocks.get(address) or self._arrive(address, special))()

    def is_hooked(self, address: int) -> bool:
        return address in self._hooks

    def _arrive(self, ip: Any, special: Callable[[int, str], int]) -> Block:
        """The block to execute next, where that is not just a matter of looking it up."""
        while True:
            if ip.__class__ is tuple:
                target, kind = ip
                target = self.pin(target)
                if not kind.startswith("Ijk_Sys"):
                    self._stop(target, kind)
                ip = special(target, kind)
            elif ip.__class__ is not int:
                ip = self.pin(ip)
            else:
                return self.prepare(ip)

    def prepare(self, address: int) -> Block:
        """The compiled block at `address`."""
        return self.blocks.get(address) or self._compile(address)

    def step(self, address: int) -> Any:
        """Execute one block, and give what it gives: the next address, with the jump kind if it is not just a jump."""
        return self.prepare(address)()

    def pin(self, value: Value) -> int:
        """The concrete value, with the condition that it is this one."""
        if isinstance(value, int):
            return value
        assert self.decisions is not None
        return self.decisions.pin(value)

    def covered(self) -> Mapping[int, int]:
        """The addresses of all blocks that were executed, in any run so far, and how many bytes each has."""
        return self._covered

    def keep(self) -> None:
        """Have what was compiled for the next exploration, too."""
        self._cache.save()

    def _compile(self, address: int) -> Block:
        code = self._code(address)
        block, size = self._compiler.compile(code, address)
        self.blocks[address] = block
        self._covered[address] = size
        return block

    def _code(self, address: int) -> bytes:
        """The bytes of one block; compiled, they serve all runs, so that they must be the snapshot's own."""
        code = b""
        for page in (address >> 12, (address >> 12) + 1):
            permissions = self.memory.permissions(page)
            if permissions is None or "x" not in permissions:
                break
            if "w" in permissions or not self.memory.is_original(page):
                raise Unsupported("code that is writable or was made at run time")
            start = max(address, page * PAGE)
            code += self.memory.read(start, min(page * PAGE + PAGE, address + MOST_CODE) - start)
            if len(code) >= MOST_CODE:
                break
        if not code:
            raise Fault(address, "execution")
        return code

    def _forget(self) -> None:
        """Code was unmapped or replaced: compile anew what is executed from now on."""
        self.blocks.clear()
        self._behind.clear()
        self._merger.forget()
        self.blocks.update(self._hooks)

    def _stop(self, address: int, kind: str) -> NoReturn:
        """What a block ended with, other than a jump or a system call."""
        signal = _SIGNALS.get(kind)
        if kind == "Ijk_SigTRAP" and self.memory.read(address - 1, 1) == _HLT:
            signal = "SIGSEGV"  # VEX takes it for a breakpoint; it ends libc's abort(), should all else fail
        if signal is not None:
            raise Trap(signal)
        if kind == "Ijk_NoDecode":
            code = self._code(address)[:_MOST_INSTRUCTION]
            if code.startswith(_UD2):
                raise Trap("SIGILL")
            raise Unsupported(f"the instruction {_mnemonic(code)}")
        raise Unsupported(f"a jump of the kind {kind}")

    # ---------------------------------------------------------------------------------------------- for the blocks

    def _decide(self, guard: Sym) -> int:
        assert self.decisions is not None
        self.decisions.branch(is_true(guard.term), bool(guard.value))
        return guard.value

    def _fork(self, guard: Sym, taken: int, other: int) -> int:
        """Where a branch at the end of a block leads: to one of two places, or behind both sides, merged."""
        assert self.decisions is not None
        condition, holds = is_true(guard.term), bool(guard.value)
        if not self.decisions.settled(condition, holds):
            join = self._merger.merge(condition, holds, taken, other)
            if join is not None:
                return join
            self.decisions.branch(condition, holds)
        return taken if holds else other

    def _division(self, op: str, dividend: Value, divisor: Value) -> None:
        """Before a division that involves inputs: does its quotient fit? If not, computing it raises the trap."""
        if isinstance(dividend, int) and isinstance(divisor, int):
            return
        meaning = operation(op)
        wide, half = meaning.argument_widths
        overflows = division_overflows(term_of(dividend, wide), term_of(divisor, half), "S" in op)
        if overflows is t.FALSE:
            return
        assert self.decisions is not None
        try:
            meaning.concrete(concrete(dividend), concrete(divisor))
        except Trap:
            self.decisions.branch(overflows, True)
        else:
            self.decisions.branch(overflows, False)

    def _symbolic_address(self, address: Sym, size: int, for_write: bool) -> Value:
        assert self.decisions is not None
        if for_write:
            return self.decisions.place(address, size)
        return self.decisions.read(address, size)

    def _symbolic_store(self, address: Sym, size: int) -> None:
        assert self.decisions is not None
        self.decisions.stored(address, size)

    def _compare_and_swap(self, address: Value, expected: Value, new: Value, size: int) -> Value:
        where = self.pin(address)
        old = self.memory.load(where, size)
        is_equal = concrete(old) == concrete(expected)
        if isinstance(old, Sym) or isinstance(expected, Sym):
            assert self.decisions is not None
            self.decisions.branch(t.eq(term_of(old, 8 * size), term_of(expected, 8 * size)), is_equal)
        if is_equal:
            self.memory.store(where, new, size)
        return old

    def _dirty(self, name: str, arguments: list[Value]) -> Value:
        """VEX's helper functions; what has none arrives here under a name that says what is missing."""
        if name == "amd64g_dirtyhelper_RDTSC":
            # A counter at 1 GHz of virtual time.
            return self.clock() & (1 << 64) - 1
        if name == "amd64g_create_mxcsr" and isinstance(arguments[0], int):
            return 0x1F80 | (arguments[0] & 3) << 13
        if name == "amd64g_create_fpucw" and isinstance(arguments[0], int):
            return 0x037F | (arguments[0] & 3) << 10
        raise Unsupported(name if name.startswith(("the ", "a ")) else f"the instruction behind {name}")


class _Returned(Unsupported):
    """A function that `call` runs has returned. Anywhere else a return to there is none that we understand."""


def _returned() -> Any:
    raise _Returned("a jump to where nothing is")


def is_true(guard: Term) -> Term:
    """That a guard, which is one bit or a byte, is set."""
    return t.eq(guard, t.const(1, 1)) if guard.width == 1 else t.ne(guard, t.const(0, guard.width))


def _mnemonic(code: bytes) -> str:
    """The name of an instruction that VEX does not know, or its first bytes if nobody knows it."""
    import capstone  # type: ignore[import-untyped]

    for instruction in capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(code, 0):
        return str(instruction.mnemonic)
    return code[:4].hex()


__all__ = ["RAX", "RSP", "BlockLimit", "Decisions", "Fault", "Machine", "Trap", "Unsupported"]
