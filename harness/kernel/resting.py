"""What an agent is while it waits: all that its next tick may depend on, and how that differs from tick to tick."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from harness.kernel import descriptions as d
from harness.kernel.clock import until
from harness.kernel.onset import COUNT, COUNT_NAME, OFFSET, OFFSET_NAME, RESERVED, depends
from harness.machine.layout import REGISTER_SLOTS, REGISTERS
from harness.machine.values import Sym, Value, concrete, make, term_of
from harness.pieces import rebuilt
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.solve.vector import evaluate_vector

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

# The places in which a timer's deadline stands, besides the descriptors of timers.
ALARM, CALL, _THREADS = -1, -2, -3
_ANYWHERE = 0
# Bytes that may differ between two ticks: clocks and counters, not tables.
_MOST_CHANGED = 2048
RSP = REGISTERS["rsp"]
# What a system call does not keep, and what no compiler keeps over one.
_DEAD = frozenset(REGISTERS[name] for name in ("rcx", "r11", "cc_op", "cc_dep1", "cc_dep2", "cc_ndep"))
_RED_ZONE = 128
_STACK = 1 << 20


@dataclass(frozen=True, slots=True)
class Resting:
    """An agent that waits. Bytes, registers and deadlines may be terms over OFFSET and COUNT: then it is many of them,
    one for each tick."""

    now: Value
    registers: tuple[Value, ...]
    pages: dict[int, bytes]
    symbols: dict[int, tuple[Term, int]]
    deadlines: dict[int, Value]
    others: tuple[object, ...]

    def alike(self, other: Resting) -> bool:
        """Whether the two differ in bytes, registers and times only."""
        return (
            self.others == other.others
            and self.pages.keys() == other.pages.keys()
            and self.deadlines.keys() == other.deadlines.keys()
        )

    def changed(self, later: Resting) -> list[int] | None:
        """The addresses of bytes that differ and are no terms over the time; None if there are many."""
        found: list[int] = []
        for page, content in self.pages.items():
            there = later.pages[page]
            if content != there:
                found += [page << 12 | i for i in range(len(content)) if content[i] != there[i]]
                if len(found) > _MOST_CHANGED:
                    return None
        return [at for at in found if not self._is_dead(at) and not _on_time(later.symbols.get(at))]

    def _is_dead(self, address: int) -> bool:
        """Whether a byte is below a thread's stack, where whoever is called next finds anything."""
        stacks = self.registers[RSP::REGISTER_SLOTS]
        return any(isinstance(at, int) and at - _STACK <= address < at - _RED_ZONE for at in stacks)

    def counting(self, later: Resting, period: int, sizes: Mapping[int, int]) -> Resting | None:
        """The later of two, with what differs between them taken for counters. None if it cannot be.

        `sizes` has the counters' sizes in bytes, by place; those that are not in it have eight.
        """
        changed = self.changed(later)
        if changed is None:
            return None
        symbols, places = dict(later.symbols), set()
        for at in changed:
            size = sizes.get(at, 8)
            places.add((at - at % size, size))
        for start, size in places:
            if any(at in symbols for at in range(start, start + size)):
                return None
            before, after = _word(self.pages, start, size), _word(later.pages, start, size)
            term = t.add(t.const(after, 8 * size), _growth(after - before, period, 8 * size))
            symbols |= {start + i: (term, i) for i in range(size)}
        registers = list(later.registers)
        for slot, (old, new) in enumerate(zip(self.registers, later.registers, strict=True)):
            if isinstance(old, int) and isinstance(new, int) and old != new and not _is_dead_register(slot):
                size = sizes.get(_place_of(slot), 8)
                grown = t.add(t.const(new, 8 * size), _growth(new - old, period, 8 * size))
                registers[slot] = Sym(t.zero_extend(64 - 8 * size, grown), new)
        deadlines = dict(later.deadlines)
        for place, deadline in later.deadlines.items():
            if not _is_timed(deadline) and until(deadline, self.deadlines[place]) == period:
                deadlines[place] = _sum(deadline, OFFSET)
        return replace(later, registers=tuple(registers), symbols=symbols, deadlines=deadlines)

    def sizes(self, places: Iterable[int]) -> dict[int, int]:
        """The sizes in bytes with which what stands in some places was written there last."""
        found: dict[int, int] = {}
        for place in places:
            if place in self.symbols:
                found[place] = max(1, min(8, self.symbols[place][0].width // 8))
            elif place < 0 and isinstance(value := self.registers[_place_of(place)], Sym):
                found[place] = 4 if value.term.most < 1 << 32 else 8
        return found

    def moving(self, due: Value) -> Resting:
        """As if nothing but a timer that is due went on with the time."""
        moving = {place: deadline for place, deadline in self.deadlines.items() if until(deadline, due) == 0}
        return replace(self, deadlines={**self.deadlines, **{p: _sum(v, OFFSET) for p, v in moving.items()}})

    def recurs(self, later: Resting, period: int, most: int) -> bool:
        """Whether the later one is this one, a tick on, at each of `most` ticks."""
        alike = Alike(period, most)
        return all(terms is not None and alike(*terms) for _, terms in self._parting(later, period))

    def parts_from(self, later: Resting, period: int) -> list[int]:
        """The places in which the later one is not this one, a tick on; or other terms at least."""
        return [place for place, _ in self._parting(later, period)]

    def _parting(self, later: Resting, period: int) -> Iterator[tuple[int, tuple[Term, Term] | None]]:
        """The places in which the later one has something else, a tick on, with both terms if they are terms."""
        changed = self.changed(later)
        if changed is None:
            yield _ANYWHERE, None
            return
        yield from ((at, None) for at in changed)
        shift = Shift.by(period)
        for at in self.symbols.keys() | later.symbols.keys():
            mine, other = self.symbols.get(at), later.symbols.get(at)
            if (mine == other and not _on_time(mine)) or self._is_dead(at):
                continue
            if mine is None or other is None:
                yield at, None
                continue
            shifted, new = _byte(shift(mine[0]), mine[1]), _byte(*other)
            if shifted is not new:
                yield at, (shifted, new)
        pairs = [
            (_place_of(slot), value, later.registers[slot])
            for slot, value in enumerate(self.registers)
            if not _is_dead_register(slot)
        ]
        pairs += [(_ANYWHERE, deadline, later.deadlines[place]) for place, deadline in self.deadlines.items()]
        for place, value, after in pairs:
            if isinstance(value, Sym) and isinstance(after, Sym):
                if (shifted := shift(value.term)) is not after.term:
                    yield place, (shifted, after.term)
            elif isinstance(value, Sym) or isinstance(after, Sym) or value != after:
                yield place, None


class Shift:
    """Terms over OFFSET and COUNT at another tick."""

    def __init__(self, offset: Term, count: Term) -> None:
        # The 64 bits are replaced as a whole: a sum in fewer bits might wrap.
        self._memo: dict[Term, Term] = {
            OFFSET: offset, t.var(OFFSET_NAME, 32): t.extract(31, 0, offset), COUNT: count
        }  # fmt: skip

    @classmethod
    def by(cls, period: int) -> Shift:
        """A tick on. The parts of a sum are sums, as in a counter that has few bits."""
        shift = cls(t.add(OFFSET, t.const(period, 64)), t.add(COUNT, t.const(1, 64)))
        for width in (8, 16, 32):
            for base, by in ((OFFSET, period), (COUNT, 1)):
                narrow = t.extract(width - 1, 0, base)
                shift._memo[narrow] = t.add(narrow, t.const(by, width))
        return shift

    def __call__(self, term: Term) -> Term:
        return rebuilt(term, self._memo) if depends(term) else term


class Alike:
    """Whether two terms have the same value at each of so many ticks.

    Seconds and parts of them are quotients and remainders of the time: what an agent has computed from these at one
    tick and at the next are different terms, and the same numbers.
    """

    def __init__(self, period: int, most: int) -> None:
        self._ticks = np.arange(most + 1, dtype=np.uint64)
        self._values = {OFFSET_NAME: self._ticks * np.uint64(period), COUNT_NAME: self._ticks}
        self._known: dict[tuple[Term, Term], bool] = {}

    def __call__(self, first: Term, second: Term) -> bool:
        if not first.variables | second.variables <= RESERVED or first.width != second.width:
            return False
        key = first, second
        if key not in self._known:
            one, other = (evaluate_vector(term, self._values) for term in key)
            self._known[key] = one is not None and other is not None and bool(np.array_equal(one, other))
        return self._known[key]


def capture(kernel: Kernel, now: Value, deadline: Value | None) -> Resting:
    memory, outside, signals = kernel.memory, kernel.outside, kernel.signals
    deadlines = {n: x.deadline for n, x in kernel.table.items() if isinstance(x, d.Timer) and x.deadline is not None}
    if signals.alarm is not None:
        deadlines[ALARM] = signals.alarm
    if deadline is not None:
        deadlines[CALL] = deadline
    registers = list(kernel.machine.registers)
    for number, sleeper in enumerate(kernel.threads.sleepers):
        registers += sleeper.registers
        if sleeper.deadline is not None:
            deadlines[_THREADS - number] = sleeper.deadline
    others = (
        *((sleeper.address, sleeper.ready()) for sleeper in kernel.threads.sleepers),
        *(_description(number, each) for number, each in kernel.table.items()),
        signals.state(),
        (outside.step, len(outside.events), outside.written, outside.closed),
        (kernel.brk, kernel.next_mapping, tuple(memory.mapped.items())),
    )
    pages = {page: bytes(content) for page, content in memory.written.items()}
    return Resting(now, tuple(registers), pages, dict(memory.symbols), deadlines, others)


def install(kernel: Kernel, state: Resting, move: Shift | None = None) -> Value | None:
    """Put what depends on the time into a kernel that is in this state otherwise: as it is at OFFSET, or moved.

    Gives the deadline of the call in which the agent waits.
    """
    values = getattr(kernel.machine.decisions, "values", {})

    def at(value: Value) -> Value:
        if not isinstance(value, Sym) or move is None or not depends(value.term):
            return value
        term = move(value.term)
        return make(term, evaluate(term, values))

    for start, size, term in _runs(state.symbols):
        kernel.memory.store(start, at(Sym(term, 0)) if move else Sym(term, _word(state.pages, start, size)), size)
    registers = [at(value) for value in state.registers]
    kernel.machine.registers[:] = registers[:REGISTER_SLOTS]
    deadlines = {place: at(deadline) for place, deadline in state.deadlines.items()}
    for number, timer in kernel.table.items():
        if isinstance(timer, d.Timer) and number in deadlines:
            timer.deadline = deadlines[number]
    kernel.signals.alarm = deadlines.get(ALARM)
    for number, sleeper in enumerate(kernel.threads.sleepers):
        sleeper.registers = registers[(number + 1) * REGISTER_SLOTS : (number + 2) * REGISTER_SLOTS]
        sleeper.deadline = deadlines.get(_THREADS - number)
    return deadlines.get(CALL)


def clean(kernel: Kernel, change: Callable[[Term], Term]) -> None:
    """Change every term over OFFSET and COUNT that the kernel holds."""

    def of(value: Value) -> Value:
        return make(change(value.term), value.value) if isinstance(value, Sym) and depends(value.term) else value

    kernel.memory.rewrite(depends, change)
    kernel.machine.registers[:] = [of(value) for value in kernel.machine.registers]
    for timer in kernel.table.values():
        if isinstance(timer, d.Timer) and timer.deadline is not None:
            timer.deadline = of(timer.deadline)
        elif isinstance(timer, d.PipeEnd):
            timer.rewrite(of)
    kernel.signals.rewrite(of)
    for sleeper in kernel.threads.sleepers:
        sleeper.registers = [of(value) for value in sleeper.registers]
        sleeper.deadline = None if sleeper.deadline is None else of(sleeper.deadline)
    kernel.clock.now = of(kernel.clock.now)


def _description(number: int, each: d.Description) -> tuple[object, ...]:
    state: tuple[object, ...] = (number, id(each), each.readable(), each.writable(), each.unread())
    if isinstance(each, d.Timer):
        return (*state, each.deadline is None, each.interval, each.ticks)
    if isinstance(each, d.EventCounter):
        return (*state, each.count)
    if isinstance(each, d.Epoll):
        return (*state, *((n, i.events, i.data, i.seen != i.description.arrivals) for n, i in each.interests.items()))
    return state


def _runs(symbols: dict[int, tuple[Term, int]]) -> Iterator[tuple[int, int, Term]]:
    """(address, size, term) of each stretch of bytes that depends on the time and stands together in one term."""
    pending = sorted(at for at, (term, _) in symbols.items() if depends(term))
    index = 0
    while index < len(pending):
        start = pending[index]
        term, low = symbols[start]
        size = 1
        while index + size < len(pending) and symbols.get(start + size) == (term, low + size):
            size += 1
        yield start, size, t.extract(8 * (low + size) - 1, 8 * low, term)
        index += size


def _growth(by: int, period: int, width: int) -> Term:
    """What a counter has grown by since this tick: with the time if it can be, as that is a sum like others."""
    factor, base = (by // period, OFFSET) if by % period == 0 else (by, COUNT)
    narrow = t.extract(width - 1, 0, base)
    return t.mul(narrow, t.const(factor, width))


def _byte(term: Term, index: int) -> Term:
    return t.extract(8 * index + 7, 8 * index, term)


def _word(pages: dict[int, bytes], start: int, size: int) -> int:
    data = bytes(pages[at >> 12][at & 4095] for at in range(start, start + size))
    return int.from_bytes(data, "little")


def _on_time(symbol: tuple[Term, int] | None) -> bool:
    return symbol is not None and depends(symbol[0])


def _is_timed(value: Value) -> bool:
    return isinstance(value, Sym) and depends(value.term)


def _is_dead_register(slot: int) -> bool:
    return slot % REGISTER_SLOTS in _DEAD


def _place_of(slot: int) -> int:
    """A register among the places, which are addresses otherwise; and back."""
    return -1 - slot


def _sum(value: Value, term: Term) -> Value:
    return Sym(t.add(term_of(value, 64), term), concrete(value))


__all__ = ["ALARM", "CALL", "Resting", "Shift", "capture", "clean", "install"]
