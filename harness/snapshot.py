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
from dataclasses import replace
from pathlib import Path

from harness.descriptors import descriptors_of
from harness.frozen import PAGE, Descriptor, Region, SignalAction, Signals, Snapshot, Thread
from harness.heap import without_cache
from harness.ptrace import SCRATCH, Stopped, interrupted_call
from harness.snapshot_file import MOST_BYTES, is_snapshot, load, save
from harness.stubs import applied, before_main
from harness.waiting import POLL, RESTART, SLEEP, Read, waits_for
from soft.errors import SoftError
from soft.launch.agent import Agent, start
from soft.launch.find import Target
from soft.launch.process import snapshot_environment

__all__ = [
    "Descriptor", "Region", "SignalAction", "Signals", "Snapshot", "Thread",
    "capture", "freeze", "is_snapshot", "load", "save",
]  # fmt: skip

# An agent that is quiet already waits; one that is not gets this long.
_PATIENCE = 5.0
# For this long only a thread that waits for the control channel itself is good enough.
_STRICT = 0.3
# System calls of a thread that never sleeps until it must have looked at the control channel.
_MOST_CALLS = 1000
# The kernel lets a stack grow to the limit of the process; without a limit, this is more than recursion needs to show.
_MOST_STACK = 64 << 20
# The kernel's own pages, which /proc/PID/mem does not give.
_UNREADABLE = frozenset({"[vvar]", "[vvar_vclock]", "[vsyscall]"})
_MAPS_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+\s*(.*)")

_EM_X86_64 = 62
_FRAMING = {"veth": "packet", "tap": "packet", "tap-device": "packet", "ovs-dummy": "length-prefixed"}
_SYS_BRK, _SYS_RT_SIGACTION, _SYS_GETITIMER, _SYS_TIMER_GETTIME = 12, 13, 36, 224
_ERRORS = (1 << 64) - 4096


def freeze(target: Target, *, ports: int, handshake: bool = True, version: int = 1) -> Snapshot:
    """Start an agent, shake hands with it, freeze it, and end it. Nothing of it is left but the snapshot.

    Without `handshake` the agent is frozen as soon as the control channel is there and it waits for its controller's
    first byte; what it has said by then is in `sent_before`.
    """
    check_binary(target.binary)
    stubs = before_main(target.profile)
    with start(
        target.profile, target.binary, ports, environment=snapshot_environment(), before_main=stubs
    ) as agent:
        sent_before = b""
        if handshake:
            agent.handshake(version)
        else:
            sent_before = _first_words(agent)
        snapshot = capture(agent)
    return replace(
        snapshot,
        label=target.label,
        ports=ports,
        handshake=handshake,
        version=version,
        sent_before=sent_before,
        stubs=applied(stubs),
    )


def check_binary(path: Path) -> None:
    """Only a program for x86-64 can be executed under the model."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise SoftError(f"{path} cannot be read: {error.strerror}.") from None
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise SoftError(f"{path} is not an ELF file: only a compiled agent can be explored.")
    machine = int.from_bytes(head[18:20], "little")
    if head[4:6] != b"\x02\x01" or machine != _EM_X86_64:
        raise SoftError(f"{path} is not a program for 64-bit x86 (its ELF machine number is {machine}).")


def _first_words(agent: Agent) -> bytes:
    agent.connect()
    burst = agent.collect(_PATIENCE)
    if burst.ended is not None or burst.closed:
        what = f"ended ({burst.ended})" if burst.ended is not None else "closed the control channel"
        raise SoftError(f"The agent {what} before its controller had said a word.{agent.last_words()}")
    if not burst.quiet:
        raise SoftError(f"The agent does not come to rest after it has connected.{agent.last_words()}")
    return bytes(burst.control)


def capture(agent: Agent) -> Snapshot:
    """The agent as it stands when it next waits for its controller. It must have a control channel."""
    pid, plans = agent.pid, [port.describe for port in agent.ports.values()]
    patience = _PATIENCE if agent.profile.sleeps else _STRICT
    begin, pause = time.monotonic(), 0.005
    while True:
        _await_sleep(pid, begin + patience)
        with Stopped(pid) as stopped:
            waited = time.monotonic() - begin
            descriptors = descriptors_of(pid, agent.control, plans)
            threads = tuple(_thread(stopped, tid) for tid in sorted(stopped.tids))
            main = control_thread(threads, descriptors, stopped.read, strict=waited < _STRICT)
            if main is None and waited > patience:
                main = _brought_to_wait(stopped, threads, descriptors)
            if main is not None:
                threads = tuple(_named_again(main if thread.tid == main.tid else thread) for thread in threads)
                return _read(stopped, agent, main.tid, threads, descriptors)
        if waited > patience:
            raise SoftError(
                f"None of the agent's threads ({len(threads)}) came to wait for the controller within {patience:.1f} s."
                f"{agent.last_words()}"
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


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
    return Thread(tid, registers, floating.xmm, floating.mxcsr, floating.fcw, interrupted_call(registers), name)


def control_thread(
    threads: tuple[Thread, ...], descriptors: Mapping[int, Descriptor], read: Read, *, strict: bool
) -> Thread | None:
    """The thread that waits for the control channel, or None if none does at the moment.

    If not `strict`, a thread that waits for ports is taken for it, or the only one there is, if it sleeps: some agents
    look at the control channel only now and then (Open vSwitch does, until it has the controller's hello).
    """
    waits = {thread.tid: waits_for(thread.in_syscall, thread.registers, read, descriptors) for thread in threads}
    for kind in ("control",) if strict else ("control", "port"):
        wanted = {number for number, each in descriptors.items() if each.kind == kind}
        if found := [thread for thread in threads if wanted & waits[thread.tid]]:
            return found[0]
    only = threads[0] if len(threads) == 1 and not strict else None
    return only if only is not None and (only.in_syscall in SLEEP or waits[only.tid]) else None


def _brought_to_wait(
    stopped: Stopped, threads: tuple[Thread, ...], descriptors: Mapping[int, Descriptor]
) -> Thread | None:
    """An agent that never sleeps: the thread that looks at the control channel, stopped when it does so next."""
    control = {number for number, each in descriptors.items() if each.kind == "control"}

    def looks(call: int, registers: Mapping[str, int]) -> bool:
        return bool(control & waits_for(call, registers, stopped.read, descriptors))

    for thread in threads:
        if thread.in_syscall is None and (registers := stopped.run_to_call(thread.tid, looks, _MOST_CALLS)):
            floating = stopped.floating_point(thread.tid)
            return replace(
                thread,
                registers=registers,
                xmm=floating.xmm,
                mxcsr=floating.mxcsr,
                fcw=floating.fcw,
                in_syscall=interrupted_call(registers),
            )
    return None


def _named_again(thread: Thread) -> Thread:
    """A poll that had been interrupted before goes on as restart_syscall: by its arguments it is still a poll."""
    if thread.in_syscall != RESTART:
        return thread
    return replace(thread, registers={**thread.registers, "orig_rax": POLL}, in_syscall=POLL)


def _read(
    stopped: Stopped, agent: Agent, main: int, threads: tuple[Thread, ...], descriptors: Mapping[int, Descriptor]
) -> Snapshot:
    pid = stopped.pid
    realtime, monotonic, boottime = (
        time.clock_gettime_ns(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
    )
    regions = without_cache(_regions(stopped))
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
        timers=_timers(stopped, main),
    )


def _alarm(stopped: Stopped, main: int) -> tuple[int, int]:
    """The interval and the rest of ITIMER_REAL, in nanoseconds."""
    answer = _asked(stopped, main, _SYS_GETITIMER, 0, SCRATCH, size=32)
    if answer is None:
        return 0, 0
    interval, interval_us, left, left_us = struct.unpack("<4q", answer[1])
    return interval * 10**9 + interval_us * 1000, left * 10**9 + left_us * 1000


def _timers(stopped: Stopped, main: int) -> tuple[int, ...]:
    """The signals of all POSIX timers that will expire. Where nobody tells whether one will, it may."""
    running = []
    for timer, number in re.findall(r"^ID: (\d+)\nsignal: (\d+)/", _text(f"/proc/{stopped.pid}/timers"), re.MULTILINE):
        answer = _asked(stopped, main, _SYS_TIMER_GETTIME, int(timer), SCRATCH, size=32)
        if answer is None or any(answer[1][16:]):
            running.append(int(number))
    return tuple(sorted(running))


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
