"""Freeze a live agent: when the thread that owns the control channel waits, read all there is to know of the process.

The agent runs on afterwards, as far as it can; the snapshot is a value, and explored without it.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.descriptors import descriptors_of
from harness.frozen import PAGE, Descriptor, Region, SignalAction, Signals, Snapshot, Thread
from harness.ptrace import SCRATCH, Stopped, interrupted_call
from harness.waiting import POLL, RESTART, SLEEP, waits_for
from soft.errors import SoftError
from soft.launch.agent import Agent

__all__ = ["Descriptor", "Region", "SignalAction", "Signals", "Snapshot", "Thread", "capture"]

# An agent that is quiet already waits; one that is not gets this long.
_PATIENCE = 5.0
# A process with more memory than this is no agent at rest, and its snapshot could not be explored.
MOST_BYTES = 2 << 30
# The kernel lets a stack grow to the limit of the process; without a limit, this is more than recursion needs to show.
_MOST_STACK = 64 << 20
# The kernel's own pages, which /proc/PID/mem does not give.
_UNREADABLE = frozenset({"[vvar]", "[vvar_vclock]", "[vsyscall]"})
_MAPS_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+\s*(.*)")

_FRAMING = {"veth": "packet", "tap": "packet", "ovs-dummy": "length-prefixed"}
_SYS_BRK, _SYS_RT_SIGACTION, _SYS_GETITIMER = 12, 13, 36
_ERRORS = (1 << 64) - 4096


def capture(agent: Agent) -> Snapshot:
    """The agent as it stands when it next waits for its controller. It must have a control channel."""
    pid, plans = agent.pid, [port.describe for port in agent.ports.values()]
    deadline = time.monotonic() + _PATIENCE
    while True:
        _await_sleep(pid, deadline)
        with Stopped(pid) as stopped:
            descriptors = descriptors_of(pid, agent.control, plans)
            threads = tuple(_thread(stopped, tid) for tid in sorted(stopped.tids))
            main = control_thread(threads, descriptors, stopped)
            if main is not None:
                threads = tuple(_named_again(thread) if thread is main else thread for thread in threads)
                return _read(stopped, agent, main.tid, threads, descriptors)
        if time.monotonic() > deadline:
            raise SoftError(
                f"None of the agent's {len(threads)} threads came to wait for the controller within {_PATIENCE:.0f} s."
                f"{agent.last_words()}"
            )
        time.sleep(0.005)


def _await_sleep(pid: int, deadline: float) -> None:
    """Until all threads are inside the kernel: stopping interrupts what they do, which some agents notice."""
    pause = 0.0001
    while time.monotonic() < deadline:
        try:
            calls = [Path(f"/proc/{pid}/task/{tid}/syscall").read_bytes() for tid in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            return  # It has ended, or may not be looked at: the attempt to stop it says so.
        if all(call[:1].isdigit() for call in calls):
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.01)


def _thread(stopped: Stopped, tid: int) -> Thread:
    registers, floating = stopped.registers(tid), stopped.floating_point(tid)
    name = _text(f"/proc/{stopped.pid}/task/{tid}/comm").rstrip("\n")
    return Thread(
        tid, registers, floating.xmm, floating.mxcsr, floating.fcw, interrupted_call(registers), name
    )


def control_thread(
    threads: tuple[Thread, ...], descriptors: Mapping[int, Descriptor], stopped: Stopped
) -> Thread | None:
    """The thread that waits for the control channel, or None if none does at the moment."""
    control = {number for number, each in descriptors.items() if each.kind == "control"}
    for thread in threads:
        if control & waits_for(thread.in_syscall, thread.registers, stopped.read, descriptors):
            return thread
    # An agent of one thread that sleeps and then looks at its sockets is the thread to run all the same.
    return threads[0] if len(threads) == 1 and threads[0].in_syscall in SLEEP else None


def _named_again(thread: Thread) -> Thread:
    """A poll that had been interrupted before goes on as restart_syscall: by its arguments it is still a poll."""
    if thread.in_syscall != RESTART:
        return thread
    registers = {**thread.registers, "orig_rax": POLL}
    return Thread(thread.tid, registers, thread.xmm, thread.mxcsr, thread.fcw, POLL, thread.name)


def _read(
    stopped: Stopped, agent: Agent, main: int, threads: tuple[Thread, ...], descriptors: Mapping[int, Descriptor]
) -> Snapshot:
    pid = stopped.pid
    realtime, monotonic, boottime = (
        time.clock_gettime_ns(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
    )
    regions = tuple(_regions(stopped))
    executable = os.readlink(f"/proc/{pid}/exe")
    return Snapshot(
        main=main,
        threads=threads,
        regions=regions,
        descriptors=descriptors,
        pid=pid,
        realtime_ns=realtime,
        monotonic_ns=monotonic,
        boottime_ns=boottime,
        brk=_brk(stopped, main, regions),
        executable=executable,
        port_framing=_FRAMING.get(agent.profile.ports, "datagram"),
        signals=_signals(stopped, main),
        label=Path(executable).name,
        ports=len(agent.ports),
    )


# ---------------------------------------------------------------------------------------------- memory


def _regions(stopped: Stopped) -> Iterator[Region]:
    left = MOST_BYTES
    end_before = 0
    for line in _text(f"/proc/{stopped.pid}/maps").splitlines():
        match = _MAPS_LINE.match(line)
        assert match is not None, line
        start, end, offset = int(match[1], 16), int(match[2], 16), int(match[4], 16)
        permissions, name = match[3], match[5]
        content = None
        if permissions[:3] != "---" and name not in _UNREADABLE:
            left -= end - start
            if left < 0:
                raise SoftError(f"The agent has more than {MOST_BYTES >> 30} GB of memory; it cannot be frozen.")
            content = _content(stopped, start, end)
        if name == "[stack]" and content is not None:
            lowest = max(end - _stack_limit(stopped.pid), end_before)
            content = bytes(max(0, start - lowest)) + content
            start = end - len(content)
        yield Region(start, end, permissions, name, content, offset)
        end_before = end


def _content(stopped: Stopped, start: int, end: int) -> bytes | None:
    parts: list[bytes] = []
    position = start
    try:
        while position < end:
            part = stopped.read(position, min(1 << 24, end - position))
            if not part:
                return None
            parts.append(part)
            position += len(part)
    except OSError:
        # Memory of a device, or of a file that has been cut short.
        return None
    return b"".join(parts)


def _stack_limit(pid: int) -> int:
    match = re.search(r"^Max stack size\s+(\S+)", _text(f"/proc/{pid}/limits"), re.MULTILINE)
    limit = int(match[1]) if match and match[1].isdigit() else _MOST_STACK
    return min(limit, _MOST_STACK) // PAGE * PAGE


# ------------------------------------------------------------------------------------- asked of the process itself


def _brk(stopped: Stopped, main: int, regions: tuple[Region, ...]) -> int:
    heap = max((region.end for region in regions if region.name == "[heap]"), default=0)
    answer = _asked(stopped, main, _SYS_BRK, 0)
    return answer[0] if answer is not None else heap


def _signals(stopped: Stopped, main: int) -> Signals:
    status = _text(f"/proc/{stopped.pid}/task/{main}/status")
    masks = {key: int(value, 16) for key, value in re.findall(r"^(S\w\w\w\w\w):\s*([0-9a-f]{16})$", status, re.M)}
    caught = masks["SigCgt"]
    actions: dict[int, SignalAction] = {}
    for number in range(1, 65):
        if caught >> number - 1 & 1:
            answer = _asked(stopped, main, _SYS_RT_SIGACTION, number, 0, SCRATCH, 8, size=32)
            if answer is not None:
                handler, flags, restorer, mask = struct.unpack("<4Q", answer[1])
                actions[number] = SignalAction(handler, flags, restorer, mask)
    interval, left = _alarm(stopped, main)
    return Signals(
        blocked=stopped.blocked_signals(main),
        pending=masks["SigPnd"] | masks["ShdPnd"],
        caught=caught,
        ignored=masks["SigIgn"],
        actions=actions,
        alarm_ns=left,
        alarm_interval_ns=interval,
    )


def _alarm(stopped: Stopped, main: int) -> tuple[int, int]:
    """The interval and the rest of ITIMER_REAL, in nanoseconds."""
    answer = _asked(stopped, main, _SYS_GETITIMER, 0, SCRATCH, size=32)
    if answer is None:
        return 0, 0
    interval, interval_us, left, left_us = struct.unpack("<4q", answer[1])
    return interval * 10**9 + interval_us * 1000, left * 10**9 + left_us * 1000


def _asked(stopped: Stopped, tid: int, number: int, *arguments: int, size: int = 0) -> tuple[int, bytes] | None:
    """What the process itself answers to a harmless system call; None if it fails or must not be made."""
    status = _text(f"/proc/{stopped.pid}/status")
    if re.search(r"^Seccomp:\s*[12]$", status, re.MULTILINE):
        # A filter may kill a process for a call that it never makes itself.
        return None
    with contextlib.suppress(OSError):
        result, answer = stopped.ask(tid, number, *arguments, answer=size)
        if result < _ERRORS:
            return result, answer
    return None


def _text(path: str) -> str:
    with open(path, errors="surrogateescape") as file:
        return file.read()
