"""soft/launch/clock.py: an agent whose clock is moved does what it does in real time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from soft.launch import clock
from soft.launch.agent import start
from soft.launch.find import find
from soft.replay.runner import Run, run
from soft.scenarios.loader import load, parse
from soft.trace import Message, Packet
from tests.agents.conftest import make
from tests.agents.lab import BUILD
from tests.harness.kernel import lab

FAMILIES = ("polling", "signals", "times", "ticks")
WAITING = [each for family in FAMILIES for each in lab.experiments(family) if each.kind == "WAITING"]


@pytest.fixture(scope="module", autouse=True)
def agents() -> None:
    make("all")


@pytest.mark.parametrize("experiment", WAITING, ids=[f"{each.family}-{each.name}" for each in WAITING])
def test_a_moved_clock_is_like_real_time(experiment: lab.Experiment) -> None:
    moved = run(lab.target(experiment.family), experiment.scenario, experiment.values)
    assert moved.time == "moved clock"
    assert lab.text(moved.trace) == lab.text(lab.natively(experiment))


def hard_timeout(seconds: int, wait: int, agent: str = "reference") -> Run:
    values = {"m0.hard_timeout": seconds, "w1.ms": wait}
    return run(find(str(BUILD / agent), None), load("hard_timeout"), values)


def expired(done: Run) -> bool:
    """The rule is gone when the packet comes: the controller gets it, and was told before."""
    kinds = [type(event) for event in done.trace]
    assert kinds in ([Message, Message], [Packet])
    return kinds == [Message, Message]


@pytest.mark.parametrize("agent", ["reference", "vswitch"])
def test_waits_are_exact_to_the_millisecond(agent: str) -> None:
    for seconds in (1, 37, 69):
        assert not expired(hard_timeout(seconds, 1000 * seconds - 1, agent))
        assert expired(hard_timeout(seconds, 1000 * seconds, agent))


def test_a_long_wait_takes_no_time() -> None:
    begin = time.monotonic()
    assert expired(hard_timeout(60, 70_000))
    assert time.monotonic() - begin < 60


def test_every_timer_has_its_turn() -> None:
    # The tick of 10 ms, and what is due in between: not all at the end of the wait.
    text = lab.SCENARIOS["WAITING"].replace("wait = 400", "wait = 12000")
    scenario = parse(f'name = "ticking"\nsummary = "x"\nports = 1\n{text}', "ticking.toml")
    (name,) = scenario.variable_names
    numbers = {each.name: each.number for each in lab.experiments("ticks")}
    for experiment, times in (("every_hundredth", 12), ("every_five_seconds", 2), ("timerfd", 0)):
        done = run(lab.target("ticks"), scenario, {name: numbers[experiment]})
        assert sum(isinstance(event, Message) and event.step == 1 for event in done.trace) == times


def test_a_wait_that_has_begun_begins_again_when_the_clock_is_stopped(tmp_path: Path) -> None:
    # As in the model, however long the start and the handshake took.
    program = tmp_path / "waiter"
    source = "#include <poll.h>\nint main(void) { return poll(0, 0, 60000); }"
    subprocess.run(["gcc", "-x", "c", "-", "-o", str(program)], input=source.encode(), check=True)
    preload = clock.library()
    assert preload is not None
    agent_clock = clock.AgentClock(tmp_path, preload)
    with subprocess.Popen([program], env={**os.environ, **agent_clock.environment}) as process:
        while not (begun := agent_clock.next_deadline()):
            time.sleep(0.01)
        time.sleep(0.02)
        assert agent_clock.stop(process.pid)
        until = agent_clock.next_deadline()
        assert until == agent_clock.now + 60_000_000_000 > begun
        agent_clock.move(until - 1)
        assert process.poll() is None
        agent_clock.move(until)
        assert process.wait(10) == 0
    agent_clock.close()


@pytest.fixture
def no_library() -> Iterator[None]:
    """The library is not known yet, and what a test finds out is forgotten."""
    clock.library.cache_clear()
    yield
    clock.library.cache_clear()


def test_without_a_compiler_time_is_real(no_library: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clock.library() is None
    done = hard_timeout(1, 10)
    assert done.time == "real time"
    assert not expired(done)


def test_the_library_is_built_once(no_library: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = clock.library()
    assert first is not None
    assert [path.name for path in (tmp_path / "soft").iterdir()] == [first.name]
    clock.library.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert clock.library() == first


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    no_library: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "soft").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = clock.library()
    assert found is not None
    assert found.exists()


def test_an_agent_that_takes_no_library_keeps_its_time(tmp_path: Path) -> None:
    source, binary = lab.SOURCES / "times.c", tmp_path / "static"
    subprocess.run(["gcc", "-static", "-O2", "-w", "-o", str(binary), str(source)], check=True)
    target = lab.target("times")
    with start(target.profile, binary, 1, movable_clock=True) as agent:
        agent.handshake()
        assert not agent.stop_clock()
        assert agent.time == "real time"
        assert agent.collect(1.0, at_least=0.05).quiet


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    hard_timeout(1, 2000)
    assert len(set(os.listdir("/proc/self/fd"))) == len(before)
