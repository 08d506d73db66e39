"""A bundle is checked on the live agent: what is true agrees, and what is not is found, shrunk and told once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.kernel import files
from harness.machine import operations
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.errors import SoftError
from soft.launch.find import Target
from soft.launch.profile import Profile
from soft.replay.verify import Verification, behaviour, sampled, verify
from soft.scenarios.loader import parse
from soft.solve import terms as t
from soft.trace import Close, Crash, Message, Packet, Payload, Trace
from tests.harness import toy
from tests.harness.kernel import lab as experiments
from tests.soft.crosscheck.agents import SILENT, If, bundle
from tests.soft.launch.lab import processes_of
from tests.soft.replay import lab
from tests.soft.replay.lab import LAST, ORDER, TAIL, TRUTH, equals, reply


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lab.binary()
    experiments.target("symbolic")
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "runs"))
    yield
    assert processes_of(tmp_path) == []
    assert list((tmp_path / "runs").iterdir()) == []


def counts(result: Verification) -> tuple[int, int]:
    return result.count("agreed"), result.count("disagreed")


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_truth_agrees(jobs: int) -> None:
    result = verify(lab.orders(), lab.target(), jobs=jobs)
    assert counts(result) == (3, 0)
    assert result.good
    assert result.disagreements == []
    assert all(check.again for check in result.checks)
    assert result.table() == [("2 × echo_reply", 2, 2), ("crash (SIGABRT)", 1, 1)]


def test_fresh_agents_agree_too() -> None:
    result = verify(lab.orders(), lab.target(), jobs=1, keep_agents=False)
    assert counts(result) == (3, 0)
    assert not any(check.again or check.retried for check in result.checks)


def test_an_agent_whose_state_leaks_is_asked_afresh() -> None:
    twice = If(t.ult(TAIL, t.const(9, 8)), (reply(0, b"\1"), *LAST), (reply(0, b"\1"), *LAST))
    result = verify(lab.orders(If(equals("n"), twice, (reply(0, ORDER), *LAST))), lab.target("threads"), jobs=1)
    assert [check.retried for check in result.checks if check.verdict == "agreed"].count(True) >= 1


def test_a_lie_is_told_once_and_shrunk() -> None:
    # The claim is wrong for one order, whatever the other field; paths split on that field.
    wrong: Trace = (reply(0, b"!"), *LAST)
    split = If(t.ult(TAIL, t.const(100, 8)), wrong, If(t.ult(TAIL, t.const(200, 8)), wrong, wrong))
    result = verify(lab.orders(If(equals("a"), split, TRUTH)), lab.target(), jobs=1)
    assert counts(result) == (3, 3)
    assert not result.good
    (disagreement,) = result.disagreements
    assert len(disagreement.paths) == 3
    assert disagreement.fields == ("m0.data.order",)
    assert disagreement.values["m0.data.order"] == ord("a")
    assert disagreement.difference.event == 0
    assert disagreement.difference.byte == 8
    assert disagreement.expected[0] == reply(0, b"!")
    assert disagreement.seen[0] == reply(0, b"a")


def test_disagreements_of_different_kinds_are_apart() -> None:
    lies = If(equals("a"), SILENT, If(equals("c"), (reply(0, b"c"), *LAST), TRUTH))
    result = verify(lab.orders(lies), lab.target(), jobs=1)
    found = {(type(d.difference.expected), type(d.difference.seen)) for d in result.disagreements}
    assert found == {(type(None), Message), (Message, Crash)}


def test_disagreements_that_shrink_to_one_input_are_one() -> None:
    # They part in different ways, but the same order is to blame.
    wrong, silent = (reply(0, b"!"), *LAST), (reply(0, b"a"),)
    lies = If(equals("a"), If(t.ult(TAIL, t.const(100, 8)), wrong, silent), TRUTH)
    result = verify(lab.orders(lies), lab.target(), jobs=1)
    assert counts(result) == (3, 2)
    (disagreement,) = result.disagreements
    assert len(disagreement.paths) == 2
    assert disagreement.fields == ("m0.data.order",)


def test_samples_are_even_and_hold_both_ends() -> None:
    assert list(sampled(10, None)) == list(range(10))
    assert list(sampled(10, 50)) == list(range(10))
    assert sampled(10, 1) == [0]
    assert sampled(10, 2) == [0, 9]
    assert sampled(101, 5) == [0, 25, 50, 75, 100]
    assert [check.path for check in verify(lab.orders(), lab.target(), sample=2).checks] == [0, 2]


def test_an_agent_that_cannot_start_is_an_error() -> None:
    profile = Profile(command=("{binary}",), name="mute", ports="none", address="unix", source="mute.toml")
    with pytest.raises(SoftError, match="before it came to connect"):
        verify(lab.orders(), Target("mute", Path("/bin/true"), profile), jobs=1)


def test_a_start_that_fails_later_is_an_outcome(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The agent's binary goes away while it is being verified; a crash makes another start necessary.
    binary = tmp_path / "agent"
    binary.write_bytes(lab.binary().read_bytes())
    binary.chmod(0o755)
    target = Target("counting", binary, lab.target().profile)
    made = lab.orders(If(equals("c"), (Crash(0, "SIGABRT"),), If(equals("n"), (reply(0, b"\1"), *LAST), TRUTH)))
    result = verify(made, target, jobs=1, watch=lambda check: binary.unlink(missing_ok=True))
    assert [check.verdict for check in result.checks] == ["agreed", "failed", "failed"]
    assert "was not found" in result.checks[1].failure
    assert not result.good


def test_paths_too_short_for_real_time_are_skipped() -> None:
    text = lab.TEXT + '\n[[step]]\nwait = "symbolic"\nrange_ms = [0, 100]\n'
    wait = t.var("w2.ms", 32)
    answer: Trace = (reply(0, b"\1"), *LAST)
    fixed = text.replace("default = 0x6e }", "default = 0x6e, in = [0x6e] }")
    made = bundle(If(t.eq(wait, t.const(50, 32)), answer, answer), "counting", parse(fixed, "waiting.toml"))
    result = verify(made, lab.target(), real_time=True)
    assert sorted(check.verdict for check in result.checks) == ["agreed", "skipped"]
    assert result.times == ["real time"]
    moved = verify(made, lab.target())
    assert [check.verdict for check in moved.checks] == ["agreed", "agreed"]
    assert moved.times == ["moved clock"]
    assert result.good


def test_behaviours_in_words() -> None:
    packet = Packet(0, 1, Payload.of(b"x"))
    assert behaviour((), "1.0") == "silence"
    assert behaviour((reply(0, b""), packet, packet, Close(1)), "1.0") == "echo_reply, 2 × packet, close"
    assert behaviour((Message(0, Payload((t.var("a", 8),))), Crash(0, "exit 1")), "1.0") == "message, crash (exit 1)"


# ---------------------------------------------------------------------------------------------- a model that is wrong


def explored(directory: Path) -> Bundle:
    toy.explore("branches", directory)
    return read(directory)


def test_the_model_as_it_is_agrees(tmp_path: Path) -> None:
    assert counts(verify(explored(tmp_path / "b"), experiments.target("symbolic"))) == (toy.BRANCHES, 0)


def test_a_wrong_system_call_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = files._write

    def drops_the_last_byte(kernel: Any, description: Any, parts: list[tuple[int, Any]]) -> Any:
        *first, (address, size) = parts
        written: Any = real(kernel, description, [*first, (address, size - 1)])
        return written + 1

    monkeypatch.setattr(files, "_write", drops_the_last_byte)
    result = verify(explored(tmp_path / "b"), experiments.target("symbolic"))
    assert result.count("disagreed") == toy.BRANCHES
    assert len(result.disagreements) == 1


def test_a_wrong_operation_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = operations._scalar

    def less_for_less_or_equal(name: str) -> Any:
        return real("CmpLT64U" if name == "CmpLE64U" else name)

    monkeypatch.setattr(operations, "_scalar", less_for_less_or_equal)
    operations.operation.cache_clear()
    try:
        made = explored(tmp_path / "b")
    finally:
        operations.operation.cache_clear()
    result = verify(made, experiments.target("symbolic"))
    assert 0 < result.count("disagreed") < len(made.paths)
    assert result.disagreements
