"""The Python text of a VEX block in which nothing depends on the input: plain integer arithmetic.

Registers are read at the start, and a symbolic one sends the whole block to its generic text. Only loads can bring in a
symbolic value later: then the generic text of the rest of the block takes over, with the temporaries that live on. So
nothing in between has to ask what kind of value it handles, temporaries that are used once become part of the
expression that uses them, and a comparison followed by a branch is one `if`.

Registers are written where VEX writes them. It leaves out writes that later ones in the block undo, except to the stack
pointer, so that a fault finds the registers nearly as the processor would.
"""

from __future__ import annotations

from typing import Any

from harness.machine import flags
from harness.machine.ends import Trap, Unsupported
from harness.machine.layout import CONDITION_CALLS, PLAIN_JUMPS, RIP, constant
from harness.machine.operations import WIDTHS, Operation, operation

_MASK64 = (1 << 64) - 1
_CARRY = 2
# An expression of more characters than this gets a name, so that texts that contain it do not grow without bound.
_MOST_TEXT = 160
_FIXED_SIZES = (1, 2, 4, 8)


class Text:
    """The text of an integer: a name, a number, or an expression in parentheses.

    `bits` bounds its size. `truth` is the text of a condition, for a value that is 1 if it holds and else 0. `wrapped`
    is a text that equals it modulo 2**64, which serves where it is reduced anyway. `number` is its value, if known.
    """

    __slots__ = ("bits", "number", "text", "truth", "wrapped")

    def __init__(
        self, text: str, bits: int, truth: str | None = None, wrapped: str | None = None, number: int | None = None
    ) -> None:
        self.text = text
        self.bits = bits
        self.truth = truth
        self.wrapped = wrapped or text
        self.number = number

    @property
    def is_atom(self) -> bool:
        return self.text[0] != "("

    @property
    def condition(self) -> str:
        return self.truth or self.text


def _number(value: int) -> Text:
    return Text(hex(value) if value > 9 else str(value), value.bit_length(), number=value)


def _truth(condition: str) -> Text:
    return Text(f"(1 if {condition} else 0)", 1, truth=condition)


class Integers:
    """Writes one block, of the VEX statements at `address`."""

    def __init__(self, block: Any, address: int) -> None:
        self._block = block
        self._address = address
        self._types = block.tyenv
        self._lines: list[str] = []
        self._names = 0
        self._temporaries: dict[int, Text] = {}
        self._registers: dict[int, Text] = {}  # slot → what it holds now
        self._vectors: dict[int, Text] = {}  # lower slot → the 128 bits from there, if they were written as one
        self._uses: dict[int, int] = {}
        self._last_use: dict[int, int] = {}
        self._index = 0

    def write(self) -> list[str]:
        self._read_registers(self._survey())
        for index, statement in enumerate(self._block.statements):
            self._index = index
            handler = getattr(self, "_" + statement.tag.removeprefix("Ist_").lower(), None)
            is_double = statement.tag == "Ist_CAS" and statement.dataHi is not None
            if handler is None or is_double:
                what = "a compare-and-swap of two words" if is_double else f"the statement {statement.tag}"
                self._lines.append(f"raise Unsupported({what!r})")
                return self._lines
            handler(statement)
        target, kind = self._value(self._block.next).text, self._block.jumpkind
        self._lines.append(f"return {target}" if kind in PLAIN_JUMPS else f"return ({target}, {kind!r})")
        return self._lines

    # ---------------------------------------------------------------------------------------------- before writing

    def _survey(self) -> list[int]:
        """Count how often and where temporaries are used, and list the registers that are read before written."""
        uses, last, reads, written = self._uses, self._last_use, dict[int, None](), set[int]()
        for index, statement in enumerate(self._block.statements):
            tag = statement.tag
            if tag == "Ist_WrTmp":
                data = statement.data
                used = _operands(data)
                if data.tag == "Iex_Get":
                    slots = range(data.offset // 8, (data.offset + WIDTHS[data.ty] // 8 - 1) // 8 + 1)
                    reads.update((slot, None) for slot in slots if slot not in written)
            elif tag == "Ist_Put":
                used = (statement.data,)
                width, slot = self._width(statement.data), statement.offset // 8
                if width >= 64:
                    written.update(range(slot, slot + width // 64))
                elif slot not in written:
                    reads[slot] = None
            elif tag == "Ist_IMark":
                continue
            else:
                used = statement.expressions
            for expression in used:
                if expression.tag == "Iex_RdTmp":
                    uses[expression.tmp] = uses.get(expression.tmp, 0) + 1
                    last[expression.tmp] = index
        following = self._block.next
        if following.tag == "Iex_RdTmp":
            uses[following.tmp] = uses.get(following.tmp, 0) + 1
            last[following.tmp] = len(self._block.statements)
        return list(reads)

    def _read_registers(self, slots: list[int]) -> None:
        if not slots:
            return
        for slot in slots:
            self._registers[slot] = Text(f"r{slot}", 64)
        self._lines.append("; ".join(f"r{slot} = R[{slot}]" for slot in slots))
        classes = " is ".join(f"r{slot}.__class__" for slot in slots)
        self._lines.append(f"if not {classes} is int: return rest({self._address:#x}, 0, '')")

    # ---------------------------------------------------------------------------------------------- names

    def _bind(self, value: Text, also: str = "") -> Text:
        """The value under a name; `also` is another place to put it, as the text of an assignment."""
        if value.is_atom:
            if also:
                self._lines.append(f"{also}{value.text}")
            return value
        self._names += 1
        name = f"v{self._names}"
        self._lines.append(f"{also}{name} = {value.text}")
        return Text(name, value.bits, number=value.number)

    def _from_memory(self, temporary: int, call: str, width: int) -> None:
        """A temporary that may turn out symbolic, with the way out."""
        self._names += 1
        name = f"v{self._names}"
        self._temporaries[temporary] = Text(name, width)
        live = [tmp for tmp in self._temporaries if self._last_use.get(tmp, -1) > self._index]
        names = ",".join(f"t{tmp}" for tmp in live)
        values = "".join(f", {self._temporaries[tmp].text}" for tmp in live)
        self._lines.append(f"{name} = {call}")
        self._lines.append(
            f"if {name}.__class__ is not int: return rest({self._address:#x}, {self._index + 1}, {names!r}{values})"
        )

    # ---------------------------------------------------------------------------------------------- statements

    def _imark(self, statement: Any) -> None:
        pass

    _noop = _abihint = _mbe = _imark

    def _wrtmp(self, statement: Any) -> None:
        data, temporary = statement.data, statement.tmp
        if data.tag == "Iex_Load":
            width = WIDTHS[data.ty]
            size, address = width // 8, self._value(data.addr).wrapped
            call = f"load{size}({address})" if size in _FIXED_SIZES else f"load({address}, {size})"
            self._from_memory(temporary, call, width)
            return
        uses = self._uses.get(temporary, 0)
        may_trap = data.tag == "Iex_Binop" and data.op.startswith("Iop_DivMod")
        if not uses and not may_trap:
            return
        value = self._expression(data)
        if not value.is_atom and (uses > 1 or may_trap or len(value.text) > _MOST_TEXT):
            value = self._bind(value)
        self._temporaries[temporary] = value

    def _put(self, statement: Any) -> None:
        if statement.offset == RIP:
            return  # the machine knows where it is
        width = max(8, self._width(statement.data))
        value = self._value(statement.data)
        slot, shift = statement.offset // 8, statement.offset % 8 * 8
        if (width >= 64 and shift) or width < 64 < shift + width:
            self._lines.append(f"raise Unsupported('a write of {width} bits to register {statement.offset}')")
            return
        for place in range(slot - 3, slot + 4):
            self._vectors.pop(place, None)
        if width == 64:
            self._registers[slot] = self._bind(value, f"R[{slot}] = ")
        elif width > 64:
            value = self._bind(value)
            for i in range(width // 64):
                self._registers[slot + i] = self._bind(_part(value, 64 * i, 64), f"R[{slot + i}] = ")
            if width == 128:
                self._vectors[slot] = value
        else:
            keep = _MASK64 ^ ((1 << width) - 1) << shift
            new = f"{value.text} << {shift}" if shift else value.text
            merged = Text(f"({self._registers[slot].text} & {keep:#x} | {new})", 64)
            self._registers[slot] = self._bind(merged, f"R[{slot}] = ")

    def _store(self, statement: Any) -> None:
        size = max(8, self._width(statement.data)) // 8
        address, value = self._value(statement.addr).wrapped, self._value(statement.data).text
        self._lines.append(
            f"store{size}({address}, {value})" if size in _FIXED_SIZES else f"store({address}, {value}, {size})"
        )

    def _exit(self, statement: Any) -> None:
        guard = self._value(statement.guard)
        target = hex(statement.dst.value & _MASK64)
        result = target if statement.jk in PLAIN_JUMPS else f"({target}, {statement.jk!r})"
        self._lines.append(f"if {guard.condition}: return {result}")

    def _cas(self, statement: Any) -> None:
        width = self._width(statement.dataLo)
        operands = [self._value(e).text for e in (statement.addr, statement.expdLo, statement.dataLo)]
        self._from_memory(statement.oldLo, f"compare_and_swap({', '.join(operands)}, {width // 8})", width)

    def _dirty(self, statement: Any) -> None:
        arguments = [self._value(a).text for a in statement.args if a.tag not in ("Iex_GSPTR", "Iex_VECRET")]
        guard = self._value(statement.guard)
        if guard.number != 1:
            # VEX leaves the result undefined where the call is not made.
            name = statement.cee.name
            self._lines.append(f"if not {guard.text}: raise Unsupported('a call of {name} on a condition')")
        call = f"dirty({statement.cee.name!r}, [{', '.join(arguments)}])"
        if 0 <= statement.tmp < 0xFFFFFFFF:
            self._from_memory(statement.tmp, call, WIDTHS[self._types.lookup(statement.tmp)])
        else:
            self._lines.append(call)

    # ---------------------------------------------------------------------------------------------- expressions

    def _width(self, expression: Any) -> int:
        return WIDTHS[expression.result_type(self._types)]

    def _value(self, expression: Any) -> Text:
        """A temporary or a constant; VEX is flat, so operands are nothing else."""
        if expression.tag == "Iex_RdTmp":
            return self._temporaries[expression.tmp]
        assert expression.tag == "Iex_Const"
        return _number(constant(expression.con))

    def _expression(self, e: Any) -> Text:
        tag = e.tag
        if tag in ("Iex_Unop", "Iex_Binop", "Iex_Triop", "Iex_Qop"):
            return self._operation(e)
        if tag == "Iex_Get":
            return self._get(e.offset, WIDTHS[e.ty])
        if tag in ("Iex_RdTmp", "Iex_Const"):
            return self._value(e)
        if tag == "Iex_ITE":
            condition, yes, no = self._value(e.cond), self._value(e.iftrue), self._value(e.iffalse)
            return Text(f"({yes.text} if {condition.condition} else {no.text})", max(yes.bits, no.bits))
        if tag == "Iex_CCall":
            return self._call(e.cee.name, [self._value(a) for a in e.args])
        return Text(f"(dirty({f'the expression {tag}'!r}, []))", 64)

    def _get(self, offset: int, width: int) -> Text:
        slot, shift = offset // 8, offset % 8 * 8
        registers = self._registers
        if width == 128 and slot in self._vectors:
            return self._vectors[slot]
        if width >= 64 and not shift:
            pieces = [registers[slot + i].text + (f" << {64 * i}" if i else "") for i in range(width // 64)]
            return registers[slot] if width == 64 else Text(f"({' | '.join(pieces)})", width)
        if shift + width > 64:
            return Text(f"(dirty('a read of {width} bits from register {offset}', []))", width)
        return _part(registers[slot], shift, width)

    def _call(self, name: str, arguments: list[Text]) -> Text:
        ours = CONDITION_CALLS.get(name)
        if ours is None:
            return Text(f"(dirty({name!r}, [{', '.join(a.text for a in arguments)}]))", 64)
        if ours != "calculate_all":
            condition, rest = (arguments[0].number, arguments[1:]) if len(arguments) == 5 else (_CARRY, arguments)
            cc_op = rest[0].number
            if condition is not None and cc_op is not None:
                text = flags.expression(condition, cc_op, *[self._bind(a).text for a in rest[1:]])
                if text is not None:
                    return _truth(text)
            return Text(f"({ours}({', '.join(a.text for a in arguments)}))", 1)
        return Text(f"({ours}({', '.join(a.text for a in arguments)}))", 64)

    def _operation(self, e: Any) -> Text:
        try:
            meaning = operation(e.op)
        except Unsupported as problem:
            return Text(f"(dirty({str(problem)!r}, []))", 64)
        arguments = [self._value(a) for a in e.args]
        numbers = [a.number for a in arguments]
        if None not in numbers:
            try:
                return _number(meaning.concrete(*numbers))
            except (Trap, Unsupported):
                pass  # when it is executed, if it is
        return simplify(meaning, arguments)


def _operands(e: Any) -> Any:
    tag = e.tag
    if tag in ("Iex_Unop", "Iex_Binop"):
        return e.args
    return () if tag == "Iex_Get" else (e,) if tag == "Iex_RdTmp" else e.child_expressions


# ---------------------------------------------------------------------------------------------- shorter texts


def _part(value: Text, low: int, width: int) -> Text:
    """Some bits of a value."""
    if value.number is not None:
        return _number(value.number >> low & (1 << width) - 1)
    if low == 0:
        if value.bits <= width:
            return value
        return Text(f"({value.wrapped if width <= 64 else value.text} & {(1 << width) - 1:#x})", width)
    if value.bits <= low + width:
        return Text(f"({value.text} >> {low})", max(value.bits - low, 1))
    return Text(f"({value.text} >> {low} & {(1 << width) - 1:#x})", width)


# Operations that only narrow to the given number of bits, or only widen with zeros.
_NARROW = {f"Iop_{n}": w for n, w in (("64to32", 32), ("64to16", 16), ("64to8", 8), ("32to16", 16), ("32to8", 8))}
_NARROW |= {f"Iop_{n}": w for n, w in (("16to8", 8), ("64to1", 1), ("32to1", 1), ("V128to64", 64), ("128to64", 64))}
_WIDEN = {f"Iop_{a}Uto{b}" for a in (1, 8, 16, 32) for b in (8, 16, 32, 64)} | {"Iop_32UtoV128", "Iop_64UtoV128"}
_SIGNS = {"Iop_Add": "+", "Iop_Sub": "-", "Iop_Mul": "*"}


def simplify(meaning: Operation, arguments: list[Text]) -> Text:
    """The text of an operation on texts that are not all numbers."""
    name = meaning.name
    first = arguments[0]
    if name in _WIDEN:
        return first if meaning.width <= 64 else Text(first.text, first.bits, number=first.number)
    if name in _NARROW:
        return _part(first, 0, _NARROW[name])
    if name[:7] in _SIGNS and name[7:] in ("8", "16", "32", "64"):
        return _arithmetic(_SIGNS[name[:7]], meaning.width, *arguments)
    if name == "Iop_Shl64" and arguments[1].number is not None:
        shifted = f"({first.wrapped} << {arguments[1].text})"
        return Text(f"({shifted} & {_MASK64:#x})", 64, wrapped=shifted)
    if name == "Iop_Not1":
        return _truth(f"not ({first.condition})")
    expression = meaning.expression
    if expression.endswith(" else 0") and expression.startswith("1 if "):
        if first.truth and arguments[1].number == 0 and "CmpEQ" in name:
            return _truth(f"not ({first.truth})")
        if first.truth and arguments[1].number == 0 and "CmpNE" in name:
            return _truth(first.truth)
        return _truth(expression[5:-7].format(*[a.text for a in arguments]))
    bits = meaning.width
    if name.startswith("Iop_And"):
        bits = min(a.bits for a in arguments)
        if arguments[1].number is not None and arguments[1].bits <= 64:
            return Text(f"({first.wrapped} & {arguments[1].text})", bits)
    elif name.startswith(("Iop_Or", "Iop_Xor")):
        bits = max(a.bits for a in arguments)
    return Text(f"({expression.format(*[a.text for a in arguments])})", bits)


def _arithmetic(sign: str, width: int, a: Text, b: Text) -> Text:
    """A sum, difference or product: reduced to `width` bits once, at the end."""
    number = b.number
    right = b.wrapped
    if number is not None and sign != "*" and number >> width - 1:
        # Adding a large number is taking away a small one, and small numbers are cheaper.
        number = (1 << width) - number
        sign, right = "+" if sign == "-" else "-", hex(number)
    if number == 0 and sign != "*":
        return a
    wrapped = f"({a.wrapped} {sign} {right})"
    return Text(f"({wrapped} & {(1 << width) - 1:#x})", width, wrapped=wrapped if width == 64 else None)
