"""The other threads of an agent: each runs when what it waits for has come, until it waits again.

A thread that looks around every now and then may be what removes a rule that has timed out, another one what carries
packets, and a third one what answers messages that the control channel's thread has only read. They take turns, and
that one comes first; which of two threads would be faster is nothing that we know. A thread that did not wait when the
agent was frozen, or in a call that nothing here ends, stays frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.frozen import Thread
from harness.kernel.endings import Interrupted
from harness.machine.ends import Fault, Trap, Unsupported
from harness.machine.layout import REGISTER_SLOTS, REGISTERS
from harness.machine.values import Value

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

# poll, ppoll, select, pselect6, epoll_wait, epoll_pwait, nanosleep, clock_nanosleep, read, readv, recvfrom, recvmsg,
# futex.
_WAITING = frozenset({7, 271, 23, 270, 232, 281, 35, 230, 0, 19, 45, 47, 202})
# accept, accept4, wait4, waitid: nobody else connects, and no other process ends.
_FOR_EVER = frozenset({43, 288, 61, 247})
# More than a sweep over everything that a thread looks after.
_MOST_BLOCKS = 1_000_000


_GENERAL = (
    "r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rbp", "rbx", "rcx", "rdx", "rsi", "rdi", "rsp", "rax",
)  # fmt: skip


class Switch(Exception):
    """A thread waits: it is somebody else's turn."""


class Sleeper:
    """A thread that waits, and how it goes on: by making its call again."""

    def __init__(self, registers: list[Value], address: int, tid: int) -> None:
        self.registers = registers
        self.address = address
        self.tid = tid
        self.ready: Callable[[], bool] = lambda: True
        """Whether what it waits for is there. At first that is not known: its call tells."""
        self.deadline: Value | None = None
        self.is_due = False
        """Its deadline has come: the call ends, whatever is there."""


class Threads:
    """All threads but the one that owns the control channel; and which thread waits for another one's sign."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.current: Sleeper | None = None
        """The one that runs; None if it is the control channel's."""
        snapshot = kernel.snapshot
        others = [thread for thread in snapshot.threads if thread.tid != snapshot.main]
        self.sleepers = [
            Sleeper(*registers_of(thread), thread.tid) for thread in others if thread.in_syscall in _WAITING
        ]
        self.all_run = all(may_run(thread) for thread in others)
        self._places: dict[int, int] = {}
        """Thread → the futex that it waits at."""
        self._woken: set[int] = set()
        """Those that waited at one and have been woken."""
        self._is_half_done = False
        """The call that a thread makes has changed something already."""

    @property
    def tid(self) -> int:
        """The number of the thread that runs."""
        return self._kernel.snapshot.main if self.current is None else self.current.tid

    def run_ready(self) -> bool:
        """Let a thread run for which something has come. False if there is none."""
        for sleeper in self.sleepers:
            if sleeper.ready():
                self._run(sleeper)
                return True
        return False

    def run_due(self) -> None:
        """Let all threads run whose time has come."""
        clock = self._kernel.clock
        for sleeper in self.sleepers:
            if sleeper.deadline is not None and clock.not_after(sleeper.deadline, clock.now):
                sleeper.is_due = True
                self._run(sleeper)

    def block(self, ready: Callable[[], bool], deadline: Value | None) -> bool:
        """The thread that runs waits, if it must."""
        sleeper = self.current
        assert sleeper is not None
        if ready():
            return True
        if sleeper.is_due:
            return False
        if self._is_half_done:
            raise Unsupported("a thread that waits in the middle of a read")
        sleeper.ready, sleeper.deadline = ready, deadline
        sleeper.registers = list(self._kernel.machine.registers)
        sleeper.address = self._kernel.called_at
        raise Switch

    def half_done(self) -> None:
        """The call that is being made has changed something: it cannot be made again."""
        self._is_half_done = True

    def called(self) -> None:
        """A call was made: that its time had come was said of that one."""
        self._is_half_done = False
        if self.current is not None:
            self.current.is_due = False

    # ---------------------------------------------------------------------------------------------- futexes

    def await_sign(self, place: int, deadline: Value | None) -> bool:
        """Wait at a futex until somebody wakes the thread that runs; False if its time has come before."""
        tid = self.tid
        self._places.pop(tid, None)  # the last in the queue now
        self._places[tid] = place
        try:
            woken = self._kernel.wait(lambda: tid in self._woken, deadline)
        except Interrupted:
            del self._places[tid]
            raise
        self._places.pop(tid, None)
        self._woken.discard(tid)
        return woken

    def has_sign(self) -> bool:
        """Whether the thread that runs was woken while it waited. This is told once."""
        woken = self.tid in self._woken
        self._woken.discard(self.tid)
        return woken

    def wake(self, place: int, most: int) -> int:
        """Wake so many of those that wait at a futex, the first ones first."""
        woken = [tid for tid, each in self._places.items() if each == place][:most]
        for tid in woken:
            del self._places[tid]
        self._woken.update(woken)
        return len(woken)

    def move(self, place: int, to: int, most: int) -> int:
        """Have so many of those that wait at one futex wait at another one."""
        moved = [tid for tid, each in self._places.items() if each == place][:most]
        for tid in moved:
            del self._places[tid]
            self._places[tid] = to
        return len(moved)

    @property
    def hangs(self) -> bool:
        """Whether the control channel's thread waits at a futex, and who wakes it may be a thread that is frozen."""
        return not self.all_run and self._kernel.snapshot.main in self._places

    def _run(self, sleeper: Sleeper) -> None:
        kernel = self._kernel
        machine = kernel.machine
        before, called_at, blocked = list(machine.registers), kernel.called_at, kernel.signals.blocked
        machine.registers[:] = sleeper.registers
        address, self.current = sleeper.address, sleeper
        sleeper.deadline = None
        try:
            while True:
                try:
                    machine.run(address, kernel.special, _MOST_BLOCKS)
                except Fault:
                    address = kernel.fault("SIGSEGV")
                except Trap as trap:
                    address = kernel.fault(trap.signal)
        except Switch:
            pass
        finally:
            self.current = None
            machine.registers[:] = map(kernel.idle.now, before)
            kernel.called_at, kernel.signals.blocked = called_at, blocked


def may_run(thread: Thread) -> bool:
    """Whether a thread does here what it would do: it waits for something that can come, or for what never does."""
    return thread.in_syscall in _WAITING or thread.in_syscall in _FOR_EVER


def registers_of(thread: Thread) -> tuple[list[Value], int]:
    """The registers with which the call is made again in which a thread is blocked, and where that is."""
    saved = thread.registers
    registers: list[Value] = [0] * REGISTER_SLOTS
    for name in _GENERAL:
        registers[REGISTERS[name]] = saved[name]
    registers[REGISTERS["fs"]] = saved["fs_base"]
    registers[REGISTERS["gs"]] = saved["gs_base"]
    registers[REGISTERS["d"]] = 1
    registers[REGISTERS["cc_dep1"]] = saved["eflags"] & 0x8D5
    for index, value in enumerate(thread.xmm):
        slot = REGISTERS[f"ymm{index}"]
        registers[slot], registers[slot + 1] = value & (1 << 64) - 1, value >> 64
    if thread.in_syscall is None:
        return registers, saved["rip"]
    registers[REGISTERS["rax"]] = thread.in_syscall
    return registers, saved["rip"] - 2
