"""Findings are confirmed by live agents, or not, and words say what was seen."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Behaviour, Confirmation, Findings
from soft.crosscheck.words import event_records
from soft.errors import SoftError
from soft.launch.find import Target
from soft.replay.confirm import confirm, trace_of
from soft.scenarios.model import Scenario
from soft.trace import Close, Crash, Flood, Hang, Message, Packet, Payload, Trace
from tests.soft.crosscheck.agents import SILENT, If, Tree
from tests.soft.launch.lab import processes_of
from tests.soft.replay import lab
from tests.soft.replay.lab import LAST, TRUTH, equals, reply


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lab.binary()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def findings(left: Tree, right: Tree) -> Findings:
    return crosscheck([lab.orders(left), lab.orders(right)], ["left", "right"])


def only(found: Findings) -> Confirmation:
    (finding,) = found.findings
    assert finding.confirmation is not None
    return finding.confirmation


# Of these two, the live agent is the first; the second answers one order otherwise.
OTHER = If(equals("b"), (reply(0, b"?"), *LAST), TRUTH)


def play_both(found: Findings, *, right: Target | None = None) -> Findings:
    return confirm(found, {"left": lab.target(), "right": right or lab.target()}, jobs=1)


def test_an_agent_that_does_not_do_it_does_not_reproduce_it() -> None:
    found = findings(TRUTH, OTHER)
    assert len(found.findings) == 1
    assert found.findings[0].confirmation is None
    confirmation = only(play_both(found))
    assert confirmation.status == "not reproduced"
    assert confirmation.runs == 3
    left, right = confirmation.words
    assert left == "left did as predicted in 3 of 3 tries."
    assert right.startswith("right did as predicted in none of 3 tries: predicted step 0 echo_reply")
    assert "; seen step 0 echo_reply" in right


def test_two_agents_that_do_as_predicted_confirm_it(tmp_path: Path) -> None:
    # A second live agent that differs: as the first, but it repeats another byte for `b`.
    source = lab.SOURCE.read_text().replace("    default:\n", "    case 'b':\n        order = \"?\";\n    default:\n")
    binary = lab.compiled(source, "other")
    confirmation = only(play_both(findings(TRUTH, OTHER), right=Target("other", binary, lab.target().profile)))
    assert confirmation.status == "confirmed"
    assert confirmation.words[1] == "right did as predicted in 3 of 3 tries."


def test_an_agent_that_does_it_now_and_then_is_flaky(tmp_path: Path) -> None:
    # Whoever finds no file makes one, and does as predicted: the first of all agents.
    marker = tmp_path / "marker"
    order = f"    case 'b':\n        if (mkdir(\"{marker}\", 0700) == 0)\n            order = \"?\";\n    default:\n"
    source = "#include <sys/stat.h>\n" + lab.SOURCE.read_text().replace("    default:\n", order)
    once = Target("once", lab.compiled(source, "once"), lab.target().profile)
    confirmation = only(play_both(findings(TRUTH, OTHER), right=once))
    marker.rmdir()
    assert confirmation.status == "flaky"
    assert confirmation.words[1].startswith("right did as predicted in 1 of 3 tries: predicted step 0")


def test_an_agent_that_cannot_be_asked_is_an_outcome_and_the_rest_goes_on() -> None:
    both = If(equals("a"), SILENT, OTHER)
    found = findings(TRUTH, both)
    assert len(found.findings) == 2
    gone = Target("gone", Path("/nonexistent/agent"), lab.target().profile)
    confirmations = [finding.confirmation for finding in play_both(found, right=gone).findings]
    for confirmation in confirmations:
        assert confirmation is not None
        assert confirmation.status == "not reproduced"
        assert confirmation.words[0] == "left did as predicted in 3 of 3 tries."
        assert confirmation.words[1].startswith("right could not be asked: ")


def test_a_finding_about_an_agent_that_is_not_there_stays_as_it_was() -> None:
    found = findings(TRUTH, OTHER)
    assert confirm(found, {"left": lab.target()}, jobs=1) == found


def test_labels_must_be_known() -> None:
    with pytest.raises(SoftError, match=r"know no agent 'rigth'; they are about left and right"):
        confirm(findings(TRUTH, OTHER), {"rigth": lab.target()})


def test_a_confirmation_replaces_an_older_one() -> None:
    found = findings(TRUTH, OTHER)
    old = Confirmation("confirmed", 7)
    found = msgspec.structs.replace(
        found, findings=tuple(msgspec.structs.replace(finding, confirmation=old) for finding in found.findings)
    )
    assert only(play_both(found)).status == "not reproduced"


def test_events_are_read_back_from_findings() -> None:
    scene: Scenario = lab.scenario()
    trace: Trace = (
        Message(0, Payload.of(b"\1\3\0\x08\0\0\0\1")), Packet(0, 3, Payload.of(b"frame")),
        Close(1), Crash(1, "SIGSEGV"), Hang(1), Flood(1),
    )  # fmt: skip
    records = event_records(trace, scene.openflow)
    assert trace_of(Behaviour("x", "does", records, 0, 0)) == trace
