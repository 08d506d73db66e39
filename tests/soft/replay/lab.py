"""The counting agent: build and start it, scenarios that give it orders, and bundles that say what it does."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from soft.bundle.model import Bundle
from soft.launch.find import Target
from soft.launch.profile import Profile
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.trace import Crash, Message, Payload, Trace
from tests.soft.crosscheck.agents import If, Tree, bundle

SOURCE = Path(__file__).with_name("counting_agent.c")
COUNT = ord("n")

# Two fields: an order that the agent obeys in the first step, and a byte that it repeats in the second.
TEXT = """\
name = "orders"
summary = "An order, then an echo"
openflow = "1.0"

[[step]]
send = "echo_request"
xid = 1
data = [{ name = "order", bits = 8, value = { symbolic = true, default = 0x6e } }]

[[step]]
send = "echo_request"
xid = 2
data = [{ name = "tail", bits = 8, value = "symbolic" }, "00"]
"""
ORDER, TAIL = t.var("m0.data.order", 8), t.var("m1.data.tail", 8)


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    # One build for the whole session; its directory goes away with the interpreter.
    return tempfile.TemporaryDirectory()


@functools.cache
def binary() -> Path:
    return compiled(SOURCE.read_text(), "counting")


def compiled(source: str, name: str) -> Path:
    """An agent of its own from a changed source."""
    path = Path(_directory().name) / name
    command = ["gcc", "-O1", "-w", "-pthread", "-x", "c", "-o", str(path), "-"]
    # The compiler's own files go beside the result: tests look at the temporary directory.
    subprocess.run(command, input=source, text=True, check=True, env={**os.environ, "TMPDIR": _directory().name})
    return path


PROFILE = """\
command = ["{binary}", "{controller}"]
address = "unix"
ports = "none"
settle_ms = 0
"""


def target(*arguments: str) -> Target:
    """The agent with one thread, or with two if it gets an argument."""
    profile = Profile(
        command=("{binary}", "{controller}", *arguments), name="counting", address="unix", ports="none",
        settle_ms=1 if arguments else 0, source="counting.toml",
    )  # fmt: skip
    return Target("counting", binary(), profile)


def scenario() -> Scenario:
    return parse(TEXT, "orders.toml")


def values(order: str = "n", tail: int = 7) -> Mapping[str, int]:
    return {"m0.data.order": ord(order), "m1.data.tail": tail}


def reply(step: int, *data: bytes | t.Term) -> Message:
    size = sum(len(piece) if isinstance(piece, bytes) else piece.width // 8 for piece in data)
    head = bytes([1, 3]) + (8 + size).to_bytes(2, "big") + (step + 1).to_bytes(4, "big")
    return Message(step, Payload((head, *data)))


def equals(letter: str) -> t.Term:
    return t.eq(ORDER, t.const(ord(letter), 8))


LAST: Trace = (reply(1, TAIL, b"\0"),)
# What a fresh agent does. Orders other than these are repeated.
TRUTH: Tree = If(
    equals("n"), (reply(0, b"\1"), *LAST),
    If(equals("c"), (Crash(0, "SIGABRT"),), (reply(0, ORDER), *LAST)),
)  # fmt: skip


def orders(tree: Tree = TRUTH) -> Bundle:
    """A bundle that claims what a tree says; orders that end or disturb the agent are outside of its input space."""
    limited = TEXT.replace("default = 0x6e }", "default = 0x6e, in = [0x61, 0x62, 0x63, 0x6d, 0x6e] }")
    return bundle(tree, "counting", parse(limited, "orders.toml"))
