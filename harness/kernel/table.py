"""The table of system calls: each subject's module registers its functions here by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.machine.values import Value

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

Function = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Call:
    """One system call: how many arguments it takes, and which of them may stay symbolic."""

    name: str
    function: Function
    arguments: int
    symbolic: frozenset[int]


CALLS: dict[int, Call] = {}


def syscall(number: int, arguments: int, symbolic: tuple[int, ...] = ()) -> Callable[[Function], Function]:
    """Register a function(kernel, arguments...) that gives the result, or a negative errno."""

    def register(function: Function) -> Function:
        name = function.__name__.rstrip("_")
        CALLS[number] = Call(name, function, arguments, frozenset(symbolic))
        return function

    return register


def constant(number: int, name: str, result: int, arguments: int = 0) -> None:
    """Register a call whose whole meaning, for an agent that runs alone, is a constant result."""

    def answer(kernel: Kernel, *_: Value) -> int:
        return result

    answer.__name__ = name
    syscall(number, arguments)(answer)
