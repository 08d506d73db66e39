"""Open file descriptions: what a descriptor of the agent refers to, as far as the agent can tell.

A read gives the bytes, an empty list at the end of a stream, or None where it would block. Nothing here knows the
machine: bytes are values, integers or symbolic pairs.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from harness.kernel.errno import EAGAIN, EBADF, EINVAL, ENOTCONN, EPIPE
from harness.machine.ends import Unsupported
from harness.machine.values import Sym, Value
from harness.marks import RANDOM_BYTES, random_byte

Bytes = list[Value]


class Description:
    """Something that can be neither read nor written; what is behind it decides the rest."""

    kind = "a descriptor"
    is_socket = False
    listening = False

    smallest_read = 0
    """A read of fewer bytes is an error."""

    def __init__(self) -> None:
        self.nonblocking = False
        self.status = O_RDWR
        """The other flags that F_GETFL gives."""
        self.socket_type = 1  # SOCK_STREAM
        self.arrivals = 0
        """How often something new came to be read: what an edge-triggered epoll reports."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def hung_up(self) -> int:
        """The poll events that tell of the other end: POLLHUP, POLLERR."""
        return 0

    def unread(self) -> int | None:
        """How many bytes wait, where FIONREAD tells."""
        return None

    def waiting(self) -> int | None:
        """How many bytes a read of any number would give, where that is known."""
        return self.unread()

    def read(self, count: int, peek: bool = False) -> Bytes | int | None:
        raise Unsupported(f"a read from {self.kind}")

    def write(self, data: Sequence[Value]) -> int:
        raise Unsupported(f"a write to {self.kind}")

    takes_lengths = False
    """Whether `write_some` is there: a write of which only a symbolic number of bytes counts."""

    def write_some(self, data: Sequence[Value], length: Sym) -> None:
        raise Unsupported(f"a write of symbolic length to {self.kind}")

    def closed(self) -> None:
        """The last descriptor of it was closed."""


class Stream(Description):
    """A byte stream from and to the outside: the control channel, or a port whose frames are a stream."""

    kind = "a stream"
    is_socket = True

    def __init__(
        self, on_write: Callable[..., None], on_close: Callable[[], None], takes_lengths: bool = False
    ) -> None:
        super().__init__()
        self.takes_lengths = takes_lengths
        self.inbox: deque[Value] = deque()
        self.at_end = False
        self.unseen = False
        """The agent has not looked at what came last."""
        self.asked, self.asked_at = 0, (0, 0)  # type: int, tuple[Value, int]
        """How often in a row, and when, an agent that does not wait has asked for more."""
        self._on_write = on_write
        self._on_close = on_close

    def deliver(self, data: Sequence[Value]) -> None:
        self.inbox.extend(data)
        self.arrivals += 1
        self.unseen = bool(data)

    def readable(self) -> bool:
        return bool(self.inbox) or self.at_end

    def unread(self) -> int | None:
        return len(self.inbox)

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        if not self.inbox:
            return [] if self.at_end else None
        self.unseen = False
        count = min(count, len(self.inbox))
        if peek:
            return [self.inbox[i] for i in range(count)]
        return [self.inbox.popleft() for _ in range(count)]

    def write(self, data: Sequence[Value]) -> int:
        self._on_write(data)
        return len(data)

    def write_some(self, data: Sequence[Value], length: Sym) -> None:
        self._on_write(data, length)

    def closed(self) -> None:
        self._on_close()


class Frames(Description):
    """A port whose frames are datagrams or packets; what does not fit into the reader's buffer is lost."""

    kind = "a port"
    is_socket = True

    takes_lengths = True

    def __init__(self, on_write: Callable[..., None]) -> None:
        super().__init__()
        self.socket_type = 2  # SOCK_DGRAM
        self.inbox: deque[Bytes] = deque()
        self._on_write = on_write

    def deliver(self, frame: Bytes) -> None:
        self.inbox.append(frame)
        self.arrivals += 1

    def readable(self) -> bool:
        return bool(self.inbox)

    def waiting(self) -> int | None:
        return len(self.inbox[0]) if self.inbox else 0

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        if not self.inbox:
            return None
        frame = self.inbox[0] if peek else self.inbox.popleft()
        return frame[:count]

    def write(self, data: Sequence[Value]) -> int:
        self._on_write(data)
        return len(data)

    def write_some(self, data: Sequence[Value], length: Sym) -> None:
        self._on_write(data, length)


class Sink(Description):
    """A peer that takes everything and never says anything: a log, a database, another process of the agent's."""

    kind = "a socket to another process"
    is_socket = True

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        return None

    def write(self, data: Sequence[Value]) -> int:
        return len(data)


class Unconnected(Description):
    """A socket that the agent made during the run; there is nobody to connect to."""

    kind = "a socket that is not connected"
    is_socket = True

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        return None

    def write(self, data: Sequence[Value]) -> int:
        return ENOTCONN


class Listener(Description):
    """Nobody else ever connects."""

    kind = "a listening socket"
    is_socket = True
    listening = True

    def writable(self) -> bool:
        return False


class Null(Description):
    """/dev/null, and logs that are files: writes vanish, reads are at the end."""

    kind = "a file"

    def readable(self) -> bool:
        return True

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        return []

    def write(self, data: Sequence[Value]) -> int:
        return len(data)


class Setting(Null):
    """A file of the system's configuration, which reads as it does on the machine that explores."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content, self._position = content, 0

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        begin = self._position
        self._position = min(len(self._content), begin + count)
        return list(self._content[begin : self._position])


class Noise(Null):
    """Random numbers. They are the same in every run but one, which shows whether anything depends on them.

    `tracked` tells whether they are variables, each of its own.
    """

    def __init__(self, seed: int, tracked: bool) -> None:
        super().__init__()
        self._source = random.Random(seed)
        self._tracked = tracked
        self._position = 0

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        data = [self._source.getrandbits(8) for _ in range(count)]
        if not self._tracked:
            return list(data)
        begin = self._position
        self._position += count
        if self._position > RANDOM_BYTES:
            raise Unsupported(f"more than {RANDOM_BYTES} random numbers")
        return [Sym(random_byte(begin + index), byte) for index, byte in enumerate(data)]


@functools.cache
def random_bytes(seed: int, count: int) -> bytes:
    """The first of the random numbers with a seed."""
    source = random.Random(seed)
    return bytes(source.getrandbits(8) for _ in range(count))


class File(Null):
    """A regular file of the agent's. Reading it is not modelled: its content may change by the time of a replay."""

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        raise Unsupported("a read from a file")


# What a pipe of Linux takes, and what it takes as a whole or not at all.
PIPE_CAPACITY, PIPE_ATOMIC = 65536, 4096


class PipeBuffer:
    """What the two ends of a pipe share."""

    def __init__(self) -> None:
        self.content: deque[Value] = deque()
        self.writers_closed = False
        self.readers_closed = False
        self.arrivals = 0


class PipeEnd(Description):
    """One end of a pipe, or of a pair of connected sockets. What another, frozen thread would read stays in it."""

    kind = "a pipe"

    def __init__(self, incoming: PipeBuffer | None, outgoing: PipeBuffer | None) -> None:
        super().__init__()
        self._incoming = incoming
        self._outgoing = outgoing
        self.is_socket = incoming is not None and outgoing is not None
        self.status = O_RDWR if self.is_socket else O_RDONLY if incoming is not None else O_WRONLY

    def rewrite(self, change: Callable[[Value], Value]) -> None:
        """Put other terms in place of some that wait to be read."""
        if self._incoming is not None:
            self._incoming.content = deque(map(change, self._incoming.content))

    @property
    def arrivals(self) -> int:
        return self._incoming.arrivals if self._incoming is not None else 0

    @arrivals.setter
    def arrivals(self, number: int) -> None:
        pass

    def readable(self) -> bool:
        incoming = self._incoming
        return incoming is not None and bool(incoming.content or (self.is_socket and incoming.writers_closed))

    def at_end(self) -> bool:
        return self._incoming is not None and not self._incoming.content and self._incoming.writers_closed

    def writable(self) -> bool:
        return self._outgoing is not None and len(self._outgoing.content) < PIPE_CAPACITY

    def hung_up(self) -> int:
        events = POLLHUP if self._incoming is not None and self._incoming.writers_closed else 0
        if not self.is_socket and self._outgoing is not None and self._outgoing.readers_closed:
            events |= POLLERR
        return events

    def unread(self) -> int | None:
        return len(self._incoming.content) if self._incoming is not None else 0

    def read(self, count: int, peek: bool = False) -> Bytes | int | None:
        if self._incoming is None:
            return EBADF
        content = self._incoming.content
        if not content:
            return [] if self._incoming.writers_closed or not count else None
        count = min(count, len(content))
        if peek:
            return [content[i] for i in range(count)]
        return [content.popleft() for _ in range(count)]

    def write(self, data: Sequence[Value]) -> int:
        if self._outgoing is None:
            return EBADF
        if self._outgoing.readers_closed:
            return EPIPE
        content = self._outgoing.content
        room = PIPE_CAPACITY - len(content)
        if len(data) > room and (not room or len(data) <= PIPE_ATOMIC):
            return EAGAIN
        content.extend(data[:room])
        self._outgoing.arrivals += bool(data)
        return min(len(data), room)

    def closed(self) -> None:
        if self._outgoing is not None:
            self._outgoing.writers_closed = True
            self._outgoing.arrivals += 1
        if self._incoming is not None:
            self._incoming.readers_closed = True


class EventCounter(Description):
    """eventfd."""

    kind = "an eventfd"
    smallest_read = 8
    _MOST = (1 << 64) - 2

    def __init__(self, count: int, semaphore: bool = False) -> None:
        super().__init__()
        self.count = count
        self._semaphore = semaphore

    def readable(self) -> bool:
        return self.count > 0

    def writable(self) -> bool:
        return self.count < self._MOST

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        if not self.count:
            return None
        taken = 1 if self._semaphore else self.count
        self.count -= taken
        return list(taken.to_bytes(8, "little"))

    def write(self, data: Sequence[Value]) -> int:
        if len(data) < 8:
            return EINVAL
        if not all(isinstance(byte, int) for byte in data[:8]):
            raise Unsupported("a number from the input in an eventfd")
        number = int.from_bytes(bytes(data[:8]), "little")  # type: ignore[arg-type]
        if number > self._MOST:
            return EINVAL
        if self.count + number > self._MOST:
            return EAGAIN
        self.count += number
        self.arrivals += 1
        return 8


class Timer(Description):
    """timerfd: `deadline` in milliseconds of the monotonic clock, None when disarmed."""

    kind = "a timerfd"
    smallest_read = 8

    def __init__(self, deadline: Value | None, interval: int, clock: int = 1) -> None:
        super().__init__()
        self.deadline = deadline
        self.interval = interval
        self.clock = clock
        self.ticks = 0

    def readable(self) -> bool:
        return self.ticks > 0

    def writable(self) -> bool:
        return False

    def tick(self) -> None:
        self.ticks += 1
        self.arrivals += 1

    def read(self, count: int, peek: bool = False) -> Bytes | None:
        if not self.ticks:
            return None
        ticks, self.ticks = self.ticks, 0
        return list(ticks.to_bytes(8, "little"))


class Interest:
    """What an epoll set wants to know about one descriptor."""

    __slots__ = ("data", "description", "events", "seen")

    def __init__(self, description: Description, events: int, data: Any) -> None:
        self.description = description
        self.events = events
        self.data = data
        self.seen = -1
        """The arrivals at the last report: an edge-triggered interest reports nothing twice."""


class Epoll(Description):
    """An epoll set, by descriptor number."""

    kind = "an epoll descriptor"

    def __init__(self) -> None:
        super().__init__()
        self.interests: dict[int, Interest] = {}
        self._queue: list[int] = []  # the ready ones, in the order in which they are reported

    def ready(self) -> list[tuple[int, Interest, int]]:
        """(descriptor, interest, events) of all that have something to report."""
        found = {}
        for number, interest in self.interests.items():
            events = events_of(interest.description) & (interest.events | ERROR_EVENTS)
            is_old = interest.events & EPOLLET and interest.seen == interest.description.arrivals
            if interest.events & ~EPOLL_FLAGS and events and not is_old:
                found[number] = (number, interest, events)
        self._queue = [number for number in self._queue if number in found]
        self._queue += [number for number in found if number not in self._queue]
        return [found[number] for number in self._queue]

    def report(self, most: int) -> list[tuple[int, Interest, int]]:
        """The first of them. What stays ready goes behind the others, so that everything has its turn."""
        chosen = self.ready()[:most]
        for number, interest, _ in chosen:
            self._queue.remove(number)
            interest.seen = interest.description.arrivals
            if interest.events & EPOLLONESHOT:
                interest.events &= EPOLL_FLAGS
            elif not interest.events & EPOLLET:
                self._queue.append(number)
        return chosen

    def readable(self) -> bool:
        return bool(self.ready())

    def writable(self) -> bool:
        return False


O_RDONLY, O_WRONLY, O_RDWR = 0, 1, 2
EPOLLONESHOT, EPOLLET = 1 << 30, 1 << 31
EPOLL_FLAGS = EPOLLONESHOT | EPOLLET | 1 << 29 | 1 << 28
POLLIN, POLLPRI, POLLOUT, POLLERR, POLLHUP, POLLNVAL, POLLRDNORM, POLLWRNORM = 1, 2, 4, 8, 16, 32, 64, 256
ERROR_EVENTS = POLLERR | POLLHUP


def events_of(description: Description) -> int:
    """The poll events that hold now."""
    events = POLLIN | POLLRDNORM if description.readable() else 0
    if description.writable():
        events |= POLLOUT | POLLWRNORM
    return events | description.hung_up()
