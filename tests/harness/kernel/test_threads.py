"""tests/harness/agents/threads.c: a thread beside the one that speaks has its turn where time passes."""

from __future__ import annotations

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
    assert len(waiting) == 2
    assert all(thread.in_syscall in (0, 45, 7) for thread in waiting)
