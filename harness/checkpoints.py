"""Moments from which other inputs can go on: a path that shares its beginning with an earlier one does not repeat it.

An input under which all conditions hold that a run has met up to some moment leads to that moment in the same way. So
the run goes on from there, with every value that depends on the input worth what it is under the new one. It must be
the same path as if it had begun at the freeze: nothing may be different but how long it takes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.kernel.kernel import Kernel
from harness.kernel.state import KernelState
from harness.machine.machine import Machine
from harness.machine.memory import MemoryState
from harness.machine.values import Sym, Value, make
from harness.path import Decision, Path, PathState
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

# What all checkpoints of a process may take.
_MOST_BYTES = 192 << 20
# A guess at what a checkpoint takes besides memory pages.
_BASE_SIZE = 50_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run at a system call of its control channel's thread, before the call is made."""

    address: int
    """Where the call is."""
    executed: int
    own: int
    values: Mapping[str, int]
    kernel: Kernel
    registers: tuple[Value, ...]
    memory: MemoryState
    state: KernelState
    path: PathState

    @classmethod
    def of(cls, kernel: Kernel, path: Path, address: int, earlier: Checkpoint | None) -> Checkpoint:
        machine = kernel.machine
        # The block that ends with the call is counted when it is executed again.
        return cls(
            address,
            machine.executed - 1,
            machine.own - 1,
            path.values,
            kernel,
            tuple(machine.registers),
            machine.memory.save(earlier.memory if earlier is not None else None),
            KernelState(kernel),
            path.save(),
        )

    def resume(self, machine: Machine, path: Path, witness: Mapping[str, int], known: Callable[[Term], Term]) -> Kernel:
        """Everything as it was, for the input of another path; `known` puts in what is no input."""
        values = path.values
        changed = frozenset(name for name, value in values.items() if value != self.values[name])
        memo: dict[Term, int] = {}

        def worth(term: Term) -> int | None:
            if changed.isdisjoint(term.variables):
                return None
            return evaluate(known(term), values, memo)

        def change(value: Any) -> Any:
            if value.__class__ is not Sym:
                return value
            number = worth(value.term)
            return value if number is None else make(value.term, number)

        machine.reset([change(value) for value in self.registers])
        machine.memory.restore(self.memory, worth)
        machine.executed, machine.own = self.executed, self.own
        machine.decisions = path
        path.restore(self.path)
        self.state.restore(change)
        self.kernel.goes_on(path.branch, witness)
        return self.kernel


@dataclass(slots=True)
class _Node:
    """Where paths with the same decisions have come to."""

    parent: _Node | None = None
    condition: Term | None = None
    children: dict[Term, _Node] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    wanted: int = 0
    """How many inputs are known that go on from here."""
    is_new: bool = False
    """The run that left the checkpoint is under way: it is taken to be wanted until that run shows its alternatives."""

    @property
    def before(self) -> _Node | None:
        """The one with the checkpoint before this one."""
        node = self.parent
        while node is not None and node.checkpoint is None:
            node = node.parent
        return node

    @property
    def worth(self) -> int:
        """How many blocks more would be executed without the checkpoint."""
        assert self.checkpoint is not None
        before = self.before
        earlier = before.checkpoint.executed if before is not None and before.checkpoint is not None else 0
        return (self.wanted + self.is_new) * (self.checkpoint.executed - earlier)


class Checkpoints:
    """Those of one process, by the decisions that lead to them.

    Where they take more than they may, those go that save the least: a path then begins a bit earlier.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._root = _Node()
        self._most_bytes = most_bytes
        self.size = 0
        """The bytes that they take, about."""
        self._used: OrderedDict[int, _Node] = OrderedDict()
        self._new: list[_Node] = []
        self._parts: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._used)

    def find(self, values: Mapping[str, int]) -> Checkpoint | None:
        """The last one that an input leads to. It is wanted once less from now on."""
        node: _Node | None = self._root if self._used else None
        best: _Node | None = None
        evaluated: dict[Term, int] = {}
        while node is not None:
            if node.checkpoint is not None:
                best = node
            node = next((n for c, n in node.children.items() if evaluate(c, values, evaluated)), None)
        if best is None:
            return None
        best.wanted = max(0, best.wanted - 1)
        self._used.move_to_end(id(best))
        return best.checkpoint

    def add(self, checkpoint: Checkpoint) -> None:
        """Keep one of the run that is under way, in place of an earlier one with the same decisions."""
        node = self._root
        for decision in checkpoint.path.decisions:
            child = node.children.get(decision.condition)
            if child is None:
                child = node.children[decision.condition] = _Node(node, decision.condition)
            node = child
        if node.checkpoint is not None:
            self._forget(node)
        node.checkpoint, node.is_new = checkpoint, True
        self._new.append(node)
        self._used[id(node)] = node
        self._count(checkpoint, 1)
        while self.size > self._most_bytes and len(self._used) > 1:
            least = min((each for each in self._used.values() if each is not node), key=lambda each: each.worth)
            self._forget(least)
            if (before := least.before) is not None:
                before.wanted += least.wanted
            least.wanted = 0
            self._prune(least)

    def settle(self, decisions: Sequence[Decision], shared: Iterable[int]) -> None:
        """The run is over: inputs are known that share so many of its decisions each."""
        for node in self._new:
            node.is_new = False
        self._new.clear()
        nodes = [self._root]
        for decision in decisions:
            child = nodes[-1].children.get(decision.condition)
            if child is None:
                break
            nodes.append(child)
        for number in shared if self._used else ():
            last = nodes[min(number, len(nodes) - 1)]
            start = last if last.checkpoint is not None else last.before
            if start is not None:
                start.wanted += 1

    def _forget(self, node: _Node) -> None:
        assert node.checkpoint is not None
        self._count(node.checkpoint, -1)
        node.checkpoint, node.is_new = None, False
        del self._used[id(node)]

    def _count(self, checkpoint: Checkpoint, by: int) -> None:
        """What a checkpoint shares with others takes its place only once."""
        self.size += by * _BASE_SIZE
        for part, size in checkpoint.memory.parts():
            before = self._parts[part]
            after = self._parts[part] = before + by
            if not before or not after:
                self.size += by * size
            if not after:
                del self._parts[part]

    def _prune(self, node: _Node) -> None:
        """Take away a node that leads nowhere."""
        while node.parent is not None and node.checkpoint is None and not node.children:
            assert node.condition is not None
            del node.parent.children[node.condition]
            node = node.parent


__all__ = ["Checkpoint", "Checkpoints"]
