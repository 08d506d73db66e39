"""harness/run.py, `_repeat`: a path that depends on bytes which the agent never wrote is marked."""

from __future__ import annotations

from unittest import mock

import pytest

from harness import run
from harness.marks import UNSTABLE
from harness.run import Runner
from tests.harness.kernel import lab

EXPERIMENTS = {experiment.name: experiment for experiment in lab.experiments("stack")}


@pytest.mark.parametrize(
    ("name", "unstable"),
    [
        ("branches_on_what_it_never_wrote", True),
        ("sends_what_it_never_wrote", True),
        ("writes_first", False),
        ("reads_and_forgets", False),
    ],
)
def test_a_path_that_depends_on_unwritten_bytes_says_so(name: str, unstable: bool) -> None:
    outcome = lab.under_the_model(EXPERIMENTS[name])
    assert outcome.unsupported is None
    assert outcome.marks == ((UNSTABLE,) if unstable else ())


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("branches_on_what_it_never_wrote", 1),
        ("sends_what_it_never_wrote", 1),
        ("writes_first", 0),
        ("reads_and_forgets", 0),
    ],
)
def test_what_depends_on_no_such_byte_is_not_run_again(name: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apart from the part of all runs that is checked."""
    monkeypatch.setattr(run, "_FIRST_REPEATED", 0)
    monkeypatch.setattr(run, "_REPEATED", 1 << 30)
    with mock.patch.object(Runner, "_repeat", autospec=True, side_effect=Runner._repeat) as repeated:
        lab.under_the_model(EXPERIMENTS[name])
    assert repeated.call_count == times
