"""The other threads of an agent: frozen, but while time passes they have their turn.

A thread that looks around every now and then may be what removes a rule that has timed out, and another one what tells
the controller. So while the scenario waits, or the agent lets what it was sent lie unread, each thread that waits for a
descriptor or a time runs when the one or the other has come, until it waits again. They take turns, and the control
channel's thread comes first; which of two threads would be faster is nothing that we know. A thread that waits for a
lock stays frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.frozen import Thread
from harness.machine.ends import Fault, Trap
from harness.machine.layout import REGISTER_SLOTS, REGISTERS
from harness.machine.values import Value

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

# poll, ppoll, select, pselect6, epoll_wait, epoll_pwait, nanosleep, clock_nanosleep.
_WAITING = frozenset({7, 271, 23, 270, 232, 281, 35, 230})
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
    """All threads but the one that owns the control channel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.current: Sleeper | None = None
        """The one that runs; None if it is the control channel's."""
        snapshot = kernel.snapshot
        self.sleepers = [
            Sleeper(*registers_of(thread), thread.tid)
            for thread in snapshot.threads
            if thread.tid != snapshot.main and thread.in_syscall in _WAITING
        ]

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
            sleeper.is_due = False
            return False
        sleeper.ready, sleeper.deadline = ready, deadline
        sleeper.registers = list(self._kernel.machine.registers)
        sleeper.address = self._kernel.called_at
        raise Switch

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
            machine.registers[:] = before
            kernel.called_at, kernel.signals.blocked = called_at, blocked


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
