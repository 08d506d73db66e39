"""What to tell the person who explores an agent: which function costs a path for every value that it can give.

An index that a hash was mixed into is pinned, and each of its values is a path. Where that happens again and again,
the run is made once more and watched: which function's result is part of the pinned address? It, or the multiplication
that is part of it where the hash was inlined, is what a profile can replace by a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.frozen import Snapshot
from harness.kernel.kernel import Kernel
from harness.machine.compiler import lift
from harness.machine.ends import BlockLimit, Fault, Trap, Unsupported
from harness.machine.layout import REGISTERS
from harness.machine.values import Sym, Value
from harness.path import Job, Path
from harness.places import function_at, own_address
from harness.stubs import immediate_multiplications
from soft.solve import terms as t
from soft.solve.terms import Term

if TYPE_CHECKING:
    from harness.run import Runner

# A choice of which so many values were followed already is worth a look.
MANY = 16
# A hash has more operations than this; a field that was read and turned around has fewer.
_MIXED = 6
_LARGE = 40
_MIXING = frozenset({"bvmul", "bvxor", "bvadd", "bvsub", "bvshl", "bvlshr", "bvurem", "bvor"})
_MOST_BLOCKS = 3_000_000
_RAX, _RSP = REGISTERS["rax"], REGISTERS["rsp"]


class _Found(Exception):
    """The pin that the job is about: here is what it pinned."""


class _Watched(Path):
    """Follows a job to the choice whose values it enumerates."""

    bound = 0
    pinned: Term | None = None

    def pin(self, value: Sym) -> int:
        before = len(self.decisions)
        result = super().pin(value)
        self._check(before, value.term)
        return result

    def read(self, address: Sym, size: int) -> Value:
        before = len(self.decisions)
        result = super().read(address, size)
        self._check(before, address.term)
        return result

    def _check(self, before: int, term: Term) -> None:
        if before <= self.bound < len(self.decisions):
            self.pinned = term
            raise _Found


class Advisor:
    """Advice for one runner's snapshot; what was found out about a choice is kept."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[object, str | None] = {}
        self._kinds: dict[int, tuple[str, int]] = {}

    def stub_for(self, job: Job) -> str | None:
        """The `stub` line of a profile that would make this job needless, if it is one of many and there is such."""
        if len(job.taken) < MANY:
            return None
        first = job.taken[0]
        core: object = first.args[0] if first.op == "=" else first.variables
        if core not in self._known:
            self._known[core] = self._find(job)
        return self._known[core]

    def _find(self, job: Job) -> str | None:
        runner, snapshot = self._runner, self._runner.snapshot
        path = _Watched(runner.feasibility, job, runner.machine.memory)
        path.bound = job.bound
        kernel = runner.begin_again(path, job)
        results: list[tuple[int, Term]] = []
        try:
            self._watch(kernel, results)
        except _Found:
            pass
        except (Unsupported, Fault, Trap, BlockLimit, RecursionError):
            return None
        if path.pinned is None:
            return None
        inside = _parts(path.pinned)
        for is_hash in (_is_inside, _is_about_the_same):
            for entry, term in reversed(results):
                if is_hash(term, path.pinned, inside) and (line := _function_stub(snapshot, entry)) is not None:
                    return line
        return _multiplication_stub(snapshot, inside)

    def _watch(self, kernel: Kernel, results: list[tuple[int, Term]]) -> None:
        """Execute, and keep what each function gave that depends on the input: (its entry, its result)."""
        machine = self._runner.machine
        calls: list[int] = []
        ip: Any = self._runner.entry
        for _ in range(_MOST_BLOCKS):
            here = ip
            ip = machine.follow(ip, kernel.special)
            if here.__class__ is not int or ip.__class__ is not int:
                continue
            kind, behind = self._kind(here)
            if kind == "Ijk_Call" and machine.memory.load8(machine.registers[_RSP]) == behind:
                calls.append(ip)
            elif kind == "stub" and calls:
                calls[-1] = ip
            elif kind == "Ijk_Ret" and calls:
                entry, value = calls.pop(), machine.registers[_RAX]
                is_pointer = isinstance(value, Sym) and machine.memory.permissions(value.value >> 12) is not None
                if isinstance(value, Sym) and not is_pointer:
                    results.append((entry, value.term))

    def _kind(self, address: int) -> tuple[str, int]:
        """How a block ends, and where; `stub` is a jump to a library's function, a hook returns by itself."""
        known = self._kinds.get(address)
        if known is None:
            code = self._runner.snapshot.read(address, 64) or b""
            block = lift(code, address) if not self._runner.machine.is_hooked(address) else None
            if block is None:
                known = ("Ijk_Ret", address)
            else:
                is_stub = block.jumpkind == "Ijk_Boring" and block.next.tag != "Iex_Const" and block.instructions <= 2
                known = ("stub" if is_stub else block.jumpkind, address + block.size)
            self._kinds[address] = known
        return known


def _function_stub(snapshot: Snapshot, entry: int) -> str | None:
    name = function_at(snapshot, entry)
    if name is not None:
        return f"{name}=0"
    own = own_address(snapshot, entry)
    return f"{own:#x}=0" if own is not None else None


def _multiplication_stub(snapshot: Snapshot, inside: set[Term]) -> str | None:
    """A hash that was inlined: the last multiplication by a number that stands in the program's code."""
    code = [r.content for r in snapshot.regions if r.name == snapshot.executable and "x" in r.permissions and r.content]
    factors = {int(arg.args[0]) for term in inside if term.op == "bvmul" for arg in term.args if arg.op == "const"}
    for factor in sorted(factors, reverse=True):
        number = factor & 0xFFFFFFFF
        if number > 1 << 16 and any(next(immediate_multiplications(part, number), None) is not None for part in code):
            return f"imul:{number:#x}"
    return None


def _parts(term: Term) -> set[Term]:
    seen: set[Term] = set()
    stack = [term]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(arg for arg in node.args if arg.__class__ is Term)
    return seen


def _is_inside(result: Term, pinned: Term, inside: set[Term]) -> bool:
    """A function's result is part of what was pinned, and more than a field that was read."""
    parts = [result, t.extract(31, 0, result)] if result.width == 64 else [result]
    is_part = any(part in inside for part in parts)
    return is_part and sum(part.op in _MIXING for part in _parts(result)) >= _MIXED


def _is_about_the_same(result: Term, pinned: Term, inside: set[Term]) -> bool:
    """The same where simplification has taken them apart: a large term over the same inputs."""
    return result.variables == pinned.variables and len(_parts(result)) >= _LARGE
