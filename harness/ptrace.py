"""Stop all threads of a process with ptrace, look into them, and let them go on as if nothing had been."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from harness.frozen import REGISTERS
from soft.errors import SoftError

_CONT, _SINGLESTEP, _GETREGS, _SETREGS, _GETFPREGS, _DETACH, _SYSCALL = 7, 9, 12, 13, 14, 17, 24
_SETOPTIONS, _TRACESYSGOOD = 0x4200, 1
_SEIZE, _INTERRUPT, _GETSIGMASK, _SETSIGMASK = 0x4206, 0x4207, 0x420A, 0x420B
_EVENT_STOP = 128
_WALL = 0x40000000
_BREAKPOINT = b"\xcc"
_SYSCALL_INSTRUCTION = b"\x0f\x05"
# Below the red zone of the System V ABI, which a thread may use without moving its stack pointer.
_BELOW_RED_ZONE = 128

# The argument of a call to `ask` that stands for memory of the thread.
SCRATCH = -1

# What rax holds when a system call was interrupted: EINTR, and the kernel's own ERESTARTSYS, ERESTARTNOINTR,
# ERESTARTNOHAND and ERESTART_RESTARTBLOCK, which only a tracer sees.
_NO_CALL = (1 << 64) - 1
_INTERRUPTED = frozenset(-number & (1 << 64) - 1 for number in (4, 512, 513, 514, 516))

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


@dataclass(frozen=True, slots=True)
class FloatingPoint:
    """What the FXSAVE area holds of use: the SSE registers and the two control words."""

    xmm: tuple[int, ...]
    mxcsr: int
    fcw: int


class Stopped:
    """All threads of one process, standing still inside the `with` block and running again after it."""

    def __init__(self, pid: int, patience: float = 5.0) -> None:
        self.pid = pid
        self.tids: list[int] = []
        self._deadline = time.monotonic() + patience
        self._memory = -1

    def __enter__(self) -> Self:
        try:
            self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDWR | os.O_CLOEXEC)
            self._stop_all()
        except OSError as error:
            self._let_go()
            raise self._refused(error) from None
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()

    def _stop_all(self) -> None:
        # Threads may appear while others are being stopped; none can when all are.
        while new := [tid for tid in map(int, os.listdir(f"/proc/{self.pid}/task")) if tid not in self.tids]:
            for tid in new:
                try:
                    _ptrace(_SEIZE, tid)
                except ProcessLookupError:
                    continue  # It has ended since it was listed.
                self.tids.append(tid)
                _ptrace(_INTERRUPT, tid)
                if not self._await_stop(tid):
                    self.tids.remove(tid)
                    if tid == self.pid:
                        raise SoftError("The agent ended while it was being frozen.")

    def _await_stop(self, tid: int) -> bool:
        """True when the thread stands at the interruption we asked for, False if it has ended."""
        for status in self.stops(tid):
            if status >> 16 == _EVENT_STOP:
                return True
            # A signal came first. It is delivered, and the interruption has to be asked for again.
            _ptrace(_CONT, tid, 0, os.WSTOPSIG(status))
            _ptrace(_INTERRUPT, tid)
        return False

    def stops(self, tid: int) -> Iterator[int]:
        """The status of each stop of a thread, until it ends."""
        pause = 0.00005
        while True:
            found, status = os.waitpid(tid, _WALL | os.WNOHANG)
            if found:
                if not os.WIFSTOPPED(status):
                    return
                yield status
                pause = 0.00005
                continue
            if time.monotonic() > self._deadline:
                raise SoftError("The agent cannot be frozen: one of its threads does not come to a stop.")
            time.sleep(pause)
            pause = min(2 * pause, 0.005)

    def _let_go(self) -> None:
        for tid in self.tids:
            # A thread that was killed meanwhile is gone without our help.
            with contextlib.suppress(OSError):
                _ptrace(_DETACH, tid)
        self.tids = []
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1

    def _refused(self, error: OSError) -> SoftError:
        if error.errno in (errno.EPERM, errno.EACCES):
            return SoftError(
                f"Tracing the agent (process {self.pid}) is not permitted: another tracer holds it, it runs as another "
                f"user, or a policy such as kernel.yama.ptrace_scope forbids it."
            )
        if error.errno in (errno.ESRCH, errno.ENOENT):
            return SoftError("The agent ended before it could be frozen.")
        return SoftError(f"The agent (process {self.pid}) cannot be traced: {error.strerror}.")

    # ------------------------------------------------------------------------------------------ looking

    def registers(self, tid: int) -> dict[str, int]:
        buffer = (ctypes.c_uint64 * len(REGISTERS))()
        _ptrace(_GETREGS, tid, 0, ctypes.addressof(buffer))
        return dict(zip(REGISTERS, buffer, strict=True))

    def floating_point(self, tid: int) -> FloatingPoint:
        buffer = (ctypes.c_ubyte * 512)()
        _ptrace(_GETFPREGS, tid, 0, ctypes.addressof(buffer))
        area = bytes(buffer)
        xmm = tuple(int.from_bytes(area[at : at + 16], "little") for at in range(160, 416, 16))
        return FloatingPoint(xmm, struct.unpack_from("<I", area, 24)[0], struct.unpack_from("<H", area)[0])

    def blocked_signals(self, tid: int) -> int:
        """The mask that the thread has set; inside ppoll, /proc would show the one that only counts there."""
        mask = ctypes.c_uint64()
        _ptrace(_GETSIGMASK, tid, 8, ctypes.addressof(mask))
        return mask.value

    def read(self, address: int, size: int) -> bytes:
        """Memory, at most `size` bytes. OSError where nothing can be read."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, data: bytes) -> None:
        os.pwrite(self._memory, data, address)

    # ------------------------------------------------------------------------------------------ asking

    def ask(self, tid: int, number: int, *arguments: int, answer: int = 0) -> tuple[int, bytes]:
        """Have a blocked thread make a system call that changes nothing; its result, and `answer` bytes at SCRATCH.

        An argument of SCRATCH stands for the address of memory that the call may fill. The thread's registers and
        memory are as before afterwards.
        """
        before, mask = self.registers(tid), self.blocked_signals(tid)
        instruction = before["rip"] - 2
        if self.read(instruction, 2) != _SYSCALL_INSTRUCTION:
            instruction = before["rip"]
            if self.read(instruction, 2) != _SYSCALL_INSTRUCTION:
                raise OSError(errno.EINVAL, "The thread does not stand at a system call")
        scratch = (before["rsp"] - _BELOW_RED_ZONE - answer) & ~15
        kept = self.read(scratch, answer) if answer else b""
        # Without a number in orig_rax the kernel does not make the interrupted call again.
        wanted = before | {"rip": instruction, "rax": number, "orig_rax": _NO_CALL}
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            wanted[name] = scratch if value == SCRATCH else value
        try:
            # The step's own SIGTRAP stays unblocked: the kernel would reset its handler to force it.
            self._set_blocked(tid, ~(1 << signal.SIGTRAP - 1) & (1 << 64) - 1)
            self.set_registers(tid, wanted)
            self._step(tid)
            return self.registers(tid)["rax"], self.read(scratch, answer) if answer else b""
        finally:
            if kept:
                self.write(scratch, kept)
            self.set_registers(tid, before)
            self._set_blocked(tid, mask)

    def _step(self, tid: int) -> None:
        _ptrace(_SINGLESTEP, tid)
        for status in self.stops(tid):
            if os.WSTOPSIG(status) == signal.SIGTRAP:
                return
            _ptrace(_SINGLESTEP, tid)
        raise SoftError("The agent ended while it was being frozen.")

    # ------------------------------------------------------------------------------------------ running

    def run_to_call(self, tid: int, wanted: Callable[[int, dict[str, int]], bool], most: int) -> dict[str, int] | None:
        """Let one thread run until it is about to make a system call that is wanted, and stop it there.

        Returns its registers as they would be inside that call; None if it makes `most` calls and none was wanted.
        """
        _ptrace(_SETOPTIONS, tid, 0, _TRACESYSGOOD)
        for _ in range(most):
            self._to_call_stop(tid)
            inside = self.registers(tid)
            if wanted(inside["orig_rax"], inside):
                # A call of number -1 does nothing; then the thread is put before the call again.
                self.set_registers(tid, inside | {"orig_rax": _NO_CALL})
                self._to_call_stop(tid)
                before = {"rip": inside["rip"] - 2, "rax": inside["orig_rax"], "orig_rax": _NO_CALL}
                self.set_registers(tid, inside | before)
                return inside | {"rax": min(_INTERRUPTED)}
            self._to_call_stop(tid)
        return None

    def _to_call_stop(self, tid: int) -> None:
        """To the beginning of the next system call, or to the end of the one that the thread is in."""
        _ptrace(_SYSCALL, tid)
        for status in self.stops(tid):
            if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
                return
            delivered = os.WSTOPSIG(status) if status >> 16 == 0 else 0
            _ptrace(_SYSCALL, tid, 0, delivered)
        raise SoftError("The agent ended while it was being frozen.")

    def _set_blocked(self, tid: int, mask: int) -> None:
        buffer = ctypes.c_uint64(mask)
        _ptrace(_SETSIGMASK, tid, 8, ctypes.addressof(buffer))

    def set_registers(self, tid: int, registers: dict[str, int]) -> None:
        buffer = (ctypes.c_uint64 * len(REGISTERS))(*(registers[name] for name in REGISTERS))
        _ptrace(_SETREGS, tid, 0, ctypes.addressof(buffer))


def interrupted_call(registers: dict[str, int]) -> int | None:
    """The number of the system call that a stopped thread was blocked in, or None if it runs code of its own."""
    number = registers["orig_rax"]
    return number if number < 1 << 63 and registers["rax"] in _INTERRUPTED else None


def run_to(pid: int, address: int, patience: float = 10.0) -> None:
    """Let a process of one thread, stopped and traced by us, run until it comes to an address, and stop it there."""
    process = Stopped(pid, patience)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
    try:
        kept = os.pread(memory, 1, address)
        os.pwrite(memory, _BREAKPOINT, address)
        _ptrace(_CONT, pid)
        for status in process.stops(pid):
            if os.WSTOPSIG(status) == signal.SIGTRAP:
                break
            _ptrace(_CONT, pid, 0, os.WSTOPSIG(status))
        else:
            raise SoftError("The agent ended before its main program began.")
        os.pwrite(memory, kept, address)
        process.set_registers(pid, process.registers(pid) | {"rip": address})
    finally:
        os.close(memory)


def _ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, tid, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
