"""A crosscheck that is ended early, by a limit or by the user."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soft.crosscheck.compare import STOPPED
from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.run import run
from soft.crosscheck.sources import plan
from soft.crosscheck.stop import Stop, Stopped
from tests.soft.crosscheck.agents import SILENT, Tree, bundle, inputs, respond, scenario
from tests.soft.crosscheck.strategies import agents

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAMPLES = Path(__file__).parents[3] / "results" / "samples"


class After(Stop):
    """Ends after so many looks at the clock."""

    def __init__(self, checks: int) -> None:
        super().__init__()
        self._left = checks

    def check(self) -> None:
        self._left -= 1
        if self._left < 0:
            self.ask()
        super().check()


@SLOW
@given(agents(), agents(), st.integers(0, 30))
def test_what_is_told_is_true_whenever_it_ends(left: Tree, right: Tree, checks: int) -> None:
    stop = After(checks)
    found = crosscheck([bundle(left, "left"), bundle(right, "right")], solver="z3", stop=stop)
    whole = crosscheck([bundle(left, "left"), bundle(right, "right")], solver="z3")
    (comparison,) = found.comparisons
    assert (STOPPED in [doubt.sentence for doubt in comparison.doubts]) == stop.over
    assert comparison.verdict in (("differ", "unknown") if stop.over else (whole.verdict,))
    space = [(values, respond(left, values) != respond(right, values)) for values in inputs(scenario())]
    for finding in found.findings:
        assert respond(left, finding.example.values) != respond(right, finding.example.values)
        if finding.region.proved:
            assert all(differs for values, differs in space if finding.region.holds(values))


def test_pairs_that_are_not_compared_are_told() -> None:
    bundles = [bundle(SILENT, name) for name in ("one", "two", "three")]
    found = crosscheck(bundles, stop=Stop(time.monotonic()))
    assert found.verdict == "unknown"
    assert [(c.agents, c.verdict) for c in found.comparisons] == [
        (("one", "three"), "unknown"), (("one", "two"), "unknown"), (("two", "three"), "unknown"),
    ]  # fmt: skip
    assert {doubt.sentence for c in found.comparisons for doubt in c.doubts} == {STOPPED}


def test_ctrl_c_keeps_what_was_found() -> None:
    """The first one. What the second one does is for the caller."""

    def interrupt(said: str) -> None:
        if said == "reference and vswitch":
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    work = plan((str(SAMPLES / "reference" / "packet_out.soft"), str(SAMPLES / "vswitch" / "packet_out.soft")))
    found, files = run(work, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert STOPPED in [doubt.sentence for doubt in found.comparisons[0].doubts]
    assert files.keys() == {finding.conditions for finding in found.findings}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_limit_ends_all_scenarios(jobs: int) -> None:
    work = plan((str(SAMPLES / "reference"), str(SAMPLES / "vswitch")))
    found, _ = run(work, jobs=jobs, time_limit=0)
    assert len(found.comparisons) > 1
    assert {comparison.verdict for comparison in found.comparisons} == {"unknown"}


def test_the_second_ctrl_c_does_not_wait() -> None:
    stop = Stop()
    with stop.on_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Stopped):
        stop.check()
    stop.check()  # what is left to do goes on
