"""What is known of a process that stands still: its threads, memory, descriptors, signals and clocks. Data only."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field

PAGE = 4096

REGISTERS = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax",
    "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
)  # fmt: skip
"""The general registers, in the order of the kernel's user_regs_struct."""

KINDS = frozenset({
    "control", "port", "listener", "socket", "netlink", "pipe", "eventfd", "timerfd", "signalfd", "epoll", "file",
    "other",
})  # fmt: skip
"""What a descriptor can be."""

FRAMINGS = frozenset({"datagram", "packet", "length-prefixed"})
"""How a frame goes over a port: a UNIX datagram, an AF_PACKET or tap packet, or a stream with two bytes before each."""

Detail = int | str | tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread. If it is blocked in a system call, `rip` is behind the syscall instruction and `rax` is what the
    interruption left: resume at `rip - 2` with `rax = in_syscall`, and the call is made again."""

    tid: int
    registers: Mapping[str, int]
    xmm: tuple[int, ...]
    mxcsr: int
    fcw: int
    in_syscall: int | None
    """The number of the system call it is blocked in; None if it runs code of its own."""
    name: str


@dataclass(frozen=True, slots=True)
class Region:
    """One mapping, as in /proc/PID/maps. The main thread's stack reaches down as far as it may grow."""

    start: int
    end: int
    permissions: str
    name: str
    content: bytes | None
    """None: it could not be read (guard pages, [vvar], [vsyscall])."""
    offset: int = 0
    """Where in the file `name` it begins."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """An open descriptor, and what it is for."""

    number: int
    kind: str
    """One of KINDS."""
    port: int | None
    """The data-plane port's number, if the kind is port."""
    flags: int
    """O_NONBLOCK and the others, as fcntl's F_GETFL gives them."""
    link: str
    """What /proc says that it is; holds names of the agent's machine and stays out of bundles."""
    stream: bool
    """Bytes without bounds, not datagrams or packets."""
    detail: Mapping[str, Detail] = field(default_factory=dict)
    """What else the kernel tells.

    epoll: `watched`, a tuple of (descriptor, events, data). timerfd: `clockid`, `ticks`, `settime_flags`, and in
    nanoseconds `it_value` (what is left) and `it_interval`. eventfd: `count`, `semaphore`. signalfd: `mask`. pipe:
    `inode`, `end` (read or write). port, where it is a packet socket: `interface` (its number), `address` (in
    hexadecimal). socket: `domain`, `type`, `protocol`. file: `position`. Where something can be
    read: `unread`, the number of bytes that wait there, and `pending`, these bytes in hexadecimal.
    """


@dataclass(frozen=True, slots=True)
class SignalAction:
    """What rt_sigaction set for a signal."""

    handler: int
    flags: int
    restorer: int
    mask: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Masks have bit `n - 1` for signal `n`. `blocked` is that of the main thread, outside ppoll and the like."""

    blocked: int = 0
    pending: int = 0
    caught: int = 0
    ignored: int = 0
    actions: Mapping[int, SignalAction] = field(default_factory=dict)
    """Of the caught signals; empty where the process does not let itself be asked (seccomp)."""
    alarm_ns: int = 0
    """What is left of setitimer(ITIMER_REAL), 0 if it is not set."""
    alarm_interval_ns: int = 0
    timers: tuple[int, ...] = ()
    """The signals of the timers that are running (timer_create); what they do has no model."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A process that stood still while its thread `main` waited for its controller."""

    main: int
    """The thread that owns the control channel: the one that will run."""
    threads: tuple[Thread, ...]
    regions: tuple[Region, ...]
    """In the order of their addresses."""
    descriptors: Mapping[int, Descriptor]
    pid: int
    realtime_ns: int
    monotonic_ns: int
    boottime_ns: int = 0
    brk: int = 0
    executable: str = ""
    port_framing: str = "datagram"
    """One of FRAMINGS."""
    signals: Signals = field(default_factory=Signals)
    sent_before: bytes = b""
    """What the agent had sent to its controller when it was frozen, if there was no handshake: its hello."""
    label: str = ""
    """The agent's name for people and bundles."""
    ports: int = 0
    """How many data-plane ports it was started with."""
    handshake: bool = True
    version: int = 1
    """The OpenFlow version of the handshake, as on the wire."""
    stubs: tuple[str, ...] = ()
    """What was patched before it started, in words that give away neither symbols nor addresses."""
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", tuple(region.start for region in self.regions))

    @property
    def thread(self) -> Thread:
        """The thread that will run."""
        return next(thread for thread in self.threads if thread.tid == self.main)

    @property
    def control(self) -> Descriptor:
        return next(each for each in self.descriptors.values() if each.kind == "control")

    @property
    def own_code(self) -> tuple[Region, ...]:
        """The mappings of the agent's own code, not that of its libraries."""
        name = self.executable
        return tuple(
            region for region in self.regions
            if "x" in region.permissions and region.content and name and region.name.endswith(name)
        )  # fmt: skip

    def region_at(self, address: int) -> Region | None:
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.regions[index].end:
            return self.regions[index]
        return None

    def page(self, number: int) -> tuple[bytes, str] | None:
        """The bytes of a page and its permissions such as "rw", or None where nothing can be accessed."""
        region = self.region_at(number * PAGE)
        if region is None or region.content is None:
            return None
        offset = number * PAGE - region.start
        return region.content[offset : offset + PAGE], region.permissions[:3].replace("-", "")

    def read(self, address: int, size: int) -> bytes | None:
        """The bytes at an address, or None if they are not all there."""
        data = b""
        while len(data) < size:
            region = self.region_at(address + len(data))
            if region is None or region.content is None:
                return None
            offset = address + len(data) - region.start
            data += region.content[offset : offset + size - len(data)]
        return data
