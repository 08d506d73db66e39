"""Profiles for the fake agent, and what is left of a run."""

from __future__ import annotations

import sys
from pathlib import Path

from soft.launch.find import Target
from soft.launch.profile import Profile, parse_profile

SCRIPT = Path(__file__).with_name("fake_agent.py")
PYTHON = Path(sys.executable)


def profile_text(
    *,
    connection: str = "connect",
    address: str = "unix",
    ports: str = "unix-datagram",
    greet: str = "",
    extra: str = "",
) -> str:
    where = "{controller}" if connection == "connect" else "{listen}"
    return f"""\
command = ["{{binary}}", "-I", "-S", "{SCRIPT}", "--{connection}", "{where}", "--greet={greet}", "{{ports}}"]
connection = "{connection}"
address = "{address}"
ports = "{ports}"
port_argument = ["--port", "{{number}}={{spec}}"]
binary = "{PYTHON.name}"
{extra}
"""


def profile(**options: str) -> Profile:
    return parse_profile(profile_text(**options).encode(), "fake.toml")


def target(**options: str) -> Target:
    return Target("fake", PYTHON, profile(**options))


def processes_of(directory: Path) -> list[int]:
    """All processes of runs whose private directories are below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"SOFT_RUN={directory}".encode() in environment:
                found.append(int(entry.name))
    return found
