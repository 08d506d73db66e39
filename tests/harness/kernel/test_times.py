"""tests/harness/agents/times.c: every call gives the same natively and under the model."""

from __future__ import annotations

from tests.harness.kernel.lab import Experiment, compare, each


@each("times")
def test_as_natively(experiment: Experiment) -> None:
    compare(experiment)
