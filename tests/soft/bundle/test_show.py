"""What a person reads about a bundle."""

from __future__ import annotations

import re
from pathlib import Path

from soft.bundle.reader import read
from soft.bundle.show import summary
from tests.soft.bundle.example import agent_runs, write


def test_a_complete_bundle_with_a_crash(tmp_path: Path) -> None:
    lines = list(summary(read(write(tmp_path / "b"))))
    assert lines[:5] == [
        "example 1.0, scenario tiny: complete",
        "12 paths, 1 of them ending in a crash",
        "16 distinct conditions on 80 bits of input; 4.8 a path, at most 7",
        "normalised: buffer_id",
        "marked unstable: 1 path",
    ]
    text = "\n".join(lines)
    assert lines[7].endswith(", 4 paths")  # the most frequent first
    assert lines[8] == "    nothing"
    assert "    step 0: message of 16 bytes: 010100100000000100010008........\n" in text
    crash = text[text.index("Crashes") :]
    assert re.search(r"  SIGSEGV in step 0, path \d+:\n    step 0: m0 01", crash)
    assert "fffd" in crash  # the port that crashes it, in the bytes


def test_a_partial_bundle_says_why(tmp_path: Path) -> None:
    lines = list(summary(read(write(tmp_path / "b", list(agent_runs())[3:], complete=False)), most=2))
    assert lines[:2] == ["example 1.0, scenario tiny: partial", "  The time limit was reached."]
    assert lines[2] == "9 paths, none of them ending in a crash"
    assert lines[-1] == "  ... and 4 more (--all shows them)"
