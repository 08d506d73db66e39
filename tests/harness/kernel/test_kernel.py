"""tests/harness/agents/frozen.c: the modelled kernel goes on where the real one was."""

from __future__ import annotations

from tests.harness.kernel.lab import Experiment, compare, each


@each("frozen")
def test_as_natively(experiment: Experiment) -> None:
    compare(experiment)
