"""An agent's clock in our hands: it stands still while a scenario runs, and moves only when the scenario waits.

A library (clock.c) is preloaded into the agent. It answers for libc's clocks and waits, and shares a page of memory
with us: which thread waits until when, which timers are armed, and by how much the clock was moved. So a wait of 70
seconds takes no longer than what the agent does in it, and a wait that ends a millisecond before a timer does so on a
busy machine too. Where this cannot be (no compiler here, an agent without libc's shared library, a kind of timer that
cannot be moved) time stays real, and whoever asks is told.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import mmap
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from soft.user_cache import user_cache

SOURCE = Path(__file__).with_name("clock.c")
REAL_TIME, MOVED_CLOCK = "real time", "moved clock"
# An agent has rested for so long when a scenario begins, under the model too. What it does within milliseconds of what
# it did before, as Open vSwitch when rules change twice, would depend on how fast this machine shook hands.
REST_MS = 50

_MAGIC = 0x736F66742D636C6B
_CLOCKS = 12
_SLOTS = 128
# All clocks but those that count processor time, with the ones to read instead where a kernel does not have them.
_STANDING_CLOCKS = {0: 0, 1: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 0, 9: 7, 11: 11}
_WAKE = 62
_FOREVER = (1 << 63) - 1
_HEAD = struct.Struct(f"<Qqq{_CLOCKS}qqqqqq")
_STOPPED_AT, _MOVED_AT, _CLOCKS_AT = 8, 16, 24
_ALARM_AT = _CLOCKS_AT + 8 * _CLOCKS
_UNMOVABLE_AT = _ALARM_AT + 24
_READS_AT = _UNMOVABLE_AT + 8
_TIMER = struct.Struct("<iiqq")
_SLOT = struct.Struct("<iiqQ")
_SLOTS_AT = _HEAD.size + _SLOTS * _TIMER.size
_SIZE = _SLOTS_AT + _SLOTS * _SLOT.size
# Seconds that a thread may take to notice that it was woken.
_PATIENCE = 2.0
_SYS_PIDFD_GETFD, _SYS_TIMERFD_SETTIME, _SYS_TIMERFD_GETTIME, _SYS_TGKILL = 438, 286, 287, 234
_ITIMERSPEC = struct.Struct("<qqqq")
_SECOND = 1_000_000_000

_libc = ctypes.CDLL(None, use_errno=True)


@functools.cache
def library() -> Path | None:
    """The library, built if need be; None where it cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    source = SOURCE.read_bytes()
    name = f"clock-{hashlib.sha256(source).hexdigest()[:16]}.so"
    for place in _places():
        target = place / name
        if target.exists():
            return target
        if compiler is None:
            continue
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place) as work:
                made = Path(work) / name
                command = [compiler, "-O2", "-fPIC", "-shared", "-pthread", "-o", str(made), str(SOURCE), "-ldl"]
                subprocess.run(command, check=True, capture_output=True, env={**os.environ, "TMPDIR": work})
                made.rename(target)
            return target
    return None


def _places() -> Iterator[Path]:
    """Where the library may be kept: the user's cache, else a directory for the life of this process."""
    if place := user_cache():
        yield place
    yield Path(_own_directory().name)


@functools.cache
def _own_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="soft-clock-")


class AgentClock:
    """The clock of one agent; real until it is stopped."""

    def __init__(self, directory: Path, preload: Path) -> None:
        path = directory / "clock"
        with open(path, "w+b") as file:
            file.truncate(_SIZE)
            self._page = mmap.mmap(file.fileno(), _SIZE)
        self.environment = {"LD_PRELOAD": str(preload), "SOFT_CLOCK": str(path)}
        self._pid = 0
        self._pidfd = -1

    def close(self) -> None:
        self._page.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    # ---------------------------------------------------------------------------------------------- for the agent

    def stop(self, pid: int) -> bool:
        """The clock stands still from now on, REST_MS later. False if this agent's clock cannot be stopped."""
        if self._get(0) != _MAGIC or self._get(_UNMOVABLE_AT):
            return False
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:
            return False
        self._pid = pid
        for clock, same in _STANDING_CLOCKS.items():
            self._set(_CLOCKS_AT + 8 * clock, time.clock_gettime_ns(same) + REST_MS * 1_000_000)
        self._set(_STOPPED_AT, 1)
        self._take_timers()
        self._take_alarm()
        # Waits that began while the clock ran would end in real time.
        for slot in self._slots():
            self._wake(slot)
        os.kill(pid, _WAKE)
        return True

    @property
    def movable(self) -> bool:
        """Whether the agent still uses nothing that cannot be moved."""
        return not self._get(_UNMOVABLE_AT)

    @property
    def now(self) -> int:
        """Nanoseconds on the monotonic clock that stands still."""
        return self._get(_CLOCKS_AT + 8 * time.CLOCK_MONOTONIC) + self._get(_MOVED_AT)

    def next_deadline(self) -> int | None:
        """When the next wait or timer of the agent ends."""
        found = [deadline for _, _, deadline, _ in self._read(_SLOT, _SLOTS_AT) if 0 < deadline < _FOREVER]
        found += [deadline for _, _, deadline, _ in self._read(_TIMER, _HEAD.size) if deadline]
        if alarm := self._get(_ALARM_AT):
            found.append(alarm)
        return min(found) if found else None

    def move(self, to: int) -> None:
        """Let it be another time, not an earlier one: what is due then happens."""
        self._set(_MOVED_AT, self._get(_MOVED_AT) + max(0, to - self.now))
        self._set(_READS_AT, 0)
        now = self.now
        for index, (process, descriptor, deadline, interval) in enumerate(self._read(_TIMER, _HEAD.size)):
            if deadline and deadline <= now:
                # First the table, then the event: the agent may set the timer again as soon as it sees it.
                later = _next(deadline, interval, now)
                _TIMER.pack_into(self._page, _HEAD.size + index * _TIMER.size, process, descriptor, later, interval)
                self._fire(process, descriptor)
        alarm, interval = self._get(_ALARM_AT), self._get(_ALARM_AT + 8)
        if alarm and alarm <= now:
            self._set(_ALARM_AT, _next(alarm, interval, now))
            os.kill(self._get(_ALARM_AT + 16), signal.SIGALRM)
        for slot in self._slots():
            if 0 < self._slot(slot)[2] <= now:
                self._wake(slot)

    # ---------------------------------------------------------------------------------------------- the page

    def _get(self, at: int) -> int:
        return int.from_bytes(self._page[at : at + 8], "little", signed=at > 0)

    def _set(self, at: int, value: int) -> None:
        self._page[at : at + 8] = value.to_bytes(8, "little", signed=True)

    def _read(self, record: struct.Struct, at: int) -> Iterator[tuple[int, int, int, int]]:
        for index in range(_SLOTS):
            yield record.unpack_from(self._page, at + index * record.size)

    def _slot(self, index: int) -> tuple[int, int, int, int]:
        found: tuple[int, int, int, int] = _SLOT.unpack_from(self._page, _SLOTS_AT + index * _SLOT.size)
        return found

    def _slots(self) -> list[int]:
        """The threads that wait."""
        return [index for index in range(_SLOTS) if self._slot(index)[2]]

    def _wake(self, index: int) -> None:
        """Have a thread look at the clock. It may be on its way into the wait: then the first signal is too early."""
        process, thread, deadline, waits = self._slot(index)
        end = time.monotonic() + _PATIENCE
        while deadline and self._slot(index)[2:] == (deadline, waits) and time.monotonic() < end:
            if _libc.syscall(_SYS_TGKILL, process, thread, _WAKE) < 0:
                return
            time.sleep(0.0001)

    # ---------------------------------------------------------------------------------------------- timers

    def _take_timers(self) -> None:
        """Timers that run in the kernel are disarmed, and kept by us."""
        now, places = self.now, iter(range(_SLOTS))
        for entry in os.listdir(f"/proc/{self._pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{self._pid}/fd/{entry}") != "anon_inode:[timerfd]":
                    continue
                with self._copy(int(entry)) as timer:
                    left = ctypes.create_string_buffer(_ITIMERSPEC.size)
                    if _libc.syscall(_SYS_TIMERFD_GETTIME, timer, left) < 0:
                        continue
                    interval_s, interval_ns, value_s, value_ns = _ITIMERSPEC.unpack(left.raw)
                    value = value_s * _SECOND + value_ns
                    deadline = now + value if value else 0
                    _set_timer(timer, 0)
                    interval = interval_s * _SECOND + interval_ns
                    at = _HEAD.size + next(places) * _TIMER.size
                    _TIMER.pack_into(self._page, at, self._pid, int(entry), deadline, interval)

    def _take_alarm(self) -> None:
        alarm, interval, now = self._get(_ALARM_AT), self._get(_ALARM_AT + 8), self.now
        if alarm and alarm <= now:
            self._set(_ALARM_AT, _next(alarm, interval, now))

    def _fire(self, process: int, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{process}/fd/{descriptor}") == "anon_inode:[timerfd]":
                with self._copy(descriptor) as timer:
                    _set_timer(timer, 1)

    @contextlib.contextmanager
    def _copy(self, descriptor: int) -> Iterator[int]:
        copy = _libc.syscall(_SYS_PIDFD_GETFD, self._pidfd, descriptor, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        try:
            yield copy
        finally:
            os.close(copy)


def _set_timer(timer: int, nanoseconds: int) -> None:
    """Arm a timer once; 0 disarms it."""
    value = ctypes.create_string_buffer(_ITIMERSPEC.pack(0, 0, 0, nanoseconds))
    _libc.syscall(_SYS_TIMERFD_SETTIME, timer, 0, value, None)


def _next(deadline: int, interval: int, now: int) -> int:
    """When a timer that is due comes again; 0 if it does not."""
    return deadline + interval * ((now - deadline) // interval + 1) if interval else 0
