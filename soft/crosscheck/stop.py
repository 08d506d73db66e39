"""Ending a crosscheck early, at a time or when the user asks.

What was found by then is told, and that it is not all.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterable, Iterator

from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term


class Stopped(Exception):
    """The crosscheck is to end."""


class Stop:
    """Ends what a crosscheck is doing, once: what is left then is to tell what was found, and takes little time."""

    def __init__(self, moment: float | None = None) -> None:
        """`moment` is one of time.monotonic(), which all processes share."""
        self._moment = moment
        self._asked = False
        self.over = False

    def ask(self) -> None:
        self._asked = True

    def check(self) -> None:
        if not self.over and (self._asked or (self._moment is not None and time.monotonic() >= self._moment)):
            self.over = True
            raise Stopped

    @contextlib.contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """The first Ctrl-C asks for an end, the second one does not wait for it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self.interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def interrupted(self, *_: object) -> None:
        """The handler of Ctrl-C."""
        if self._asked:
            raise KeyboardInterrupt
        self.ask()


class StoppableSolver(Solver):
    """A solver that is asked nothing any more when the crosscheck is to end."""

    def __init__(self, name: str, timeout: float | None, stop: Stop) -> None:
        super().__init__(name, timeout)
        self._stop = stop

    def check(self, assumptions: Iterable[Term] = ()) -> Answer:
        self._stop.check()
        return super().check(assumptions)
