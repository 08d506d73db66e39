"""Do many pieces of work in several processes that are forked from this one; results come as they are ready."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

from soft.errors import SoftError

Result = TypeVar("Result")
# Given to a worker at once, so that it need not wait for the next one; few, so that all finish together.
_AHEAD = 2

Work = Callable[[], AbstractContextManager[Callable[[int], Result]]]


def cores() -> int:
    return len(os.sched_getaffinity(0))


def spread(work: Work[Result], items: Sequence[int], jobs: int) -> Generator[Result, None, None]:
    """The result of each item, in any order. `work()` is entered once in every worker and does its items.

    A SoftError in a worker is raised here, and ends all of them. However this ends, no worker is left.
    """
    if jobs <= 1 or len(items) <= 1:
        with work() as do:
            for item in items:
                yield do(item)
        return
    workers: list[tuple[BaseProcess, Connection]] = []
    left = list(reversed(items))
    try:
        # The workers share what is in memory now; a collection of garbage in one of them would copy it.
        gc.freeze()
        for _ in range(min(jobs, len(items))):
            workers.append(_start(work, [channel for _, channel in workers]))
        channels = {channel: 0 for _, channel in workers}
        for channel in channels:
            for _ in range(min(_AHEAD, len(left))):
                channels[channel] += _give(channel, left.pop())
        while any(channels.values()):
            for ready in wait([channel for channel, busy in channels.items() if busy]):
                assert isinstance(ready, Connection)
                result: Result = _take(ready)
                channels[ready] -= 1
                if left:
                    channels[ready] += _give(ready, left.pop())
                yield result
    finally:
        gc.unfreeze()
        _end(workers)


def _start(work: Work[Result], others: list[Connection]) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_life, args=(work, theirs, [ours, *others]), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _give(channel: Connection, item: int) -> int:
    with contextlib.suppress(OSError):  # Whoever died is noticed when its answer is awaited.
        channel.send(item)
    return 1


def _take(channel: Connection) -> Result:  # type: ignore[type-var]
    try:
        good, result = channel.recv()
    except (EOFError, OSError):
        raise SoftError("A worker process was killed; with fewer --jobs there is more memory for each.") from None
    if not good:
        raise SoftError(result)
    return result  # type: ignore[no-any-return]


def _life(work: Work[Result], channel: Connection, others: list[Connection]) -> None:
    """A worker: items in, results out, until the coordinator goes away or says so with SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    # Only the coordinator holds the other end: its death ends us.
    for other in others:
        other.close()
    try:
        with work() as do:
            while True:
                channel.send((True, do(channel.recv())))
    except (EOFError, BrokenPipeError, ConnectionResetError, SystemExit):
        return
    except SoftError as error:
        with contextlib.suppress(OSError):
            channel.send((False, str(error)))


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _end(workers: list[tuple[BaseProcess, Connection]]) -> None:
    for process, _ in workers:
        process.terminate()
    for process, channel in workers:
        process.join()
        channel.close()
