"""Work spread over processes: every item once, every failure told, no process left."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from soft.errors import SoftError
from soft.replay.workers import spread


@contextlib.contextmanager
def squares() -> Iterator[Callable[[int], tuple[int, int]]]:
    yield lambda item: (item * item, os.getpid())


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_every_item_once(jobs: int) -> None:
    found = list(spread(squares, range(23), jobs))
    assert sorted(result for result, _ in found) == [n * n for n in range(23)]
    assert (os.getpid() in {pid for _, pid in found}) == (jobs == 1)
    assert multiprocessing.active_children() == []


def test_nothing_to_do() -> None:
    assert list(spread(squares, [], 4)) == []


def test_an_error_of_a_worker_is_raised_here() -> None:
    @contextlib.contextmanager
    def failing() -> Iterator[Callable[[int], int]]:
        def do(item: int) -> int:
            if item == 3:
                raise SoftError("Three is too many.")
            return item

        yield do

    with pytest.raises(SoftError, match=r"^Three is too many\.$"):
        list(spread(failing, range(8), 2))
    assert multiprocessing.active_children() == []


def test_a_killed_worker_is_noticed() -> None:
    @contextlib.contextmanager
    def dying() -> Iterator[Callable[[int], int]]:
        def do(item: int) -> int:
            os.kill(os.getpid(), signal.SIGKILL)
            return item

        yield do

    with pytest.raises(SoftError, match="worker process was killed"):
        list(spread(dying, range(4), 2))
    assert multiprocessing.active_children() == []


def test_workers_put_away_what_they_opened_when_the_reader_stops() -> None:
    ends, begins = os.pipe()

    @contextlib.contextmanager
    def careful() -> Iterator[Callable[[int], int]]:
        def do(item: int) -> int:
            time.sleep(0.001)
            return os.getpid()

        try:
            yield do
        finally:
            os.write(begins, b".")

    results = spread(careful, range(10_000), 2)
    seen = {next(results)}
    while len(seen) < 2:
        seen.add(next(results))
    results.close()
    os.close(begins)
    assert os.read(ends, 10) == b".."
    os.close(ends)
