"""Is an agent asleep? All its threads wait in the kernel for something to happen, and it has read what it was sent."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
from collections.abc import Iterable
from pathlib import Path

_FIONREAD = 0x541B
_SYS_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)

# x86-64 system calls in which a thread waits for input, time, a signal, a child or another thread. A thread that waits
# in write or connect has something left to do.
_WAITING_CALLS = {
    "read": 0, "readv": 19, "recvfrom": 45, "recvmsg": 47, "recvmmsg": 299, "accept": 43, "accept4": 288,
    "poll": 7, "ppoll": 271, "select": 23, "pselect6": 270,
    "epoll_wait": 232, "epoll_pwait": 281, "epoll_pwait2": 441, "io_getevents": 208, "io_uring_enter": 426,
    "pause": 34, "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "nanosleep": 35, "clock_nanosleep": 230,
    "restart_syscall": 219, "wait4": 61, "waitid": 247, "futex": 202, "futex_waitv": 449,
}  # fmt: skip
_WAITING = frozenset(str(number).encode() for number in _WAITING_CALLS.values())


class Processes:
    """The processes of one agent, watched through /proc. Where /proc says nothing, they count as asleep."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._files: dict[int, int] = {}
        self._pids = tuple(pids)
        for pid in self._pids:
            with contextlib.suppress(OSError):
                self._files[pid] = os.open(f"/proc/{pid}/syscall", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    @property
    def can_be_seen(self) -> bool:
        """False where the kernel does not tell; only a settle time is left then."""
        return len(self._files) == len(self._pids)

    def asleep(self) -> bool:
        """Every thread of every process waits. A process that has ended does so for good."""
        return all(self._asleep(pid, descriptor) for pid, descriptor in self._files.items())

    def ran(self) -> tuple[bytes, ...]:
        """How long each thread has run: it is the same later if and only if none ran in between."""
        found = []
        for pid in self._pids:
            with contextlib.suppress(OSError):
                for thread in sorted(os.listdir(f"/proc/{pid}/task")):
                    with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                        found.append(file.read(256))
        return tuple(found)

    def _asleep(self, pid: int, descriptor: int) -> bool:
        try:
            # With one thread the directory has three links, and /proc/PID/syscall speaks for the process.
            if os.stat(f"/proc/{pid}/task").st_nlink == 3:
                return _waits(os.pread(descriptor, 256, 0))
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/syscall", "rb") as file:
                    if not _waits(file.read(256)):
                        return False
        except OSError:
            return True
        return True


def _waits(syscall: bytes) -> bool:
    """The content of /proc/PID/syscall: `running`, or the call's number and arguments; empty after the end.

    A process that has ended and that nobody has asked about yet, as a daemon's first one, has neither call nor stack.
    """
    return not syscall or syscall.split(b" ", 1)[0] in _WAITING or syscall.rstrip() == b"-1 0x0 0x0"


def nudge(path: Path) -> None:
    """Wake an agent by a connection to a UNIX socket of its own, closed at once."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        caller.connect(str(path))


def take_turns(pid: int) -> None:
    """Have the threads of a process run one at a time, each until it waits, as they do under the model.

    All are put on one processor, where a thread that is woken does not interrupt the one that runs. Otherwise it is
    chance whether Open vSwitch's other threads look at a change of its rules while it is half done, and again later.
    """
    with contextlib.suppress(OSError):
        processors = sorted(os.sched_getaffinity(pid))
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread), {processors[pid % len(processors)]})
                os.sched_setscheduler(int(thread), os.SCHED_BATCH, os.sched_param(0))


class InputQueues:
    """The sockets of a process, to ask whether it has read everything; for those whose other end cannot tell.

    A copy of a descriptor is held only while it is asked: it would keep a connection open that the agent closes.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._descriptors: list[str] = []
        self._sockets: list[int] = []

    def _look(self) -> None:
        """See which descriptors are sockets, if there are others than before: an agent opens some when it is asked."""
        with contextlib.suppress(OSError):
            descriptors = os.listdir(f"/proc/{self._pid}/fd")
            if descriptors == self._descriptors:
                return
            self._descriptors, self._sockets = descriptors, []
            for name in descriptors:
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{self._pid}/fd/{name}").startswith("socket:"):
                        self._sockets.append(int(name))

    def close(self) -> None:
        os.close(self._pidfd)

    def empty(self) -> bool:
        self._look()
        return not any(self._unread(descriptor) for descriptor in self._sockets)

    def _unread(self, descriptor: int) -> int:
        copy = _libc.syscall(_SYS_PIDFD_GETFD, self._pidfd, descriptor, 0)
        if copy < 0:
            return 0
        try:
            return int.from_bytes(fcntl.ioctl(copy, _FIONREAD, b"\0\0\0\0"), "little")
        except OSError:
            return 0  # A listening socket, or a descriptor that has become something else.
        finally:
            os.close(copy)
