"""One VEX block becomes one Python function: an integer fast path, and calls for what is symbolic.

The function takes nothing and returns the next address; or a tuple (next address, jump kind) where something other
than a jump has to happen, such as a system call; or a symbolic pair where the next address depends on the input.
Registers and memory accessors are bound as default arguments: locals are the cheapest names that Python has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import archinfo
from pyvex.errors import LiftingException
from pyvex.lifting.libvex import LibVEXLifter
from pyvex.native import ffi

from harness.machine import flags, operations, values
from harness.machine.ends import Unsupported
from harness.machine.operations import WIDTHS, operation

ARCH = archinfo.ArchAMD64()
REGISTERS: dict[str, int] = {name: offset // 8 for name, (offset, size) in ARCH.registers.items()}
REGISTER_SLOTS = max(offset + size for offset, size in ARCH.registers.values()) // 8 + 2
_RIP = ARCH.registers["rip"][0]
# VEX lifts at most this many bytes into one block; a page boundary in between is fine. It wants to see some more, or it
# would take zeros for the rest of an instruction that begins before the limit.
MOST_BYTES = 400
MOST_CODE = MOST_BYTES + 16
MOST_INSTRUCTIONS = 99

# Jump kinds that are jumps. Flushing a data cache and yielding to another thread do nothing to be seen.
_PLAIN = ("Ijk_Boring", "Ijk_Call", "Ijk_Ret", "Ijk_Yield", "Ijk_FlushDCache")
_CALLS = {
    "amd64g_calculate_condition": "calculate_condition",
    "amd64g_calculate_rflags_c": "calculate_carry",
    "amd64g_calculate_rflags_all": "calculate_all",
}
Block = Callable[[], Any]
# Names that a block needs from the machine it is compiled for.
BOUND = (
    "R",
    "load",
    "load1",
    "load2",
    "load4",
    "load8",
    "store",
    "store1",
    "store2",
    "store4",
    "store8",
    "decide",
    "division",
    "dirty",
    "compare_and_swap",
)


def lift(code: bytes, address: int) -> Any:
    """The VEX block at `address`, or None if there is no instruction that VEX knows.

    libVEX alone: what pyvex puts in where that knows an instruction not, as for swapgs, does nothing or less.
    """
    try:
        return LibVEXLifter(ARCH, address).lift(
            ffi.from_buffer(code + bytes(8)),
            bytes_offset=0,
            max_bytes=min(len(code), MOST_BYTES),
            max_inst=MOST_INSTRUCTIONS,
            opt_level=1,
            traceflags=0,
            allow_arch_optimizations=True,
            strict_block_end=True,
        )
    except LiftingException:
        return None


class Compiler:
    """Compiles blocks for one machine, whose registers and accessors are given by name (see BOUND)."""

    def __init__(self, bound: dict[str, Any]) -> None:
        self._namespace: dict[str, Any] = {
            **operations.EXPRESSION_NAMES,
            **bound,
            "apply": operations.apply,
            "operation": operation,
            "calculate_condition": flags.calculate_condition,
            "calculate_carry": flags.calculate_carry,
            "calculate_all": flags.calculate_all,
            "low_bits": values.low_bits,
            "insert_bits": values.insert_bits,
            "join": values.join,
            "choose": values.choose,
            "Unsupported": Unsupported,
        }

    def compile(self, code: bytes, address: int) -> Block:
        """The function for the block at `address`."""
        block = lift(code, address)
        if block is None:
            return lambda: (address, "Ijk_NoDecode")
        lines = _Writer(block.tyenv, self._namespace).block(block)
        header = "def block(" + ", ".join(f"{name}={name}" for name in BOUND) + "):\n "
        namespace = self._namespace
        exec(compile(header + "\n ".join(lines), f"block {address:#x}", "exec"), namespace)
        function: Block = namespace.pop("block")
        return function


class _Writer:
    """The Python text of one block."""

    def __init__(self, types: Any, namespace: dict[str, Any]) -> None:
        self._types = types
        self._namespace = namespace
        self._lines: list[str] = []

    def block(self, block: Any) -> list[str]:
        for statement in block.statements:
            handler = getattr(self, "_" + statement.tag.removeprefix("Ist_").lower(), None)
            if handler is None:
                self._lines.append(f"raise Unsupported({f'the statement {statement.tag}'!r})")
                return self._lines
            handler(statement)
        target = self._atom(block.next)
        if block.jumpkind in _PLAIN:
            self._lines.append(f"return {target}")
        else:
            self._lines.append(f"return ({target}, {block.jumpkind!r})")
        return self._lines

    # ---------------------------------------------------------------------------------------------- statements

    def _imark(self, statement: Any) -> None:
        pass

    _noop = _abihint = _mbe = _imark

    def _wrtmp(self, statement: Any) -> None:
        self._lines.append(f"t{statement.tmp} = {self._expression(statement.data)}")

    def _put(self, statement: Any) -> None:
        if statement.offset == _RIP:
            return  # the machine knows where it is
        width = max(8, self._width(statement.data))
        value = self._atom(statement.data)
        slot, shift = statement.offset // 8, statement.offset % 8 * 8
        if width == 64 and not shift:
            self._lines.append(f"R[{slot}] = {value}")
        elif width in (128, 256) and not shift:
            for i in range(width // 64):
                piece = f"{value} >> {64 * i} & 0xffffffffffffffff" if i else f"{value} & 0xffffffffffffffff"
                symbolic = f"low_bits({value}, {64 * i}, 64)"
                self._lines.append(f"R[{slot + i}] = {self._guarded(piece, symbolic, [value])}")
        elif shift + width <= 64:
            keep = (1 << 64) - 1 ^ ((1 << width) - 1) << shift
            fast = f"R[{slot}] & {keep:#x} | {value} << {shift}"
            slow = f"insert_bits(R[{slot}], {shift}, {width}, {value})"
            self._lines.append(f"R[{slot}] = {self._guarded(fast, slow, [f'R[{slot}]', value])}")
        else:
            self._lines.append(f"raise Unsupported('a write of {width} bits to register {statement.offset}')")

    def _store(self, statement: Any) -> None:
        size = max(8, self._width(statement.data)) // 8
        address, value = self._atom(statement.addr), self._atom(statement.data)
        if size in (1, 2, 4, 8):
            self._lines.append(f"store{size}({address}, {value})")
        else:
            self._lines.append(f"store({address}, {value}, {size})")

    def _exit(self, statement: Any) -> None:
        guard = self._atom(statement.guard)
        target = hex(statement.dst.value & (1 << 64) - 1)
        result = target if statement.jk in _PLAIN else f"({target}, {statement.jk!r})"
        truth = f"{guard} if {guard}.__class__ is int else decide({guard})" if guard[0] == "t" else guard
        self._lines.append(f"if {truth}: return {result}")

    def _cas(self, statement: Any) -> None:
        if statement.dataHi is not None:
            self._lines.append("raise Unsupported('a compare-and-swap of two words')")
            return
        size = self._width(statement.dataLo) // 8
        expected, new = self._atom(statement.expdLo), self._atom(statement.dataLo)
        address = self._atom(statement.addr)
        self._lines.append(f"t{statement.oldLo} = compare_and_swap({address}, {expected}, {new}, {size})")

    def _dirty(self, statement: Any) -> None:
        arguments = [self._atom(a) for a in statement.args if a.tag not in ("Iex_GSPTR", "Iex_VECRET")]
        call = f"dirty({statement.cee.name!r}, [{', '.join(arguments)}])"
        guard = self._atom(statement.guard)
        has_result = 0 <= statement.tmp < 0xFFFFFFFF
        if guard != "0x1":
            # VEX leaves the result undefined where the call is not made.
            self._lines.append(f"if not ({guard}): raise Unsupported('a call of {statement.cee.name} on a condition')")
        self._lines.append(f"t{statement.tmp} = {call}" if has_result else call)

    # ---------------------------------------------------------------------------------------------- expressions

    def _width(self, expression: Any) -> int:
        return WIDTHS[expression.result_type(self._types)]

    def _atom(self, expression: Any) -> str:
        """A temporary or a constant; VEX is flat, so operands are nothing else."""
        if expression.tag == "Iex_RdTmp":
            return f"t{expression.tmp}"
        if expression.tag == "Iex_Const":
            return hex(_constant(expression.con))
        raise AssertionError(f"an operand that is {expression.tag}")

    @staticmethod
    def _guarded(fast: str, slow: str, operands: list[str]) -> str:
        """The fast form if all operands are integers; constants are known to be."""
        names = [o for o in dict.fromkeys(operands) if not o.startswith("0x")]
        if not names:
            return fast
        return f"({fast}) if {' and '.join(f'{n}.__class__ is int' for n in names)} else {slow}"

    def _expression(self, e: Any) -> str:
        tag = e.tag
        if tag in ("Iex_RdTmp", "Iex_Const"):
            return self._atom(e)
        if tag == "Iex_Get":
            return self._get(e.offset, WIDTHS[e.ty])
        if tag == "Iex_Load":
            size = WIDTHS[e.ty] // 8
            address = self._atom(e.addr)
            return f"load{size}({address})" if size in (1, 2, 4, 8) else f"load({address}, {size})"
        if tag in ("Iex_Unop", "Iex_Binop", "Iex_Triop", "Iex_Qop"):
            return self._operation(e)
        if tag == "Iex_ITE":
            condition, yes, no = self._atom(e.cond), self._atom(e.iftrue), self._atom(e.iffalse)
            slow = f"choose({condition}, {yes}, {no}, {self._width(e.iftrue)})"
            return self._guarded(f"{yes} if {condition} else {no}", slow, [condition])
        if tag == "Iex_CCall":
            name = _CALLS.get(e.cee.name)
            if name is None:
                return f"dirty({e.cee.name!r}, [{', '.join(self._atom(a) for a in e.args)}])"
            return f"{name}({', '.join(self._atom(a) for a in e.args)})"
        return f"dirty({f'the expression {tag}'!r}, [])"

    def _get(self, offset: int, width: int) -> str:
        slot, shift = offset // 8, offset % 8 * 8
        if width == 64 and not shift:
            return f"R[{slot}]"
        if width == 128 and not shift:
            return f"join(R[{slot + 1}], R[{slot}])"
        if width == 256 and not shift:
            return f"join(join(R[{slot + 3}], R[{slot + 2}]), join(R[{slot + 1}], R[{slot}]), 128)"
        if shift + width > 64:
            return f"dirty('a read of {width} bits from register {offset}', [])"
        bits = max(width, 8) if width > 1 else 1
        fast = f"R[{slot}] >> {shift} & {(1 << bits) - 1:#x}" if shift else f"R[{slot}] & {(1 << bits) - 1:#x}"
        return self._guarded(fast, f"low_bits(R[{slot}], {shift}, {bits})", [f"R[{slot}]"])

    def _operation(self, e: Any) -> str:
        arguments = [self._atom(a) for a in e.args]
        try:
            meaning = operation(e.op)
        except Unsupported as problem:
            return f"dirty({str(problem)!r}, [])"
        name = f"{e.op}_"
        self._namespace[name] = meaning
        if e.op.startswith("Iop_DivMod"):
            self._lines.append(f"division({e.op!r}, {', '.join(arguments)})")
        slow = f"apply({name}, {', '.join(arguments)})"
        return self._guarded(meaning.expression.format(*arguments), slow, [a for a in arguments if a[0] == "t"])


def _constant(con: Any) -> int:
    value, width = con.value, WIDTHS[con.type]
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d" if width == 64 else "<f", value), "little")
    if con.type in ("Ity_V128", "Ity_V256"):
        # VEX writes a vector constant as a mask with one bit for each byte.
        return sum(0xFF << 8 * i for i in range(width // 8) if value >> i & 1)
    return int(value) & (1 << width) - 1
