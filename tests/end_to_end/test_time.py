"""Time and handshakes: explored, verified to the millisecond on live agents, and the two deviations found."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from harness.exploration import Exploration
from harness.snapshot import freeze
from soft.bundle.check import check
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Finding, Findings
from soft.replay.confirm import confirm
from soft.replay.runner import run
from soft.replay.verify import verify
from soft.scenarios.loader import load
from soft.solve.solver import Solver
from soft.trace import Trace
from tests.end_to_end.lab import directory, target

# The most paths that each may have: a wait of 70 seconds has no path for each tick.
SCENARIOS = {
    "hello": 10,
    "hello_twice": 10,
    "first_message": 10,
    "idle_timeout": 20,
    "hard_timeout": 20,
    "timeout_refresh": 50,
    "flow_expire_order": 120,
    "echo_idle": 5,
}


@functools.cache
def explored(agent: str, name: str) -> Bundle:
    scenario, place = load(name), Path(directory().name) / agent / name
    snapshot = freeze(target(agent), ports=scenario.ports, handshake=scenario.handshake, version=1)
    manifest, _ = Exploration(snapshot, scenario, place, agent).run()
    assert manifest.complete, manifest.reasons
    return read(place)


@pytest.mark.parametrize("agent", ["reference", "vswitch"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_explored_holds_on_the_live_agent(agent: str, scenario: str) -> None:
    bundle = explored(agent, scenario)
    assert len(bundle.paths) <= SCENARIOS[scenario]
    assert not any(path.marks for path in bundle.paths)
    result = verify(bundle, target(agent))
    assert [check.verdict for check in result.checks] == ["agreed"] * len(bundle.paths)
    assert "real time" not in result.times


@pytest.mark.parametrize("scenario", ["idle_timeout", "timeout_refresh"])
@pytest.mark.parametrize("agent", ["reference", "vswitch"])
def test_the_paths_are_a_partition(agent: str, scenario: str) -> None:
    verdict = check(explored(agent, scenario), partition=True, solver=Solver("bitwuzla"))
    assert (verdict.sound, verdict.disjoint, verdict.covered) == (True, True, True)


# ------------------------------------------------------------------------------------------------ deviations


def compared(deviation: str, scenario: str) -> Findings:
    return crosscheck([explored("reference", scenario), explored(deviation, scenario)])


@functools.cache
def late_timeout() -> tuple[Findings, Finding]:
    """modified-02: hard timeouts come one second late."""
    findings = compared("modified-02", "hard_timeout")
    (finding,) = findings.findings
    return findings, finding


def test_the_finding_names_the_boundary() -> None:
    _, finding = late_timeout()
    assert finding.region.proved
    assert "w1.ms from 1000·m0.hard_timeout to 1000·m0.hard_timeout + 999" in finding.region.text


def both(seconds: int, wait: int, real_time: bool = False) -> list[Trace]:
    values = {"m0.hard_timeout": seconds, "w1.ms": wait}
    runs = [run(target(a), load("hard_timeout"), values, real_time=real_time) for a in ("reference", "modified-02")]
    assert {each.time for each in runs} == {"real time" if real_time else "moved clock"}
    return [each.trace for each in runs]


@pytest.mark.parametrize("seconds", [1, 10, 68])
def test_live_agents_agree_and_differ_on_the_two_sides_of_both_ends(seconds: int) -> None:
    _, finding = late_timeout()
    for wait in (-1, 0, 999, 1000):
        first, second = both(seconds, 1000 * seconds + wait)
        differs = finding.region.holds({"m0.hard_timeout": seconds, "w1.ms": 1000 * seconds + wait})
        assert differs == (wait in (0, 999))
        assert (first != second) == differs


def test_so_they_do_in_real_time() -> None:
    before, behind = both(1, 600, real_time=True), both(1, 1400, real_time=True)
    assert before[0] == before[1]
    assert behind[0] != behind[1]


def test_replay_confirms_the_late_timeout() -> None:
    findings, _ = late_timeout()
    done = confirm(findings, {agent: target(agent) for agent in ("reference", "modified-02")})
    (finding,) = done.findings
    assert finding.confirmation is not None
    assert finding.confirmation.status == "confirmed"
    *asked, begin, end = finding.confirmation.words
    assert len(asked) == 2
    assert all("its clock moved" in words for words in asked)
    # Both sides of the moments at which the difference begins and ends, on the live agents.
    late = 1000 * finding.example.values["m0.hard_timeout"]
    assert begin == f"With w1.ms = {late} they differ, with {late - 1} they do the same."
    assert end == f"With w1.ms = {late + 999} they differ, with {late + 1000} they do the same."


def test_the_deviation_in_the_hello_is_found_and_confirmed() -> None:
    findings = compared("modified-01", "hello")
    assert findings.findings
    done = confirm(findings, {agent: target(agent) for agent in ("reference", "modified-01")})
    assert {f.confirmation.status for f in done.findings if f.confirmation} == {"confirmed"}
