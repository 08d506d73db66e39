from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from results.delays import (
    INFORMED,
    UNIFORM,
    Case,
    Deviation,
    Mark,
    Record,
    draws,
    likelihood,
    longest_wait,
    main,
    page,
    read_case,
    record,
)
from results.delays_plot import plot
from soft.bundle.model import FORMAT, Bundle, Counts, Manifest
from soft.bundle.model import Path as BundlePath
from soft.launch.find import find
from soft.scenarios import loader
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Close

AGENTS = Path(__file__).resolve().parents[2] / "agents" / "build"
HARD, WAIT = t.var("m0.hard_timeout", 16), t.var("w1.ms", 32)
RECORD = Record(INFORMED, 100, 2.0, 0, (Mark(1, 0.02, 1, 1), Mark(3, 0.06, 2, 2), Mark(70, 1.4, 3, 2)))


def in_seconds(late: int) -> Term:
    """The rule is gone: the wait took its timeout, and so many milliseconds more."""
    timeout = t.mul(t.zero_extend(16, HARD), t.const(1000, 32))
    return t.and_(t.negate(t.eq(HARD, t.const(0, 16))), t.ule(t.add(timeout, t.const(late, 32)), WAIT))


def timeouts(late: int = 0) -> Bundle:
    """An agent that removes a rule in time, or late: two paths without any output, and with one."""
    gone = in_seconds(late)
    manifest = Manifest(
        FORMAT, "hard_timeout", "0" * 64, "agent", "0", Counts(2, 2, 0, 2), True,
        statistics={"seconds": 1.0, "coverage": 0.1},
    )  # fmt: skip
    witnesses: tuple[dict[str, int], ...] = ({"m0.hard_timeout": 1, "w1.ms": 5000}, {"m0.hard_timeout": 0, "w1.ms": 0})
    return Bundle(
        manifest, loader.load("hard_timeout"), (gone, t.negate(gone)), ((Close(1),), ()),
        [BundlePath((number,), number, witness) for number, witness in enumerate(witnesses)],
    )  # fmt: skip


def test_a_scenario_s_longest_wait() -> None:
    assert longest_wait(loader.load("hard_timeout")) == 70
    assert longest_wait(loader.load("timeout_refresh")) == 24
    assert longest_wait(loader.load("hello")) == 0


def test_random_inputs_are_in_the_domain_and_the_same_again() -> None:
    scenario = loader.load("flow_expire_order")
    first = list(itertools.islice(draws(scenario, UNIFORM), 50))
    assert first == list(itertools.islice(draws(scenario, UNIFORM), 50))
    assert all(variable.allows(values[variable.name]) for values in first for variable in scenario.variables)
    assert len({tuple(values.items()) for values in first}) > 40


def test_who_is_informed_draws_timeouts_that_can_show() -> None:
    scenario = loader.load("hard_timeout")
    informed = [values["m0.hard_timeout"] for values in itertools.islice(draws(scenario, INFORMED), 500)]
    assert max(informed) <= 70
    uniform = [values["m0.hard_timeout"] for values in itertools.islice(draws(scenario, UNIFORM), 500)]
    assert max(uniform) > 10_000


def test_native_runs_and_the_classes_that_they_hit() -> None:
    """This bundle is a made-up one: the agent really does more than it says, so no run is as predicted."""
    done = record(timeouts(), find(str(AGENTS / "reference")), INFORMED, budget=60.0, most=3)
    assert (done.runs, done.disagreed, done.marks) == (3, 3, ())


def test_the_likelihood_of_a_narrow_deviation() -> None:
    # 69 timeouts of 65,536 with a second each of 70,001 milliseconds, and 70 with one millisecond.
    exact = (69 * 1000 + 1) / 65_536 / 70_001
    assert likelihood(timeouts(), timeouts(late=1000), UNIFORM, 1 << 21) == pytest.approx(exact, rel=0.4)
    informed = (69 * 1000 + 1) / 71 / 70_001
    assert likelihood(timeouts(), timeouts(late=1000), INFORMED, 1 << 18) == pytest.approx(informed, rel=0.05)
    assert likelihood(timeouts(), timeouts(), INFORMED, 1 << 10) == 0


def test_what_was_seen_within_a_time() -> None:
    assert RECORD.after(1.0).classes == 2
    assert RECORD.after(5.0).classes == 3
    assert RECORD.after(0.001).classes == 0
    assert RECORD.runs_within(1.0) == 50
    assert RECORD.runs_within(9.0) == 100


def case() -> Case:
    return Case("reference", "hard_timeout", 1.0, 3, 2, True, (RECORD,))


def test_the_page_and_the_plot() -> None:
    deviation = Deviation("modified-02", "hard_timeout", "w1.ms = 1", {UNIFORM: 0.5, INFORMED: 0.0}, 3.0, 0.02)
    text = "\n".join(page([case()], deviation))
    assert "| reference | hard_timeout | 3 | 2 | 1.0 s | informed | 50 | 2 | 100 | 3 | 2 | 70 | 0 |" in text
    assert "| uniform | 5.00e-01 | 2 | 0.0 s | 100.0 % |" in text
    assert "| informed | 0.00e+00 | – | – | 0.0 % |" in text
    drawing = plot([case()])
    assert drawing.startswith("<svg")
    assert "reference, hard_timeout" in drawing


def test_records_are_written_and_read(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[2] / "results/samples/reference/queue_config.soft"
    said: list[str] = []
    main([str(sample), str(AGENTS / "reference"), "--budget", "0.3"], said.append)
    (text,) = said
    uniform, informed = json.loads(text)
    assert uniform["runs"] >= 1
    assert (uniform["disagreed"], informed["disagreed"]) == (0, 0)
    (tmp_path / "runs.json").write_text(text)
    assert read_case("reference", "queue_config", tmp_path, tmp_path / "runs.json") is None
