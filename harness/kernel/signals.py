"""Signals: handlers, masks, the interval timer, and running a handler in the agent."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.frozen import Snapshot
from harness.kernel.clock import MILLISECOND, from_parts, later, split
from harness.kernel.endings import Crashed
from harness.kernel.errno import EINTR, EINVAL
from harness.kernel.table import constant, syscall
from harness.machine.compiler import REGISTERS
from harness.machine.ends import Unsupported
from harness.machine.values import Value, concrete

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

RAX, RSP, RDI, RSI, RDX = (REGISTERS[name] for name in ("rax", "rsp", "rdi", "rsi", "rdx"))
_MASK64 = (1 << 64) - 1
_RED_ZONE = 128
# Room for siginfo and ucontext, which a handler may read; they are zero but for the signal's number.
_FRAME = 1024
_DEFAULT, _IGNORE = 0, 1
_SA_ONSTACK, _SA_RESTART, _SA_NODEFER, _SA_RESETHAND = 0x08000000, 0x10000000, 0x40000000, 0x80000000
_IGNORED_BY_DEFAULT = {signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT}


@dataclass(frozen=True, slots=True)
class Handler:
    """A signal's disposition, as sigaction has it."""

    address: int = _DEFAULT
    flags: int = 0
    restorer: int = 0
    mask: int = 0


@dataclass(frozen=True, slots=True)
class _Frame:
    registers: tuple[Value, ...]
    address: int | None
    """Where to go on; None if the processor could not."""
    blocked: int


class Signals:
    """The signal state of the thread that runs."""

    def __init__(self, snapshot: Snapshot) -> None:
        frozen = snapshot.signals
        self.handlers: dict[int, Handler] = {
            number: Handler(action.handler, action.flags, action.restorer, action.mask)
            for number, action in frozen.actions.items()
        }
        self.handlers |= {number: Handler(_IGNORE) for number in range(1, 65) if frozen.ignored >> (number - 1) & 1}
        self._unknown = frozen.caught & ~sum(1 << (number - 1) for number in frozen.actions)
        self.blocked = frozen.blocked
        self._waiting: list[int] = []
        self._frames: list[_Frame] = []
        self.alarm: Value | None = None
        self.interval: Value = 0
        self.resumed: int | None = None
        if frozen.alarm_ns:
            self.alarm = snapshot.monotonic_ns // MILLISECOND + -(-frozen.alarm_ns // MILLISECOND)
            self.interval = -(-frozen.alarm_interval_ns // MILLISECOND)

    def state(self) -> tuple[object, ...]:
        """All but the time of the next alarm."""
        interval = self.interval if isinstance(self.interval, int) else self.interval.term
        waiting, handlers = tuple(self._waiting), tuple(self.handlers.items())
        return self.blocked, waiting, len(self._frames), self.alarm is None, interval, handlers

    def rewrite(self, change: Callable[[Value], Value]) -> None:
        """Put other terms in place of some; their values in this run are the same."""
        self.alarm = None if self.alarm is None else change(self.alarm)
        self.interval = change(self.interval)
        self._frames = [replace(frame, registers=tuple(map(change, frame.registers))) for frame in self._frames]

    def ring(self) -> None:
        """The interval timer expires."""
        assert self.alarm is not None
        self.alarm = later(self.alarm, self.interval) if concrete(self.interval) else None
        self.send(int(signal.SIGALRM))

    def send(self, number: int) -> None:
        """A signal for the agent itself; one with the default action ends it."""
        handler = self.handlers.get(number, Handler())
        if number not in self.handlers and self._unknown >> (number - 1) & 1:
            raise Unsupported(f"a handler for {signal.Signals(number).name} that the frozen process did not tell")
        if handler.address == _IGNORE or (handler.address == _DEFAULT and number in _IGNORED_BY_DEFAULT):
            return
        if handler.address == _DEFAULT and not self.blocked >> (number - 1) & 1:
            raise Crashed(signal.Signals(number).name)
        if number not in self._waiting:
            self._waiting.append(int(number))

    def pending(self) -> int | None:
        """A signal whose handler may run now."""
        for number in self._waiting:
            if not self.blocked >> (number - 1) & 1:
                return number
        return None

    def waiting(self) -> int:
        """The signals that are blocked and have come, as a mask."""
        return sum(1 << (number - 1) for number in self._waiting)

    def forget_ignored(self, number: int) -> None:
        """A signal that waits and is ignored from now on does not come any more."""
        if number in self._waiting and self.handlers[number].address == _IGNORE:
            self._waiting.remove(number)

    def restarts(self, number: int) -> bool:
        """Whether a call that this signal's handler interrupts is made again."""
        return bool(self.handlers.get(number, Handler()).flags & _SA_RESTART)

    def enter_fault(self, kernel: Kernel, name: str) -> int:
        """Run the handler of a signal that the processor raised in the agent's own code."""
        number = int(signal.Signals[name])
        if number not in self.handlers and self._unknown >> (number - 1) & 1:
            raise Unsupported(f"a handler for {name} that the frozen process did not tell")
        handler = self.handlers.get(number, Handler())
        if handler.address in (_DEFAULT, _IGNORE) or self.blocked >> (number - 1) & 1:
            raise Crashed(name)
        if handler.flags & _SA_ONSTACK:
            raise Unsupported(f"a handler for {name} on a stack of its own")
        self._waiting.append(number)
        return self.enter(kernel, number, None, None)

    def enter(self, kernel: Kernel, number: int, address: int | None, result: int | None) -> int:
        """Run the handler of a signal: the frame is ours, and rt_sigreturn gives everything back."""
        self._waiting.remove(number)
        handler = self.handlers.get(number, Handler())
        if handler.address == _DEFAULT:
            raise Crashed(signal.Signals(number).name)
        if not handler.restorer:
            raise Unsupported("a signal handler without a restorer")
        machine = kernel.machine
        if result is not None:
            machine.registers[RAX] = result & _MASK64
        self._frames.append(_Frame(tuple(machine.registers), address, self.blocked))
        self.blocked |= handler.mask if handler.flags & _SA_NODEFER else handler.mask | 1 << (number - 1)
        if handler.flags & _SA_RESETHAND:
            self.handlers[number] = Handler()
        stack = (machine.pin(machine.registers[RSP]) - _RED_ZONE - _FRAME) & ~15
        kernel.memory.write(stack, number.to_bytes(4, "little") + bytes(_FRAME - 4))
        machine.registers[RDI] = number
        machine.registers[RSI] = stack
        machine.registers[RDX] = stack + 128
        kernel.memory.store8(stack - 8, handler.restorer)
        machine.registers[RSP] = stack - 8
        machine.registers[RAX] = 0
        return handler.address

    def leave(self, kernel: Kernel) -> None:
        frame = self._frames.pop()
        if frame.address is None:
            raise Unsupported("going on behind an instruction that the processor refused")
        kernel.machine.registers[:] = frame.registers
        self.blocked = frame.blocked
        self.resumed = frame.address


@syscall(13, 4)
def rt_sigaction(kernel: Kernel, number: int, new: int, old: int, size: int) -> int:
    memory, signals = kernel.memory, kernel.signals
    if size != 8 or not 1 <= number <= 64:
        return EINVAL
    if old:
        known = signals.handlers.get(number, Handler())
        for offset, value in enumerate((known.address, known.flags, known.restorer, known.mask)):
            memory.store8(old + 8 * offset, value)
    if new and number in (signal.SIGKILL, signal.SIGSTOP):
        return EINVAL
    if new:
        parts = [kernel.machine.pin(memory.load8(new + 8 * offset)) for offset in range(4)]
        signals.handlers[number] = Handler(*parts)
        signals.forget_ignored(number)
    return 0


@syscall(14, 4)
def rt_sigprocmask(kernel: Kernel, how: int, new: int, old: int, size: int) -> int:
    signals = kernel.signals
    before = signals.blocked
    if new:
        mask = kernel.machine.pin(kernel.memory.load8(new))
        if how not in (0, 1, 2):
            return EINVAL
        signals.blocked = (before | mask, before & ~mask, mask)[how]
    if old:
        kernel.memory.store8(old, before)
    return 0


@syscall(15, 0)
def rt_sigreturn(kernel: Kernel) -> int:
    kernel.signals.leave(kernel)
    return 0


@syscall(127, 2)
def rt_sigpending(kernel: Kernel, place: int, size: int) -> int:
    kernel.memory.store8(place, kernel.signals.waiting())
    return 0


@syscall(34, 0)
def pause(kernel: Kernel) -> int:
    kernel.wait(lambda: False, None)
    return EINTR


@syscall(130, 2)
def rt_sigsuspend(kernel: Kernel, mask: int, size: int) -> int:
    signals = kernel.signals
    before, signals.blocked = signals.blocked, kernel.machine.pin(kernel.memory.load8(mask))
    try:
        kernel.wait(lambda: False, None)
    finally:
        signals.blocked = before
    return EINTR


@syscall(36, 2)
def getitimer(kernel: Kernel, which: int, place: int) -> int:
    signals = kernel.signals
    left = 0
    if which == 0 and signals.alarm is not None:
        left = max(1, concrete(signals.alarm) - concrete(kernel.clock.now))
    for offset, value in enumerate((signals.interval if which == 0 else 0, left)):
        seconds, micro = split(value, 1000)
        kernel.memory.store8(place + 16 * offset, seconds)
        kernel.memory.store8(place + 16 * offset + 8, micro)
    return 0


@syscall(38, 3)
def setitimer(kernel: Kernel, which: int, new: int, old: int) -> int:
    if which != 0:
        raise Unsupported("an interval timer other than ITIMER_REAL")
    if old:
        getitimer(kernel, which, old)
    if new:
        load = kernel.memory.load8
        interval = from_parts(load(new), load(new + 8), 1000)
        value = from_parts(load(new + 16), load(new + 24), 1000)
        kernel.signals.interval = interval
        kernel.signals.alarm = later(kernel.clock.now, value) if concrete(value) else None
    return 0


@syscall(37, 1)
def alarm(kernel: Kernel, seconds: int) -> int:
    signals = kernel.signals
    left = 0
    if signals.alarm is not None:
        left = -(-(concrete(signals.alarm) - concrete(kernel.clock.now)) // 1000)
    signals.alarm = later(kernel.clock.now, 1000 * seconds) if seconds else None
    signals.interval = 0
    return left


def _kill(kernel: Kernel, process: int, number: int) -> int:
    if number == 0:
        return 0
    if process in (0, kernel.snapshot.pid, kernel.snapshot.main):
        kernel.signals.send(number)
        return 0
    raise Unsupported("a signal to another process or thread")


@syscall(62, 2)
def kill(kernel: Kernel, process: int, number: int) -> int:
    return _kill(kernel, process, number)


@syscall(200, 2)
def tkill(kernel: Kernel, thread: int, number: int) -> int:
    return _kill(kernel, thread, number)


@syscall(234, 3)
def tgkill(kernel: Kernel, group: int, thread: int, number: int) -> int:
    return _kill(kernel, thread, number)


constant(131, "sigaltstack", 0, 2)
