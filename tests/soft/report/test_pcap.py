"""Captures, as Wireshark's dissectors see them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from soft.crosscheck.model import Behaviour, Finding
from soft.report.pcap import capture
from soft.report.scenes import scenes
from tests.soft.report import example


def dissected(tmp_path: Path, place: int, which: int, *fields: str) -> list[list[str]]:
    """The frames of one agent's capture of a finding of the example, as the values of some fields."""
    findings = example.findings()
    finding = findings.findings[place]
    return _dissected(tmp_path, finding, finding.behaviours[which], *fields)


def _dissected(tmp_path: Path, finding: Finding, behaviour: Behaviour, *fields: str) -> list[list[str]]:
    file = tmp_path / "example.pcapng"
    file.write_bytes(capture(finding, behaviour, scenes(example.findings())["tiny"]))
    options = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", str(file), "-T", "fields", *options], capture_output=True, text=True, check=True, timeout=60
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_the_control_channel_is_a_tcp_conversation_with_openflow_in_it(tmp_path: Path) -> None:
    rows = dissected(
        tmp_path, 3, 1, "tcp.flags.str", "tcp.port", "_ws.col.Protocol", "_ws.col.Info", "tcp.analysis.flags"
    )
    assert [row[0].replace("·", "") for row in rows[:3]] == ["S", "AS", "A"]
    talk = [row for row in rows if row[2] == "OpenFlow"]
    assert all("6653" in row[1] for row in talk)
    kinds = [row[3].partition("OFPT_")[2] for row in talk]
    assert kinds == ["HELLO", "HELLO", "FEATURES_REQUEST", "FEATURES_REPLY", "PACKET_OUT", "ERROR"]
    # No lost segment, no retransmission: sequence numbers are right.
    assert {row[4] for row in rows if "6653" in row[1]} == {""}


def test_probes_and_packets_are_on_interfaces_of_their_own(tmp_path: Path) -> None:
    rows = dissected(
        tmp_path, 1, 0, "frame.interface_name", "frame.packet_flags_direction", "udp.port", "frame.comment"
    )
    assert {row[0] for row in rows} == {"control", "port 1", "port 2", "port 3"}
    sent = [row for row in rows if row[0] == "port 1"]
    assert len(sent) == 1
    assert "step p1: probe port 1" in sent[0][3]
    came = [row for row in rows if row[0] in ("port 2", "port 3")]
    assert [row[2] for row in came] == ["53,53", "53,53"]
    assert all(row[3].startswith("left, step ") for row in came)
    assert sent[0][1] != came[0][1]


def test_a_crash_resets_the_connection(tmp_path: Path) -> None:
    rows = dissected(tmp_path, 0, 0, "tcp.flags.reset", "frame.comment")
    assert [row[1] for row in rows if row[0] == "1"] == ["left, step m0: crash: SIGSEGV"]


def test_long_messages_take_several_segments(tmp_path: Path) -> None:
    finding = example.findings().findings[3]
    long = "010a1000" + "00000007" + "ab" * (0x1000 - 8)
    event = finding.behaviours[0].events[0]
    behaviour = Behaviour("left", "", (type(event)("message", 0, None, None, long, ("long",)),), 0, 0)
    rows = _dissected(tmp_path, finding, behaviour, "tcp.len", "_ws.col.Protocol")
    assert max(int(row[0] or 0) for row in rows) <= 1448
    assert sum(int(row[0] or 0) for row in rows) > 0x1000


def test_the_same_finding_gives_the_same_bytes() -> None:
    findings = example.findings()
    scene = scenes(findings)["tiny"]
    finding = findings.findings[1]
    assert capture(finding, finding.behaviours[0], scene) == capture(finding, finding.behaviours[0], scene)
