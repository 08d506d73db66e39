"""The kernel that one run of the agent sees: descriptors, time, signals, and the table of system calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.frozen import Descriptor, Snapshot
from harness.kernel import descriptions as d
from harness.kernel.clock import MILLISECOND, Clock, later
from harness.kernel.endings import Crashed, Interrupted
from harness.kernel.errno import EFAULT, EINTR
from harness.kernel.idle import Idle
from harness.kernel.names import name_of
from harness.kernel.outside import Outside, Plan
from harness.kernel.signals import Signals
from harness.kernel.table import CALLS
from harness.kernel.threads import Threads
from harness.machine.compiler import REGISTERS
from harness.machine.ends import Fault, Unsupported
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value
from soft.launch.clock import REST_MS
from soft.solve.terms import Term

RAX, RSP, RCX, R11 = (REGISTERS[name] for name in ("rax", "rsp", "rcx", "r11"))
ARGUMENTS = tuple(REGISTERS[name] for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9"))
MASK64 = (1 << 64) - 1
O_NONBLOCK, O_CLOEXEC = 0o4000, 0o2000000
# Calls that a handler with SA_RESTART does not end: read, readv, recvfrom, recvmsg, accept, futex, and their like.
RESTARTED = frozenset({0, 19, 45, 47, 43, 288, 202, 61})
# New mappings go here, far below where Linux puts the stack and libraries when randomisation is off, upwards.
_MAP_BASE = 0x2000_0000_0000


class Kernel:
    """One run's kernel. It is made anew for every run: a path must not know anything of another."""

    def __init__(
        self,
        snapshot: Snapshot,
        machine: Machine,
        plan: Plan,
        values: Mapping[str, int],
        branch: Callable[[Term, bool], None],
        proves: bool = True,
    ) -> None:
        self.snapshot = snapshot
        self.machine = machine
        self.memory = machine.memory
        self.idle = Idle(self, branch, proves)
        self.decide = self.idle.branch
        """Record which way a condition goes in this run."""
        rest = REST_MS * MILLISECOND
        self.clock = Clock(snapshot.monotonic_ns + rest, snapshot.realtime_ns + rest, self.decide)
        self.outside = Outside(plan, values, self.clock, machine.pin, snapshot.port_framing)
        self.outside.before_output = self.idle.speaks
        self.outside.before_step = self.idle.stop
        if snapshot.sent_before:
            self.outside.control_written(list(snapshot.sent_before))
        self.signals = Signals(snapshot)
        self.brk = snapshot.brk
        self.next_mapping = _MAP_BASE
        self.marks: dict[str, None] = {}
        self.threads = Threads(self)
        self.outside.all_threads_run = self.threads.all_run
        self.is_disturbed = False
        """This run is to show whether anything depends on what the agent cannot know: random numbers are others."""
        self.has_random_numbers = False
        """Whether the agent has asked for any that are integers here."""
        self.called_at = 0
        """Where the system call is that is being made."""
        self.waits_until: Value | None = None
        """The deadline of the call in which the agent waits, or did last."""
        self.is_general = True
        """Everything so far holds for all inputs that lead here; text, once printed, may hold for this one only."""
        self.at_call: Callable[[int], None] = lambda address: None
        """Called before the control channel's thread makes a call, with where that is, and when it has to wait in it,
        if the call can be made again: all to come depends on nothing but what the machine and this kernel hold."""
        self._blocked_before = self.signals.blocked
        self._is_outermost = False
        self._resumed: tuple[Value | None] | None = None
        """The deadline of a call that was resumed when it had to wait."""
        self.table: dict[int, d.Description] = {}
        self.closed_by_exec: set[int] = set()
        """The descriptors with FD_CLOEXEC."""
        self._pipes: dict[str, d.PipeBuffer] = {}
        opened: dict[tuple[str, object], d.Description] = {}
        for number, descriptor in snapshot.descriptors.items():
            # Copies of a descriptor share what it refers to. Only sockets and pipes say which they are.
            same = (descriptor.link, descriptor.detail.get("end"))
            description = opened.get(same) or self._opened(descriptor)
            if descriptor.link.startswith(("socket:[", "pipe:[")):
                opened[same] = description
            description.nonblocking = bool(descriptor.flags & O_NONBLOCK)
            description.status = descriptor.flags & ~(O_NONBLOCK | O_CLOEXEC)
            self.table[number] = description
            if descriptor.flags & O_CLOEXEC:
                self.closed_by_exec.add(number)
        for number, descriptor in snapshot.descriptors.items():
            if descriptor.kind == "epoll":
                self._watch(number, descriptor)

    # ---------------------------------------------------------------------------------------------- from the freeze

    def _opened(self, found: Descriptor) -> d.Description:
        outside, kind = self.outside, found.kind
        if kind == "control":
            outside.control = d.Stream(outside.control_written, outside.control_closed, takes_lengths=True)
            return outside.control
        if kind == "port" and found.port is not None:
            return self._port(found.port, found.stream)
        if kind == "listener":
            return d.Listener()
        if kind == "pipe":
            buffer = self._pipes.setdefault(found.link, d.PipeBuffer())
            if found.detail.get("end") == "write":
                same = [each for each in self.snapshot.descriptors.values() if each.link == found.link]
                is_read_here = any(each.detail.get("end") != "write" for each in same)
                return d.PipeEnd(None, buffer) if is_read_here else _elsewhere()
            buffer.content.extend(bytes.fromhex(str(found.detail.get("pending", ""))))
            return d.PipeEnd(buffer, None)
        if kind == "eventfd":
            return d.EventCounter(_number(found, "count"), bool(_number(found, "semaphore")))
        if kind == "timerfd":
            return self._timer(found)
        if kind == "epoll":
            return d.Epoll()
        if kind in ("socket", "netlink"):
            sink = d.Sink()
            sink.socket_type = 1 if found.stream else 2
            return sink
        if kind == "file":
            return d.File() if found.link != "/dev/null" else d.Null()
        return d.Sink() if kind == "other" else d.Description()

    def _port(self, number: int, is_stream: bool) -> d.Description:
        outside = self.outside
        if is_stream:
            stream = d.Stream(lambda data: outside.port_stream_written(number, data), lambda: None)
            outside.ports[number] = stream
            return stream
        frames = d.Frames(lambda data, length=None: outside.frame_written(number, data, length))
        outside.ports[number] = frames
        return frames

    def _timer(self, found: Descriptor) -> d.Timer:
        left = _number(found, "it_value")
        interval = -(-_number(found, "it_interval") // MILLISECOND)
        deadline = later(self.clock.now, -(-left // MILLISECOND)) if left else None
        timer = d.Timer(deadline, interval, _number(found, "clockid"))
        timer.ticks = _number(found, "ticks")
        return timer

    def _watch(self, number: int, found: Descriptor) -> None:
        epoll = self.table[number]
        assert isinstance(epoll, d.Epoll)
        interests = found.detail.get("watched", ())
        assert isinstance(interests, tuple)
        for watched, events, data in interests:
            if watched in self.table:
                epoll.interests[watched] = d.Interest(self.table[watched], events, data)

    # ---------------------------------------------------------------------------------------------- calls

    def arrive(self, address: int, kind: str) -> int:
        """`special`, for the control channel's thread outside of any function that is run as a whole."""
        if kind == "Ijk_Sys_syscall":
            if self._resumed is None and self.idle.is_plain:
                self.at_call(address - 2)
            self._blocked_before = self.signals.blocked
            self._is_outermost = True
        try:
            return self.special(address, kind)
        finally:
            self._is_outermost = False

    def goes_on(self, branch: Callable[[Term, bool], None], values: Mapping[str, int]) -> None:
        """The state is that of another run: from now on it is this one's."""
        self.idle.follow(branch)
        self.outside.follow(values)

    def cannot_repeat(self) -> None:
        """The call that is being made has changed something: made again, it would be another one."""
        self._is_outermost = False
        if self.threads.current is not None:
            self.threads.half_done()

    def _rest(self, deadline: Value | None) -> None:
        """The control channel's thread waits, and nothing else happens at this time."""
        if not self._is_outermost or not self.idle.is_plain:
            return
        inside, self.signals.blocked = self.signals.blocked, self._blocked_before
        self._resumed, self._is_outermost = (deadline,), False
        try:
            self.at_call(self.called_at)
        finally:
            self.signals.blocked = inside
            self._resumed, self._is_outermost = None, True

    def special(self, address: int, kind: str) -> int:
        """What the machine calls where a block ends in something other than a jump; gives the address to go on at."""
        if kind == "Ijk_Sys_syscall":
            return self._call(address)
        if kind in ("Ijk_Yield", "Ijk_NoRedir"):
            return address
        if kind in ("Ijk_SigTRAP", "Ijk_SigSEGV", "Ijk_SigBUS", "Ijk_SigFPE", "Ijk_SigILL"):
            raise Crashed(kind.removeprefix("Ijk_").upper().replace("SIGFPE_INTDIV", "SIGFPE"))
        if kind.startswith("Ijk_SigFPE"):
            raise Crashed("SIGFPE")
        if kind == "Ijk_NoDecode":
            raise Unsupported(f"an instruction that VEX cannot lift ({self.memory.read(address, 8).hex(' ')})")
        raise Unsupported(f"the jump kind {kind}")

    def _call(self, address: int) -> int:
        registers = self.machine.registers
        self.called_at = address - 2
        number = self.machine.pin(registers[RAX])
        call = CALLS.get(number)
        if call is None:
            raise Unsupported(f"the system call {name_of(number)}")
        values = [registers[slot] for slot in ARGUMENTS[: call.arguments]]
        arguments = [v if i in call.symbolic else self.machine.pin(v) for i, v in enumerate(values)]
        try:
            result = call.function(self, *arguments)
        except Interrupted as interrupted:
            if number in RESTARTED and self.signals.restarts(interrupted.signal):
                registers[RAX] = number
                return self.signals.enter(self, interrupted.signal, address - 2, None)
            return self.signals.enter(self, interrupted.signal, address, EINTR)
        except Fault:
            result = EFAULT
        self.threads.called()
        if self.signals.resumed is not None:
            # rt_sigreturn has put everything back.
            address, self.signals.resumed = self.signals.resumed, None
        else:
            registers[RAX] = result & MASK64 if isinstance(result, int) else self.idle.now(result)
            registers[RCX] = address
        pending = self.signals.pending()
        if pending is not None:
            return self.signals.enter(self, pending, address, None)
        return address

    def fault(self, name: str) -> int:
        """The processor stopped the agent: its handler for that signal goes on, if it has one."""
        try:
            return self.signals.enter_fault(self, name)
        except Fault:
            raise Crashed("SIGSEGV") from None  # no room for the handler on the stack

    # ---------------------------------------------------------------------------------------------- descriptors

    def install(self, description: d.Description, lowest: int = 0, closed_by_exec: bool = False) -> int:
        """Give a description the lowest free number."""
        number = lowest
        while number in self.table:
            number += 1
        self.table[number] = description
        if closed_by_exec:
            self.closed_by_exec.add(number)
        return number

    def release(self, number: int) -> None:
        """Close one descriptor; its description ends with the last one."""
        description = self.table.pop(number)
        self.closed_by_exec.discard(number)
        if not any(other is description for other in self.table.values()):
            for other in self.table.values():
                if isinstance(other, d.Epoll):
                    stale = [n for n, interest in other.interests.items() if interest.description is description]
                    for n in stale:
                        del other.interests[n]
            description.closed()

    # ---------------------------------------------------------------------------------------------- waiting

    def wait(self, ready: Callable[[], bool], deadline: Value | None) -> bool:
        """Let things happen until `ready`, or until the deadline (then False). Ends the run if nothing more happens."""
        if self.threads.current is not None:
            return self.threads.block(ready, deadline)
        clock, outside = self.clock, self.outside
        if self._resumed is not None:
            (deadline,), self._resumed = self._resumed, None
        while True:
            if ready():
                return True
            pending = self.signals.pending()
            if pending is not None:
                raise Interrupted(pending)
            if outside.waiting and self.snapshot.signals.timers:
                raise Unsupported("a timer made by timer_create, which may expire while the scenario waits")
            if self.threads.run_ready():
                continue
            deadline = self.waits_until = self.idle.rests(deadline)
            self._rest(deadline)
            earliest = deadline
            for due in self._deadlines():
                if earliest is None or clock.not_after(due, earliest):
                    earliest = due
            if earliest is None or not outside.reaches(earliest):
                if deadline is None and self.threads.hangs:
                    raise Unsupported("waiting for another thread, which stays frozen")
                outside.next_step()
                continue
            if outside.waiting:
                move = self.idle.tick(earliest, deadline)
                earliest, deadline = move.to, move.deadline
                self.waits_until = deadline
                if earliest is None:
                    outside.next_step()
                    continue
            if clock.not_after(clock.now, earliest):
                clock.advance(earliest)
            self._fire()
            self.threads.run_due()
            if deadline is not None and clock.not_after(deadline, clock.now):
                return ready()

    def _deadlines(self) -> list[Value]:
        found = [x.deadline for x in self.table.values() if isinstance(x, d.Timer) and x.deadline is not None]
        if self.signals.alarm is not None:
            found.append(self.signals.alarm)
        return found + [sleeper.deadline for sleeper in self.threads.sleepers if sleeper.deadline is not None]

    def _fire(self) -> None:
        """Everything that is due now happens."""
        clock = self.clock
        fired: set[int] = set()
        for timer in self.table.values():
            if isinstance(timer, d.Timer) and timer.deadline is not None and id(timer) not in fired:
                fired.add(id(timer))
                if clock.not_after(timer.deadline, clock.now):
                    timer.tick()
                    timer.deadline = later(timer.deadline, timer.interval) if timer.interval else None
        if self.signals.alarm is not None and clock.not_after(self.signals.alarm, clock.now):
            self.signals.ring()

    # ---------------------------------------------------------------------------------------------- values and memory

    def most(self, value: Sym) -> int | None:
        """An upper bound of a symbolic value."""
        assert self.machine.decisions is not None
        return self.machine.decisions.most(value)

    def simplify(self, value: Value, given: Term) -> Value:
        """The same value wherever a condition holds."""
        assert self.machine.decisions is not None
        return self.machine.decisions.simplify(value, given)

    def is_anonymous(self, page: int) -> bool:
        """Whether a page belongs to no file: mapped in this run, or without a name in the frozen process."""
        if page in self.memory.mapped:
            return True
        region = self.snapshot.region_at(page << 12)
        return region is None or not region.name.startswith("/")

    def read_c_string(self, address: int, most: int = 4096) -> bytes:
        data = bytearray()
        while len(data) < most:
            byte = self.memory.read(address + len(data), 1)
            if byte == b"\0":
                break
            data += byte
        return bytes(data)


def _elsewhere() -> d.Description:
    """A pipe that another process reads: a log."""
    pipe = d.Sink()
    pipe.is_socket = False
    return pipe


def _number(found: Descriptor, key: str) -> int:
    value = found.detail.get(key, 0)
    assert isinstance(value, int)
    return value
