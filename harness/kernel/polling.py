"""Waiting for descriptors: poll, select, epoll, and timers that are descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.kernel import descriptions as d
from harness.kernel.clock import MILLISECOND, from_parts, later, split, until
from harness.kernel.endings import Interrupted
from harness.kernel.errno import EBADF, EEXIST, EINVAL, ENOENT, EPERM
from harness.kernel.table import syscall
from harness.machine.ends import Unsupported
from harness.machine.values import Sym, Value, concrete
from soft.solve import terms as t

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_ADD, _DELETE, _MODIFY = 1, 2, 3
_TFD_NONBLOCK, _TFD_TIMER_ABSTIME = 0o4000, 1
_CLOCK_REALTIME = 0
_SIGN32 = 1 << 31


def await_any(kernel: Kernel, found: Callable[[], list[Any]], timeout: Value | None) -> list[Any]:
    """What `found` gives, as soon as that is something; nothing after `timeout` milliseconds (None: without end)."""
    ready = found()
    if ready:
        return ready
    if timeout is not None and isinstance(timeout, int) and timeout == 0:
        if kernel.threads.current is None:
            kernel.outside.found_nothing()
        return found()
    deadline = None if timeout is None else later(kernel.clock.now, timeout)
    kernel.wait(lambda: bool(found()), deadline)
    return found()


def _milliseconds(kernel: Kernel, value: Value) -> Value | None:
    """A timeout of poll or epoll_wait: a signed 32-bit number, negative for no end."""
    if isinstance(value, Sym):
        kernel.decide(t.slt(t.extract(31, 0, value.term), t.const(0, 32)), bool(value.value & _SIGN32))
        if value.value & _SIGN32:
            return None
        low = t.zero_extend(32, t.extract(31, 0, value.term))
        kernel.decide(t.eq(low, t.const(0, 64)), value.value & 0xFFFFFFFF == 0)
        return Sym(low, value.value & 0xFFFFFFFF) if value.value & 0xFFFFFFFF else 0
    return None if value & _SIGN32 else value & 0xFFFFFFFF


def _timespec(kernel: Kernel, place: int, unit: int = MILLISECOND) -> Value | None:
    if not place:
        return None
    load = kernel.memory.load8
    return from_parts(load(place), load(place + 8), unit)


def _poll(kernel: Kernel, place: int, count: int, timeout: Value | None) -> int:
    memory, pin = kernel.memory, kernel.machine.pin
    entries = []
    for index in range(count):
        at = place + 8 * index
        number = pin(memory.load4(at))
        entries.append((at, number, pin(memory.load2(at + 4))))

    def found() -> list[tuple[int, int]]:
        result = []
        for at, number, wanted in entries:
            if number & _SIGN32:
                continue
            description = kernel.table.get(number)
            if description is None:
                result.append((at, d.POLLNVAL))
                continue
            events = d.events_of(description) & (wanted | d.ERROR_EVENTS)
            if events:
                result.append((at, events))
        return result

    ready = await_any(kernel, found, timeout)
    for at, _, _ in entries:
        memory.store2(at + 6, 0)
    for at, events in ready:
        memory.store2(at + 6, events)
    return len(ready)


@syscall(7, 3, symbolic=(2,))
def poll(kernel: Kernel, place: int, count: int, timeout: Value) -> int:
    return _poll(kernel, place, count, _milliseconds(kernel, timeout))


@syscall(271, 5)
def ppoll(kernel: Kernel, place: int, count: int, timeout: int, mask: int, size: int) -> int:
    with _Mask(kernel, mask):
        return _poll(kernel, place, count, _timespec(kernel, timeout))


class _Mask:
    """The signal mask of ppoll and its like, for the time of the call."""

    def __init__(self, kernel: Kernel, place: int) -> None:
        self._kernel = kernel
        self._before = kernel.signals.blocked
        if place:
            kernel.signals.blocked = kernel.machine.pin(kernel.memory.load8(place))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._kernel.signals.blocked = self._before


class _Left:
    """What is left of a timeout is written back, as Linux does for select."""

    def __init__(self, kernel: Kernel, place: int, unit: int) -> None:
        self._kernel, self._place, self._unit = kernel, place, unit

    def __enter__(self) -> None:
        timeout = _timespec(self._kernel, self._place, self._unit)
        self._kernel.waits_until = None if timeout is None else later(self._kernel.clock.now, timeout)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        deadline, clock = self._kernel.waits_until, self._kernel.clock
        if deadline is None or (kind is not None and not issubclass(kind, Interrupted)):
            return
        left = 0 if clock.not_after(deadline, clock.now) else until(deadline, clock.now)
        whole, rest = split(left, self._unit)
        self._kernel.memory.store8(self._place, whole)
        self._kernel.memory.store8(self._place + 8, rest)


def _select(kernel: Kernel, count: int, sets: tuple[int, int, int], timeout: Value | None) -> int:
    memory, pin = kernel.memory, kernel.machine.pin
    words = (count + 63) // 64
    wanted = []
    kinds = (d.POLLIN | d.ERROR_EVENTS, d.POLLOUT | d.POLLERR, d.POLLPRI)
    for place, events in zip(sets, kinds, strict=True):
        bits = sum(pin(memory.load8(place + 8 * i)) << 64 * i for i in range(words)) if place else 0
        wanted.append((place, bits, events))

    def found() -> list[tuple[int, int]]:
        return [
            (place, number)
            for place, bits, events in wanted
            for number in range(count)
            if bits >> number & 1 and number in kernel.table and d.events_of(kernel.table[number]) & events
        ]

    if any(bits >> n & 1 and n not in kernel.table for _, bits, _ in wanted for n in range(count)):
        return EBADF
    ready = await_any(kernel, found, timeout)
    for place, _, _ in wanted:
        if place:
            bits = sum(1 << number for at, number in ready if at == place)
            for i in range(words):
                memory.store8(place + 8 * i, bits >> 64 * i & (1 << 64) - 1)
    return len(ready)


@syscall(23, 5)
def select(kernel: Kernel, count: int, read: int, write: int, error: int, timeout: int) -> int:
    with _Left(kernel, timeout, 1000):
        return _select(kernel, count, (read, write, error), _timespec(kernel, timeout, 1000))


@syscall(270, 6)
def pselect6(kernel: Kernel, count: int, read: int, write: int, error: int, timeout: int, mask: int) -> int:
    inner = kernel.machine.pin(kernel.memory.load8(mask)) if mask else 0
    with _Mask(kernel, inner), _Left(kernel, timeout, MILLISECOND):
        return _select(kernel, count, (read, write, error), _timespec(kernel, timeout))


# ---------------------------------------------------------------------------------------------- epoll


@syscall(213, 1)
def epoll_create(kernel: Kernel, size: int) -> int:
    return kernel.install(d.Epoll())


@syscall(291, 1)
def epoll_create1(kernel: Kernel, flags: int) -> int:
    return kernel.install(d.Epoll())


@syscall(233, 4)
def epoll_ctl(kernel: Kernel, number: int, operation: int, target: int, event: int) -> int:
    epoll, description = kernel.table.get(number), kernel.table.get(target)
    if epoll is None or description is None:
        return EBADF
    if not isinstance(epoll, d.Epoll) or epoll is description:
        return EINVAL
    if isinstance(description, d.Null):
        return EPERM
    known = target in epoll.interests
    if operation == _DELETE:
        if not known:
            return ENOENT
        del epoll.interests[target]
        return 0
    if operation not in (_ADD, _MODIFY):
        return EINVAL
    if known == (operation == _ADD):
        return EEXIST if known else ENOENT
    events = kernel.machine.pin(kernel.memory.load4(event))
    data = kernel.machine.pin(kernel.memory.load8(event + 4))
    epoll.interests[target] = d.Interest(description, events, data)
    return 0


def _epoll_wait(kernel: Kernel, number: int, place: int, most: int, timeout: Value | None) -> int:
    epoll = kernel.table.get(number)
    if epoll is None:
        return EBADF
    if not isinstance(epoll, d.Epoll) or not 0 < most < _SIGN32:
        return EINVAL
    await_any(kernel, epoll.ready, timeout)
    ready = epoll.report(most)
    for index, (_, interest, events) in enumerate(ready):
        kernel.memory.store4(place + 12 * index, events)
        kernel.memory.store8(place + 12 * index + 4, interest.data)
    return len(ready)


@syscall(232, 4, symbolic=(3,))
def epoll_wait(kernel: Kernel, number: int, place: int, most: int, timeout: Value) -> int:
    return _epoll_wait(kernel, number, place, most, _milliseconds(kernel, timeout))


@syscall(281, 6, symbolic=(3,))
def epoll_pwait(kernel: Kernel, number: int, place: int, most: int, timeout: Value, mask: int, size: int) -> int:
    with _Mask(kernel, mask):
        return _epoll_wait(kernel, number, place, most, _milliseconds(kernel, timeout))


# ---------------------------------------------------------------------------------------------- timerfd


@syscall(283, 2)
def timerfd_create(kernel: Kernel, clock: int, flags: int) -> int:
    timer = d.Timer(None, 0, clock)
    timer.nonblocking = bool(flags & _TFD_NONBLOCK)
    return kernel.install(timer)


@syscall(286, 4)
def timerfd_settime(kernel: Kernel, number: int, flags: int, new: int, old: int) -> int:
    timer = kernel.table.get(number)
    if not isinstance(timer, d.Timer):
        return EBADF if timer is None else EINVAL
    if old:
        timerfd_gettime(kernel, number, old)
    interval, value = _timespec(kernel, new), _timespec(kernel, new + 16)
    assert interval is not None
    assert value is not None
    timer.ticks = 0
    timer.interval = kernel.machine.pin(interval)
    if isinstance(value, Sym):
        kernel.decide(t.eq(value.term, t.const(0, 64)), value.value == 0)
    if not concrete(value):
        timer.deadline = None
    elif flags & _TFD_TIMER_ABSTIME:
        if timer.clock == _CLOCK_REALTIME:
            raise Unsupported("a timerfd set to a time of day")
        timer.deadline = value
    else:
        timer.deadline = later(kernel.clock.now, value)
    return 0


@syscall(287, 2)
def timerfd_gettime(kernel: Kernel, number: int, place: int) -> int:
    timer = kernel.table.get(number)
    if not isinstance(timer, d.Timer):
        return EBADF if timer is None else EINVAL
    left = 0 if timer.deadline is None else max(0, concrete(timer.deadline) - concrete(kernel.clock.now))
    for offset, value in enumerate((timer.interval, left)):
        seconds, nanoseconds = split(value, MILLISECOND)
        kernel.memory.store8(place + 16 * offset, seconds)
        kernel.memory.store8(place + 16 * offset + 8, nanoseconds)
    return 0
