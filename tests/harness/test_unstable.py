"""harness/run.py, `_repeat`: a path that depends on bytes which the agent never wrote is marked."""

from __future__ import annotations

import pytest

from harness.run import UNSTABLE
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
