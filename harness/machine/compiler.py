"""One VEX block becomes one Python function.

The function takes nothing and returns the next address; or a tuple (next address, jump kind) where something other
than a jump has to happen, such as a system call; or a symbolic pair where the next address depends on the input.
Registers and memory accessors are bound as default arguments: locals are the cheapest names that Python has. Nothing of
one machine is in the function's code, which is kept from one process to the next (cache.py).

A block has two texts: one for integers (integers.py), and one for values of any kind (generic.py), which is compiled
only when a symbolic value reaches the block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from pyvex.errors import LiftingException
from pyvex.lifting.libvex import LibVEXLifter
from pyvex.native import ffi

from harness.machine import flags, operations, values
from harness.machine.cache import Cache
from harness.machine.ends import Unsupported
from harness.machine.generic import Generic, named_operation
from harness.machine.integers import Integers
from harness.machine.layout import ARCH, REGISTER_SLOTS, REGISTERS

# VEX lifts at most this many bytes into one block; a page boundary in between is fine. It wants to see some more, or it
# would take zeros for the rest of an instruction that begins before the limit.
MOST_BYTES = 400
MOST_CODE = MOST_BYTES + 16
MOST_INSTRUCTIONS = 99

Block = Callable[[], Any]
# Names that blocks use so often that they are bound where they are used.
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
    "fork",
    "rest",
)
_WORD = re.compile(r"[a-zA-Z_]\w*")


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
    """Compiles blocks for one machine.

    `bound` has the registers and accessors under the names of BOUND, and `division`, `dirty`, `compare_and_swap`.
    """

    def __init__(self, bound: dict[str, Any], cache: Cache) -> None:
        self._cache = cache
        self._namespace: dict[str, Any] = {
            **operations.EXPRESSION_NAMES,
            **bound,
            "rest": self._rest,
            "apply": operations.apply,
            "apply1": operations.apply1,
            "apply2": operations.apply2,
            "calculate_condition": flags.calculate_condition,
            "calculate_carry": flags.calculate_carry,
            "calculate_all": flags.calculate_all,
            "low_bits": values.low_bits,
            "insert_bits": values.insert_bits,
            "join": values.join,
            "choose": values.choose,
            "Unsupported": Unsupported,
        }
        self._code: dict[int, bytes] = {}
        self._rests: dict[tuple[int, int], Callable[..., Any]] = {}

    def compile(self, code: bytes, address: int) -> tuple[Block, int]:
        """The function for the block at `address`, and how many bytes of code that is."""
        found = self._cache.get("integers", address, code, lambda: _integers(code, address))
        if found is None:
            return lambda: (address, "Ijk_NoDecode"), 0
        self._code[address] = code
        function, size = found
        return self._bind(function), size

    def whole(self, code: bytes, address: int) -> Block:
        """The function for the block at `address`, for values of any kind from its beginning on."""
        return self._generic(code, address, 0, "")

    def _rest(self, address: int, first: int, names: str, *arguments: Any) -> Any:
        """Execute a block from statement `first` on, now that a value turned out symbolic."""
        function = self._rests.get((address, first))
        if function is None:
            function = self._rests[address, first] = self._generic(self._code[address], address, first, names)
        return function(*arguments)

    def _generic(self, code: bytes, address: int, first: int, names: str) -> Callable[..., Any]:
        return self._bind(
            self._cache.get(f"from {first} {names}", address, code, lambda: _generic(code, address, first, names))
        )

    def _bind(self, function: CodeType) -> Callable[..., Any]:
        """The function for this machine."""
        namespace = self._namespace
        for name in function.co_names:
            if name not in namespace and (operation := named_operation(name)) is not None:
                namespace[name] = operation
        parameters = function.co_varnames[: function.co_argcount]
        defaults = tuple([namespace[name] for name in parameters if name in BOUND])
        return FunctionType(function, namespace, "block", defaults)


def _integers(code: bytes, address: int) -> tuple[CodeType, int] | None:
    """A block for integers, and its size; None if there is no instruction that VEX knows."""
    block = lift(code, address)
    if block is None:
        return None
    return _function(Integers(block, address).write(), f"block {address:#x}"), block.size


def _generic(code: bytes, address: int, first: int, names: str) -> CodeType:
    """A block from statement `first` on, for values of any kind, of which the named ones are given."""
    return _function(Generic(lift(code, address)).write(first), f"block {address:#x} from {first}", names)


def _function(lines: list[str], title: str, names: str = "") -> CodeType:
    """The code of a function of the given names, and behind them those of BOUND that it uses."""
    text = "\n ".join(lines)
    words = set(_WORD.findall(text))
    parameters = ", ".join([*filter(None, [names]), *(name for name in BOUND if name in words)])
    module = compile(f"def block({parameters}):\n {text}", title, "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


__all__ = ["ARCH", "MOST_CODE", "REGISTERS", "REGISTER_SLOTS", "Block", "Compiler", "lift"]
