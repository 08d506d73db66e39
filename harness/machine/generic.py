"""The Python text of a VEX block, or of the rest of one, for values of any kind.

Every operation asks whether its operands are integers, and calls for the terms if not. Blocks in which nothing depends
on the input have a shorter text (integers.py); this one takes over where that meets a symbolic value.
"""

from __future__ import annotations

from typing import Any

from harness.machine.ends import Unsupported
from harness.machine.layout import CONDITION_CALLS, PLAIN_JUMPS, RIP, constant
from harness.machine.operations import WIDTHS, Operation, operation


def operation_name(op: str) -> str:
    """The name of a VEX operation in a text."""
    return f"{op}_"


def named_operation(name: str) -> Operation | None:
    """The operation that has this name in a text, if it is an operation's."""
    return operation(name[:-1]) if name.startswith("Iop_") else None


class Generic:
    """Writes one block. Temporaries are named t0, t1… as in VEX, and operations as `operation_name` says."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._types = block.tyenv
        self._lines: list[str] = []

    def write(self, first: int = 0) -> list[str]:
        """The lines for the statements from number `first` on."""
        last = self._last_exit()
        for statement in self._block.statements[first:]:
            if statement is last:
                self._fork(statement)
                continue
            handler = getattr(self, "_" + statement.tag.removeprefix("Ist_").lower(), None)
            if handler is None:
                self._lines.append(f"raise Unsupported({f'the statement {statement.tag}'!r})")
                return self._lines
            handler(statement)
        target, kind = self._atom(self._block.next), self._block.jumpkind
        self._lines.append(f"return {target}" if kind in PLAIN_JUMPS else f"return ({target}, {kind!r})")
        return self._lines

    def _last_exit(self) -> Any:
        """The exit that a block of two successors ends with, or None: a branch that may be merged (merge.py)."""
        statements = [s for s in self._block.statements if s.tag not in ("Ist_IMark", "Ist_AbiHint", "Ist_NoOp")]
        while statements and statements[-1].tag == "Ist_Put" and statements[-1].offset == RIP:
            statements.pop()
        last = statements[-1] if statements else None
        if (
            last is None
            or last.tag != "Ist_Exit"
            or (last.jk, self._block.jumpkind) != ("Ijk_Boring", "Ijk_Boring")
            or last.guard.tag != "Iex_RdTmp"
            or self._block.next.tag != "Iex_Const"
        ):
            return None
        return last

    # ---------------------------------------------------------------------------------------------- statements

    def _fork(self, statement: Any) -> None:
        guard, target, other = self._atom(statement.guard), self._exit_target(statement), self._atom(self._block.next)
        self._lines.append(f"if {guard}.__class__ is not int: return fork({guard}, {target}, {other})")
        self._lines.append(f"if {guard}: return {target}")

    @staticmethod
    def _exit_target(statement: Any) -> str:
        return hex(statement.dst.value & (1 << 64) - 1)

    def _imark(self, statement: Any) -> None:
        pass

    _noop = _abihint = _mbe = _imark

    def _wrtmp(self, statement: Any) -> None:
        self._lines.append(f"t{statement.tmp} = {self._expression(statement.data)}")

    def _put(self, statement: Any) -> None:
        if statement.offset == RIP:
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
        target = self._exit_target(statement)
        result = target if statement.jk in PLAIN_JUMPS else f"({target}, {statement.jk!r})"
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
            return hex(constant(expression.con))
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
            name = CONDITION_CALLS.get(e.cee.name)
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
        if e.op.startswith("Iop_DivMod"):
            self._lines.append(f"division({e.op!r}, {', '.join(arguments)})")
        apply = {1: "apply1", 2: "apply2"}.get(len(arguments), "apply")
        slow = f"{apply}({operation_name(e.op)}, {', '.join(arguments)})"
        return self._guarded(meaning.expression.format(*arguments), slow, [a for a in arguments if a[0] == "t"])
