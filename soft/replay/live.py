"""What everything here needs of a switch that runs, be it a process of ours or a device on a cable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from soft.launch.exchange import Burst
from soft.launch.ports import Port


class Live(Protocol):
    """A switch that can be talked to."""

    @property
    def ports(self) -> Mapping[int, Port]: ...

    def send(self, data: bytes) -> None:
        """Bytes from the controller. OSError if the switch does not take them."""

    def collect(self, limit: float, at_least: float = 0.0) -> Burst:
        """Everything that the switch sends until it is quiet; see Exchange.collect."""
