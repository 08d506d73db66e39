"""A stage for a device: it cannot be started, so it is put back to an empty table before every input.

Of its end only the closed channel is seen: a crash that was predicted shows as a close.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from soft.errors import SoftError
from soft.launch.exchange import Burst
from soft.launch.handshake import HEADER
from soft.openflow.layout import layout_of
from soft.openflow.normalise import normalise
from soft.replay.device import Device
from soft.replay.reset import Reset
from soft.replay.runner import play
from soft.scenarios.model import Scenario
from soft.trace import Close, Crash, Flood, Hang, Trace

_PATIENCE = 5.0
# What a switch begins with, by the specification: no fragments dropped, 128 bytes of a packet to the controller.
_DEFAULT_CONFIG = bytes.fromhex("00000080")


class DeviceStage:
    """Plays inputs of one scenario on a device, which others may use before and after, but not at the same time."""

    def __init__(self, device: Device, scenario: Scenario) -> None:
        if scenario.openflow != "1.0":
            raise SoftError(f"A device can be put back between inputs in OpenFlow 1.0 only, not {scenario.openflow}.")
        self._scenario = scenario
        self._device = device

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def moves_clock(self) -> bool:
        return False

    def again(self, values: Mapping[str, int]) -> Trace | None:
        return None

    def fresh(self, values: Mapping[str, int]) -> Trace:
        self._put_back()
        before = Burst(quiet=True)
        if not self._scenario.handshake:
            self._device.connect()
            before = self._device.collect(_PATIENCE)
        raw = play(self._device, self._scenario.bind(values), before, patience=_PATIENCE)
        self._device.check_ports()
        if not self._scenario.handshake or any(isinstance(event, Close | Flood | Hang) for event in raw):
            self._device.hang_up()
        return normalise(raw, self._scenario.openflow)

    def visible(self, trace: Trace) -> Trace:
        return tuple(Close(event.step) if isinstance(event, Crash) else event for event in trace)

    def _put_back(self) -> None:
        device = self._device
        device.check_ports()
        if device.connected and device.home is not None and device.home.apply(device):
            return
        features = device.handshake(layout_of(self._scenario.openflow).version)
        device.home = device.home or Reset(features[HEADER.size :], _DEFAULT_CONFIG)
        if not device.home.apply(device):
            raise SoftError(f"The switch at {device.plan.text} does not come back to an empty table and defaults.")
