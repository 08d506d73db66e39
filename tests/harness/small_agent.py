"""Build and start small_agent.c: an agent that waits in the way that a test asks for."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

from soft.launch.find import Target
from soft.launch.profile import Profile

SOURCE = Path(__file__).with_name("small_agent.c")
ECHO_REQUEST, ECHO_REPLY = bytes.fromhex("0102000800000001"), bytes.fromhex("0103000800000001")
MARK = b"a mark in memory"


def build(directory: Path, *options: str) -> Path:
    binary = directory / "small_agent"
    subprocess.run(["gcc", "-O2", "-pthread", *options, "-o", str(binary), str(SOURCE)], check=True)
    return binary


def target(binary: Path, way: str, **changes: Any) -> Target:
    settings: dict[str, Any] = {"address": "unix", "ports": "unix-datagram", "settle_ms": 1, "start_timeout_ms": 5000}
    settings |= changes
    profile = Profile(
        command=("{binary}", way, "{controller}", "{ports}"), name="small_agent", source="small_agent.toml", **settings
    )
    return Target("small_agent", binary, profile)


def hashes(memory: bytes) -> tuple[int, int]:
    """What the agent computed at its start, from the memory that holds its mark."""
    first, second = struct.unpack_from("<II", memory, memory.index(MARK) + len(MARK))
    return first, second
