"""angr's stock engine in place of compiled blocks: the oracle behind `soft explore --engine angr`.

Everything that gives an instruction its meaning is angr's: lifting, operations, condition codes, registers and
expressions. The modelled kernel, the memory and the search are the same as always, and the conditions of a path come
from the guards that angr computes. It executes about a thousandth of the blocks a second and must find the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

# angr complains while it is imported that its other engine is not there.
logging.getLogger("angr").setLevel(logging.CRITICAL)
logging.getLogger("angr.state_plugins.unicorn_engine").setLevel(logging.CRITICAL)

import angr  # noqa: E402
import claripy  # noqa: E402
from angr.engines.successors import SimSuccessors  # noqa: E402
from angr.engines.vex import HeavyVEXMixin  # noqa: E402
from angr.engines.vex.heavy.heavy import VEXEarlyExit  # noqa: E402

from harness.frozen import Snapshot  # noqa: E402
from harness.machine.bridge import from_claripy, to_claripy  # noqa: E402
from harness.machine.compiler import MOST_BYTES, REGISTER_SLOTS, REGISTERS, Block  # noqa: E402
from harness.machine.ends import Unsupported  # noqa: E402
from harness.machine.layout import PLAIN_JUMPS  # noqa: E402
from harness.machine.machine import Machine  # noqa: E402
from harness.machine.memory import PageSource  # noqa: E402
from harness.machine.operations import operation  # noqa: E402
from harness.machine.values import Value, concrete, make, term_of  # noqa: E402
from harness.run import Runner  # noqa: E402
from soft.solve.evaluate import evaluate  # noqa: E402
from soft.solve.terms import Term  # noqa: E402

_IP = REGISTERS["rip"]
# VEX's guest state has no more than these; the last two slots are ours, so that a vector may end there.
_SLOTS = REGISTER_SLOTS - 2


class StockRunner(Runner):
    """Runs jobs as Runner does, block by block in angr's engine."""

    def make_machine(self, snapshot: Snapshot) -> Machine:
        return StockMachine(snapshot.page)


class StockMachine(Machine):
    """A machine whose blocks are angr's. Registers go to its state before a block and come back behind it."""

    def __init__(self, source: PageSource) -> None:
        super().__init__(source)
        self._project = angr.load_shellcode(b"\xc3", "AMD64")
        self._engine = _Engine(self._project, self)
        self._state = self._project.factory.blank_state(add_options=_OPTIONS)
        self._shown: list[Value | None] = [None] * REGISTER_SLOTS
        self._values: dict[Term, int] = {}
        self._asts: dict[Term, Any] = {}
        self._terms: dict[Any, Term] = {}

    def reset(self, registers: list[Value], unwritten: range = range(0)) -> None:
        super().reset(registers, unwritten)
        self._values.clear()

    def _compile(self, address: int) -> Block:
        irsb = self._project.factory.block(address, insn_bytes=self._code(address)[:MOST_BYTES], opt_level=1).vex
        changed = _changed_slots(irsb)

        def block() -> Any:
            self._show_registers()
            target, kind = self._engine.follow(self._state, irsb)
            self._fetch_registers(changed)
            return target if kind in PLAIN_JUMPS else (target, kind)

        self.blocks[address] = block
        self._covered[address] = irsb.size
        return block

    def _show_registers(self) -> None:
        """Give angr's state the registers that it does not know yet."""
        for slot in range(_SLOTS):
            value = self.registers[slot]
            known = self._shown[slot]
            if value is not known and slot != _IP and (known.__class__ is not int or value != known):
                self._state.registers.store(8 * slot, self.to_ast(value, 64), endness="Iend_LE")
                self._shown[slot] = value

    def _fetch_registers(self, slots: Iterable[int]) -> None:
        for slot in slots:
            ast = self._state.registers.load(8 * slot, 8, endness="Iend_LE")
            self.registers[slot] = self._shown[slot] = self.to_value(ast)

    # ---------------------------------------------------------------------------------------------- values

    def to_ast(self, value: Value, width: int) -> Any:
        return claripy.BVV(value, width) if isinstance(value, int) else to_claripy(term_of(value, width), self._asts)

    def to_value(self, ast: Any) -> Value:
        """An expression as an integer, or as a term beside its value in this run."""
        if ast.op == "BVV":
            return int(ast.args[0])
        return self._evaluated(from_claripy(ast, self._terms))

    def _evaluated(self, term: Term) -> Value:
        if term.op == "const":
            return int(term.args[0])
        return make(term, evaluate(term, self._inputs, self._values))

    @property
    def _inputs(self) -> Any:
        return self.decisions.values  # type: ignore[union-attr]

    def decide(self, guard: Any) -> bool:
        """Which way a guard goes in this run; a condition of the path where it depends on the input."""
        condition = from_claripy(guard, self._terms)
        if condition.op == "const":
            return bool(condition.args[0])
        holds = bool(evaluate(condition, self._inputs, self._values))
        assert self.decisions is not None
        self.decisions.branch(condition, holds)
        return holds

    def divide(self, op: str, dividend: Value, divisor: Value) -> None:
        """The processor's trap, which angr leaves out: raised where the quotient does not fit, a condition else."""
        self._division(op, dividend, divisor)
        operation(op).concrete(concrete(dividend), concrete(divisor))


_OPTIONS = {
    angr.options.ZERO_FILL_UNCONSTRAINED_MEMORY,
    angr.options.ZERO_FILL_UNCONSTRAINED_REGISTERS,
    angr.options.LAZY_SOLVES,
}


class _Engine(HeavyVEXMixin):  # type: ignore[misc]
    """angr's engine over VEX, following the exits that the input takes; memory is the machine's."""

    def __init__(self, project: Any, machine: StockMachine) -> None:
        super().__init__(project)
        self._machine = machine

    def follow(self, state: Any, irsb: Any) -> tuple[Value, str]:
        """Execute a block: where it goes, and by which kind of jump."""
        if irsb.jumpkind == "Ijk_NoDecode" and not irsb.size:
            return irsb.addr, irsb.jumpkind
        self.state = state
        self.successors = SimSuccessors(irsb.addr, state)
        self.successors.artifacts["insn_addrs"] = []
        state.scratch.guard = claripy.true()
        state.scratch.bbl_addr = irsb.addr
        state.scratch.irsb = irsb
        state.scratch.set_tyenv(irsb.tyenv)
        try:
            self.handle_vex_block(irsb)
        except VEXEarlyExit:
            pass
        except (angr.errors.SimError, claripy.errors.ClaripyError) as error:
            raise Unsupported(f"something in angr's engine ({error})") from None
        target, kind = self._exit
        return self._machine.to_value(target), kind

    # What the engine calls, with our meaning. Names and arguments are angr's.

    def _perform_vex_expr_Load(self, addr: Any, ty: str, endness: str, **_: Any) -> Any:
        size = self._ty_to_bytes(ty)
        value = self._machine.memory.load(self._machine.to_value(addr), size)
        ast = self._machine.to_ast(value, 8 * size)
        return ast.raw_to_fp() if ty in ("Ity_F32", "Ity_F64") else ast

    def _perform_vex_stmt_Store(self, addr: Any, data: Any, endness: str, condition: Any = None, **_: Any) -> None:
        if condition is None or self._machine.decide(condition):
            bits = data.raw_to_bv()
            value = self._machine.to_value(bits)
            self._machine.memory.store(self._machine.to_value(addr), value, len(bits) // 8)

    def _perform_vex_expr_Op(self, op: str, args: Any) -> Any:
        if "Div" in op and not op.startswith("Iop_DivF"):
            dividend, divisor = (self._machine.to_value(each) for each in args)
            self._machine.divide(op, dividend, divisor)
        return super()._perform_vex_expr_Op(op, args)

    def _perform_vex_stmt_Exit(self, guard: Any, target: Any, jumpkind: str) -> None:
        if self._machine.decide(guard != 0):
            self._exit = (target, jumpkind)
            raise VEXEarlyExit

    def _perform_vex_defaultexit(self, expr: Any, jumpkind: str) -> None:
        self._exit = (self.state.regs.ip if expr is None else expr, jumpkind)


def _changed_slots(irsb: Any) -> list[int]:
    """The slots of the registers that a block writes."""
    changed: set[int] = set()
    for statement in irsb.statements:
        if statement.tag == "Ist_Put":
            size = statement.data.result_size(irsb.tyenv) // 8
            changed.update(range(statement.offset // 8, (statement.offset + max(size, 1) - 1) // 8 + 1))
        elif statement.tag in ("Ist_PutI", "Ist_Dirty"):
            return [slot for slot in range(_SLOTS) if slot != _IP]
    return sorted(changed - {_IP})


