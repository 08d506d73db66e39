"""Everything that leaves the house is listed, and what belongs to the binary is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from soft.bundle.audit import audit, leaks
from soft.bundle.writer import BundleWriter
from soft.errors import SoftError
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Message, Payload, Trace
from tests.soft.bundle.example import BUFFER, scenario, write


def bundle_with(directory: Path, conditions: list[Term], trace: Trace, reason: str = "Stopped.") -> Path:
    writer = BundleWriter(directory, scenario(), "example 1.0")
    writer.add_path(conditions, trace, {}, ["approximate: log text in a message"])
    writer.finish(False, [reason], {"blocks": 5})
    return directory


def test_the_audit_lists_all_there_is(tmp_path: Path) -> None:
    directory = write(tmp_path / "b")
    (directory / "notes.txt").write_text("not for strangers")
    found = audit(directory)
    assert found.strangers == ("notes.txt",)
    assert found.files["paths.jsonl"] == (directory / "paths.jsonl").stat().st_size
    assert found.manifest["agent"] == "example 1.0"
    assert found.fields == {v.name: v.width for v in scenario().variables}
    assert found.marks == {"unstable": 1}
    assert found.crashes == {"SIGSEGV": 1}
    assert found.statistics == {"seconds": 1.5, "blocks": 7}
    assert found.texts == {}
    assert found.addresses == ()


def test_text_and_addresses_in_what_the_agent_sent_are_seen(tmp_path: Path) -> None:
    pointer = t.const(0x7F12_3456_789A, 64)
    condition = t.ult(t.mul(t.zero_extend(32, BUFFER), t.zero_extend(32, BUFFER)), pointer)
    sent = Message(0, Payload.of(b"\1\1\0\x20" + b"/usr/lib/agent.so" + bytes.fromhex("d0b8a7f7ff7f0000")))
    found = audit(bundle_with(tmp_path / "b", [condition], (sent,)))
    assert list(found.texts) == ["/usr/lib/agent.so"] or list(found.texts) == [" /usr/lib/agent.so"]
    assert "0x7f123456789a in a term" in found.addresses
    assert "d0b8a7f7ff7f0000 in the bytes of trace 0" in found.addresses


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    file = tmp_path / "agent"
    file.write_bytes(b"\x7fELF\0main_loop\0handle_packet_out\0buffer_id\0message\0could not open %s\0\xffshort\0")
    return file


def test_an_honest_bundle_has_no_leaks(tmp_path: Path, binary: Path) -> None:
    assert leaks(write(tmp_path / "b"), binary) == []


def test_a_symbol_in_a_reason_is_a_leak(tmp_path: Path, binary: Path) -> None:
    directory = bundle_with(tmp_path / "b", [], (), "Function handle_packet_out has no model.")
    assert [(leak.text, leak.file) for leak in leaks(directory, binary)] == [("handle_packet_out", "manifest.json")]


def test_a_string_in_the_agent_s_bytes_is_a_leak(tmp_path: Path, binary: Path) -> None:
    sent = Message(0, Payload.of(b"\1\1\0\x20\0could not open %s\0"))
    directory = bundle_with(tmp_path / "b", [], (sent,))
    assert [(leak.text, leak.file) for leak in leaks(directory, binary)] == [("could not open %s", "bytes in traces")]


def test_the_binary_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="cannot be read"):
        leaks(write(tmp_path / "b"), tmp_path / "nothing")
