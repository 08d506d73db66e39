"""Collect what an agent sends until it is quiet, has ended, or will not stop."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from soft.launch.ports import Port, unread_by_peer
from soft.launch.quiet import InputQueues, Processes

# More than any answer to a step: the longest stats reply is 64 kB, a packet floods a few ports once.
FLOOD_BYTES = 1 << 20
FLOOD_PACKETS = 2000
# An agent that sleeps with something unread may be one that looks only now and then; it gets this many settle times.
_UNREAD_PATIENCE = 75
# Seconds that an agent sleeps with something unread before it is nudged, each time; one that was woken is up sooner.
_NUDGE_AFTER = 0.002


@dataclass(slots=True)
class Burst:
    """What came out of an agent between two moments of quiet, and how it ended."""

    control: bytearray = field(default_factory=bytearray)
    packets: list[tuple[int, bytes]] = field(default_factory=list)
    quiet: bool = False
    """The agent sleeps and has nothing more to say."""
    ended: str | None = None
    """The agent's process ended: `SIGSEGV`, `exit 1`."""
    closed: bool = False
    """The agent closed the control channel."""
    flooded: bool = False
    """It sent more than the bound, and collecting was given up."""

    @property
    def goes_on(self) -> bool:
        """The agent is there and quiet."""
        return self.quiet and self.ended is None and not self.flooded

    def add(self, later: Burst) -> None:
        """What came behind, as of the same moment."""
        self.control += later.control
        self.packets += later.packets
        self.quiet, self.ended = later.quiet, later.ended
        self.closed, self.flooded = self.closed or later.closed, self.flooded or later.flooded


class Exchange:
    """The wires of one running agent: its control channel and its ports."""

    def __init__(
        self,
        control: socket.socket,
        ports: Mapping[int, Port],
        processes: Processes,
        queues: InputQueues | None,
        ended: Callable[[], str | None],
        pidfd: int,
        settle: float,
        nudge: Callable[[], None] | None = None,
    ) -> None:
        self._nudge = nudge
        self._control: socket.socket | None = control
        self._ports = ports
        self._processes = processes
        self._queues = queues
        self._ended = ended
        self._settle = settle
        self._by_fileno = {port.fileno(): port for port in ports.values()}
        self._pidfd = pidfd
        # A UNIX socket's own end knows what the agent has not read; for all others the agent's end is asked.
        self._counts_control = control.family == socket.AF_UNIX
        self._poller = select.poll()
        for descriptor in (control.fileno(), pidfd, *self._by_fileno):
            self._poller.register(descriptor, select.POLLIN)

    def collect(
        self, limit: float, at_least: float = 0.0, settle: float | None = None, *, still: bool = False
    ) -> Burst:
        """Wait until the agent is quiet, for `limit` seconds at most, not counting the time to wait `at_least`.

        Quiet is who says nothing for the profile's settle time, or for another one. With `still`, no thread of it may
        run at all in that time: threads that wake each other seem to sleep whenever they are looked at one by one.
        """
        settle = self._settle if settle is None else settle
        burst = Burst()
        begin = time.monotonic()
        pause = 0.00003
        still_since: float | None = None
        last_output = float("-inf")
        ran: tuple[bytes, ...] = ()
        nudged = begin
        while True:
            # The order matters. An agent that is being woken still seems to sleep, so whether it has read everything is
            # asked first; and what it sent before it slept is in what is read last.
            self._acknowledge()
            read = self.everything_read()
            asleep = self._processes.asleep()
            got = self._drain(burst)
            if burst.ended is not None or burst.flooded:
                return burst
            now = time.monotonic()
            last_output = now if got else last_output
            if now - begin > at_least + limit:
                # It still talks, or it is busy without a word.
                burst.flooded = now - last_output < max(0.1, 2 * settle)
                return burst
            if still and asleep and ran != (ran := self._processes.ran()):
                still_since = None
            if got:
                still_since = None
            elif asleep:
                still_since = now if still_since is None else still_since
                needed = settle if read else max(settle, 0.005) * _UNREAD_PATIENCE
                left = max(still_since + needed, begin + at_least) - now
                if left <= 0:
                    burst.quiet = True
                    return burst
                if not read and self._nudge is not None and now - max(still_since, nudged) > _NUDGE_AFTER:
                    self._nudge()
                    nudged = now
                self._poller.poll(min(left * 1000, 5.0 if read else 1.0))
            else:
                still_since = None
                time.sleep(pause)
                pause = min(pause * 1.5, 0.001)

    def _acknowledge(self) -> None:
        """Have what came over TCP acknowledged at once, now and for a while.

        A kernel that has nothing to send waits 40 ms, and the agent's holds back a second small message until then:
        an agent would seem quiet that has spoken. That it should not wait is forgotten with every answer.
        """
        if self._control is not None and not self._counts_control:
            with contextlib.suppress(OSError):
                self._control.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def everything_read(self) -> bool:
        """Nothing waits for the agent on its channel and its ports, as far as the kernel tells."""
        if self._counts_control and self._control is not None:
            with contextlib.suppress(OSError):
                if unread_by_peer(self._control):
                    return False
        if any(port.unread() for port in self._ports.values()):
            return False
        return self._queues is None or self._queues.empty()

    def _drain(self, burst: Burst) -> bool:
        got = False
        ended = False
        for descriptor, _ in self._poller.poll(0):
            if descriptor == self._pidfd:
                ended = True
            elif descriptor in self._by_fileno:
                got |= self._receive(self._by_fileno[descriptor], burst)
            else:
                got = True
                self._read_control(burst)
        if ended and not got:
            # Everything it sent was read before: now its end is the last thing to say.
            burst.ended = self._ended()
        if len(burst.control) > FLOOD_BYTES or len(burst.packets) > FLOOD_PACKETS:
            burst.flooded = True
        return got

    def _receive(self, port: Port, burst: Burst) -> bool:
        try:
            frames = port.receive()
        except OSError:
            frames = []
        if not frames:
            # Readable without a frame: the agent has closed its end of a stream, which would stay readable for ever.
            if port.closed():
                self._poller.unregister(port.fileno())
                del self._by_fileno[port.fileno()]
            return False
        burst.packets += [(port.number, frame) for frame in frames]
        return True

    def _read_control(self, burst: Burst) -> None:
        assert self._control is not None
        try:
            chunk = self._control.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            burst.control += chunk
        else:
            burst.closed = True
            self._poller.unregister(self._control)
            self._control = None
