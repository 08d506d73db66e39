"""tests/harness/agents/threads.c: the threads beside the one that speaks have their turns."""

from __future__ import annotations

from dataclasses import replace

from harness.path import Job
from harness.run import Runner
from soft.trace import Message, evaluate_trace
from tests.harness.kernel import lab


@lab.each("threads")
def test_as_natively(experiment: lab.Experiment) -> None:
    lab.compare(experiment)


def steps(name: str) -> list[int]:
    """The steps in which the agent answers."""
    (experiment,) = (each for each in lab.experiments("threads") if each.name == name)
    outcome = lab.under_the_model(experiment)
    assert outcome.unsupported is None
    trace = evaluate_trace(outcome.trace, experiment.values)
    return [event.step for event in trace if isinstance(event, Message)]


def test_it_runs_while_the_scenario_waits() -> None:
    assert steps("woken_in_a_wait") == [1, 2]


def test_it_runs_until_what_was_sent_is_read() -> None:
    # The second step finds the agent asleep; then it answers to both.
    assert steps("woken_while_something_is_unread")[:2] == [1, 1]
    assert steps("woken_behind_the_wait") == [2, 2]


def test_every_thread_is_known_by_the_call_in_which_it_waits() -> None:
    waiting = lab.snapshot("threads").threads
    assert len(waiting) == 6
    assert all(thread.in_syscall in (0, 45, 7, 202) for thread in waiting)


def answers(name: str) -> list[str]:
    (experiment,) = (each for each in lab.experiments("threads") if each.name == name)
    outcome = lab.under_the_model(experiment)
    return [line for line in lab.text(evaluate_trace(outcome.trace, experiment.values)) if "=" in line]


def test_another_thread_answers() -> None:
    assert [line.rpartition("=")[2] for line in answers("done_by_another")] == ["42", "8"]
    assert [line.rpartition("=")[2] for line in answers("done_by_nobody")] == ["-110"]


def test_a_thread_that_is_frozen_leaves_no_path_without_a_word() -> None:
    snapshot = lab.snapshot("threads")
    busy = replace(snapshot, threads=tuple(
        replace(thread, in_syscall=None) if thread.in_syscall == 202 else thread for thread in snapshot.threads
    ))  # fmt: skip
    (experiment,) = (each for each in lab.experiments("threads") if each.name == "done_by_nobody")
    assert Runner(busy, experiment.scenario).run(Job(experiment.values)).unsupported is None
    (experiment,) = (each for each in lab.experiments("threads") if each.name == "woken_behind_the_wait")
    asleep = replace(snapshot, threads=tuple(
        replace(thread, in_syscall=None) if thread.tid != snapshot.main else thread for thread in snapshot.threads
    ))  # fmt: skip
    assert Runner(asleep, experiment.scenario).run(Job(experiment.values)).unsupported == (
        "an agent that does not look at what its controller sends"
    )
