"""A small agent in Python, explored by hand: a bundle whose paths, outputs and crashes are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from soft.bundle.writer import BundleWriter
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term
from soft.trace import Crash, Message, Packet, Payload, Trace

SCENARIO = """\
name = "tiny"
summary = "A packet_out with four symbolic fields"
openflow = "1.0"

[[step]]
send = "packet_out"
xid = 1
buffer_id = "symbolic"
in_port = { symbolic = true, range = [1, 100] }
actions = [{ type = "output", port = "symbolic", max_len = "symbolic" }]
data = { packet = "tcp" }

[[step]]
probe = 1
packet = "tcp"
"""


def scenario() -> Scenario:
    return loader.parse(SCENARIO, "example")


BUFFER = t.var("m0.buffer_id", 32)
IN_PORT = t.var("m0.in_port", 16)
PORT = t.var("m0.actions.0.port", 16)
MAX_LEN = t.var("m0.actions.0.max_len", 16)

# What a run of the agent gave: its conditions in order, and its trace.
Run = tuple[tuple[Term, ...], Trace]


def agent_runs() -> Iterator[Run]:
    """The paths of a little switch: it crashes on one port, forwards to four, quotes the rest to the controller."""
    unbuffered = t.eq(BUFFER, t.const(0xFFFFFFFF, 32))
    error = Payload((bytes.fromhex("0101001000000001"), bytes.fromhex("00010008"), BUFFER))
    yield (t.negate(unbuffered),), (Message(0, error),)
    special = t.ult(t.const(0xFF00, 16), PORT)
    crash = t.eq(PORT, t.const(0xFFFD, 16))
    yield (unbuffered, special, crash), (Crash(0, "SIGSEGV"),)
    head = bytes.fromhex("010a0000") + bytes(6)
    quoted = Message(0, Payload((head, IN_PORT, b"\0\0" + bytes(50)), t.add(MAX_LEN, t.const(18, 16))))
    yield (unbuffered, special, t.negate(crash)), (quoted,)
    stem: tuple[Term, ...] = (unbuffered, t.negate(special))
    here = t.eq(PORT, IN_PORT)
    for number in range(1, 5):
        known = t.eq(PORT, t.const(number, 16))
        yield (*stem, known, here), ()
        both = Packet(0, number, Payload.of(b"\2" * 60)), Packet(1, number, Payload((PORT,)))
        yield (*stem, known, t.negate(here)), both
        stem = (*stem, t.negate(known))
    yield stem, (Message(0, Payload.of(bytes.fromhex("0101000c00000001") + b"\2" * 4)),)


def witness(conditions: tuple[Term, ...]) -> dict[str, int]:
    example = scenario()
    solver = Solver()
    assert solver.check([*example.domain, *conditions]) is Answer.SAT
    return solver.model([variable.term for variable in example.variables])


def write(directory: Path, runs: list[Run] | None = None, *, complete: bool = True) -> Path:
    """The example's bundle in a directory."""
    writer = BundleWriter(directory, scenario(), "example 1.0", normalisation=("buffer_id",))
    for conditions, trace in agent_runs() if runs is None else runs:
        writer.add_path(conditions, trace, witness(conditions), ["unstable"] if len(conditions) == 1 else [])
    writer.finish(complete, () if complete else ("The time limit was reached.",), {"seconds": 1.5, "blocks": 7})
    return directory
