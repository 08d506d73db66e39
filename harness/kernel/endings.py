"""How a run ends: each an exception that leaves the machine's loop."""

from __future__ import annotations


class Ended(Exception):
    """The run is over."""


class Quiet(Ended):
    """The last step is done, and the agent waits for more."""


class Crashed(Ended):
    """The agent ended: a signal's name, or "exit N"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Flooded(Ended):
    """The agent sent more than anybody would read."""


class Interrupted(Exception):
    """A signal handler has to run before the blocked call returns EINTR."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class Unproved(Exception):
    """Ticks of a timer cannot be proved alike."""
