"""How long it takes to write, read and prove a bundle of many paths, and in how much memory.

    python -m tests.benchmarks.bench_bundle 100000

prints one JSON object: seconds and peak memory of each stage, every stage in a process of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from soft.bundle.check import check
from soft.bundle.reader import read
from soft.bundle.writer import BundleWriter
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Event, Message, Packet, Payload, Trace

ACTIONS = 16
SCENARIO = f"""\
name = "synthetic"
summary = "A packet_out with {ACTIONS} output actions"
openflow = "1.0"

[[step]]
send = "packet_out"
buffer_id = "symbolic"
in_port = "symbolic"
actions = [
{chr(10).join(['  { type = "output", port = "symbolic", max_len = "symbolic" },'] * ACTIONS)}
]
data = {{ packet = "tcp" }}
"""


def scenario() -> Scenario:
    return loader.parse(SCENARIO, "synthetic")


def runs(count: int) -> Iterator[tuple[list[Term], Trace, dict[str, int]]]:
    """Paths of an imagined agent with realistic conditions: four tests of each action, some of two fields.

    A path's number, in base 5, says how each action goes; the tests of an action that nobody reaches are not made.
    """
    ports = [t.var(f"m0.actions.{number}.port", 16) for number in range(ACTIONS)]
    limits = [t.var(f"m0.actions.{number}.max_len", 16) for number in range(ACTIONS)]
    in_port, buffer = t.var("m0.in_port", 16), t.var("m0.buffer_id", 32)
    for number in range(count):
        conditions: list[Term] = []
        events: list[Event] = []
        witness = {"m0.in_port": 9}
        rest, action = number, 0
        while action < ACTIONS and (rest or action < 8):
            rest, choice = divmod(rest, 5)
            port, limit = ports[action], limits[action]
            special = t.ult(t.const(0xFF00, 16), port)
            conditions.append(special if choice > 2 else t.negate(special))
            if choice > 2:
                long = t.ult(t.const(64, 16), t.add(limit, t.const(action, 16)))
                conditions.append(long if choice == 3 else t.negate(long))
                witness |= {port.args[0]: 0xFFFD, limit.args[0]: 100 if choice == 3 else 0}
                quoted = t.ite(long, t.const(64, 16), limit)
                events.append(Message(0, Payload((b"\1\12\0\x52" + bytes(8), in_port, bytes(50)), quoted)))
            else:
                known, back = t.ult(port, t.const(5, 16)), t.eq(port, in_port)
                conditions.append(known if choice else t.negate(known))
                if choice:
                    witness[port.args[0]] = choice
                    conditions.append(t.negate(back))
                    events.append(Packet(0, 1 + action % 4, Payload((port, b"\2" * 58))))
                    two = t.eq(port, t.const(2, 16))
                    conditions.append(two if choice == 2 else t.negate(two))
                else:
                    witness[port.args[0]] = 77
            action += 1
        # Every path has one condition and one output of its own: the worst that the tables can meet.
        conditions.append(t.ne(t.add(buffer, t.concat(in_port, ports[0])), t.const(number, 32)))
        events.append(Message(0, Payload((b"\1\1\0\x10" + number.to_bytes(8, "big"), buffer))))
        yield conditions, tuple(events), witness | {"m0.buffer_id": 7}


def write(directory: Path, count: int) -> None:
    writer = BundleWriter(directory, scenario(), "synthetic")
    for conditions, trace, witness in runs(count):
        writer.add_path(conditions, trace, witness)
    writer.close()


def finish(directory: Path, count: int) -> None:
    BundleWriter(directory, scenario(), "synthetic", resume=True).finish(False, ["Synthetic."])


def load(directory: Path, count: int) -> None:
    assert len(read(directory).paths) == count


def prove(directory: Path, count: int) -> None:
    assert check(read(directory), partition=True).sound


def measure(stage: Callable[[Path, int], None], directory: Path, count: int) -> dict[str, float]:
    """Run one stage in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(stage, directory, count, send))
    process.start()
    send.close()
    result: dict[str, float] = receive.recv()
    process.join()
    return result


def _measured(stage: Callable[[Path, int], None], directory: Path, count: int, send: object) -> None:
    start = time.perf_counter()
    stage(directory, count)
    seconds = round(time.perf_counter() - start, 2)
    # On a busy machine this tells more.
    processor = round(time.process_time(), 2)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    send.send(  # type: ignore[attr-defined]
        {"seconds": seconds, "processor_seconds": processor, "megabytes": megabytes}
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "bundle"
        result: dict[str, object] = {"paths": count}
        for stage in (write, finish, load, prove):
            result[stage.__name__] = measure(stage, directory, count)
        result["bytes"] = {file.name: file.stat().st_size for file in sorted(directory.iterdir())}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
