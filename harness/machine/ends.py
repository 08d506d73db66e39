"""Why the machine stops: each an exception that leaves a block in the middle."""

from __future__ import annotations


class Fault(Exception):
    """An access outside the mappings, or against their permissions: SIGSEGV."""

    def __init__(self, address: int, action: str) -> None:
        super().__init__(f"{action} of {address:#x}")
        self.address = address
        self.action = action


class Trap(Exception):
    """The processor stopped the agent: the signal's name."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


class Unsupported(Exception):
    """The model has no meaning for something that the agent did; the text names it, and may go into a bundle.

    The detail may not: it is for the person who explores.
    """

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what)
        self.detail = detail


class BlockLimit(Exception):
    """The run executed more blocks than a run may: an endless loop, as far as we can tell."""
