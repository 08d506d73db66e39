"""findings.json of a stranger: whatever is wrong with it is one sentence."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import FieldSet, Findings, Region, Relation, decode, encode, read_findings
from soft.errors import SoftError
from tests.soft.crosscheck.agents import CRASH, SILENT, bundle

FOUND: Findings = crosscheck([bundle(SILENT, "calm"), bundle(CRASH, "nervous")])
DATA = encode(FOUND)


def changed(*path: str | int, to: Any) -> bytes:
    whole = json.loads(DATA)
    place = whole
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not findings"),
        (b"[" * 100_000, "not findings"),
        (b"\xff\xfe", "not findings"),
        (changed("format", to=99), "format 99"),
        (changed("agents", 1, "label", to="calm"), "agent is there twice"),
        (changed("findings", 0, "cluster", to="0123456789ab"), "no cluster"),
        (changed("findings", 0, "conditions", to="../../etc/passwd"), "not the name of a file"),
        (changed("clusters", 0, "folder", to="/tmp"), "not the name of a file"),
        (changed("clusters", 0, "heading", to="a\nb"), "printable line"),
        (changed("clusters", 0, "heading", to="a\x1b[2J"), "printable line"),
        (changed("clusters", 0, "heading", to="a" * 5000), "printable line"),
        (changed("findings", 0, "example", "steps", 0, "hex", to="0g"), "hexadecimal"),
        (changed("findings", 0, "severity", to="awful"), "not findings"),
        (changed("findings", 0, "extra", to=1), "not findings"),
        (changed("comparisons", 0, "findings", to=["x"]), "no finding"),
        (DATA[:-20], "not findings"),
    ],
)
def test_bad_findings_are_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(SoftError, match=sentence) as caught:
        decode(data, "findings.json")
    assert str(caught.value).startswith("findings.json: ")


@given(st.integers(0, len(DATA) - 1), st.binary(max_size=4))
def test_changed_bytes_never_give_a_traceback(place: int, new: bytes) -> None:
    with contextlib.suppress(SoftError):
        decode(DATA[:place] + new + DATA[place + len(new) :], "findings.json")


def test_missing_findings(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="no findings here"):
        read_findings(tmp_path)


def test_a_region_holds_its_inputs() -> None:
    flags = FieldSet("flags", ((1, 1),), "flags[2:2] = 1", low=2, bits=1)
    port = FieldSet("port", ((1, 4), (9, 9)), "port in {1 to 4, 9}")
    region = Region((flags, port), (Relation("port", "≠", "in_port"),), "", True, False)
    assert region.holds({"flags": 0xFFFC, "port": 9, "in_port": 1})
    assert not region.holds({"flags": 0xFFF8, "port": 9, "in_port": 1})
    assert not region.holds({"flags": 4, "port": 5, "in_port": 1})
    assert not region.holds({"flags": 4, "port": 3, "in_port": 3})
    parts = Relation("body[31:16]", "=", "port")
    assert parts.holds({"body": 0x1234_5678, "port": 0x1234})
    assert not parts.holds({"body": 0x1234_5678, "port": 0x5678})


def test_verdict_is_the_worst() -> None:
    assert FOUND.verdict == "differ"
    assert crosscheck([bundle(SILENT, "a"), bundle(SILENT, "b")]).verdict == "agree"
