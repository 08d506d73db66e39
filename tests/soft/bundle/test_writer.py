"""Nothing finished is lost, nothing unfinished is taken for a bundle, and the order of exploration does not show."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft.bundle import files
from soft.bundle.check import same_paths
from soft.bundle.reader import read, recover
from soft.bundle.writer import BundleWriter, NoRoom
from soft.errors import SoftError
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload, Trace
from tests.soft.bundle.example import BUFFER, IN_PORT, MAX_LEN, PORT, agent_runs, scenario, witness, write
from tests.soft.solve.strategies import any_term

TABLES = (files.TERMS, files.TRACES, files.PATHS)


def contents(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in TABLES]


def start(directory: Path, **options: Any) -> BundleWriter:
    return BundleWriter(directory, scenario(), "example 1.0", normalisation=("buffer_id",), **options)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    bundle = read(write(tmp_path / "bundle"))
    runs = list(agent_runs())
    assert {(bundle.terms_of(path), bundle.traces[path.trace]) for path in bundle.paths} == set(runs)
    for path in bundle.paths:
        assert path.witness == witness(bundle.terms_of(path))
    counts = bundle.manifest.counts
    assert (counts.paths, counts.outputs, counts.crashes) == (12, 9, 1)
    assert bundle.manifest.agent == "example 1.0"
    assert bundle.manifest.normalisation == ("buffer_id",)
    assert sorted(path.name for path in (tmp_path / "bundle").iterdir()) == sorted(files.NAMES)


LOW = t.extract(0, 0, MAX_LEN)
TERMS = any_term(PORT, IN_PORT, LOW)


@st.composite
def any_trace(draw: Callable[..., Any]) -> Trace:
    """Events with bytes and terms mixed."""
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 4))):
        words = [term for term in draw(st.lists(TERMS, max_size=3)) if term.width]
        payload = Payload((draw(st.binary(max_size=9)), *words), PORT if draw(st.booleans()) else None)
        step = draw(st.integers(0, 1))
        endings = [Crash(step, "SIGABRT"), Close(step), Hang(step), Flood(step)]
        events.append(draw(st.sampled_from([Message(step, payload), Packet(step, 3, payload), *endings])))
    return tuple(events)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(TERMS, max_size=4), any_trace()), max_size=6))
def test_any_terms_and_traces_come_back(runs: list[tuple[list[Term], Trace]]) -> None:
    expected = {(tuple(term for term in conditions if not term.width), trace) for conditions, trace in runs}
    with tempfile.TemporaryDirectory() as place:
        writer = start(Path(place) / "b")
        for conditions, trace in expected:
            writer.add_path(conditions, trace, {})
        writer.finish(True)
        bundle = read(Path(place) / "b")
    assert {(bundle.terms_of(path), bundle.traces[path.trace]) for path in bundle.paths} == expected
    assert len(bundle.paths) == len(expected)


def test_the_order_of_exploration_does_not_show(tmp_path: Path) -> None:
    runs = list(agent_runs())
    first = contents(write(tmp_path / "0", runs))
    for seed in range(1, 6):
        random.Random(seed).shuffle(runs)
        assert contents(write(tmp_path / str(seed), [*runs, runs[0]])) == first


def test_terms_are_printed_the_same_by_another_process(tmp_path: Path) -> None:
    # Another process has created other terms before, in another order.
    code = (
        "import sys; from pathlib import Path; from soft.solve import terms as t\n"
        "[t.add(t.var(f'v{i}', 16), t.var('w', 16)) for i in range(99)]\n"
        "from tests.soft.bundle.example import agent_runs, write\n"
        "write(Path(sys.argv[1]), list(agent_runs())[::-1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], check=True)
    assert contents(tmp_path / "there") == contents(write(tmp_path / "here"))


def test_an_unfinished_exploration_is_not_a_bundle_but_its_paths_are_there(tmp_path: Path) -> None:
    runs = list(agent_runs())
    writer = start(tmp_path)
    for conditions, trace in runs[:5]:
        writer.add_path(conditions, trace, witness(conditions))
    with pytest.raises(SoftError, match="this exploration has not finished"):
        read(tmp_path)
    bundle = recover(tmp_path)
    assert [bundle.terms_of(path) for path in bundle.paths] == [conditions for conditions, _ in runs[:5]]
    assert bundle.manifest.reasons == ("The exploration has not finished.",)


@pytest.mark.parametrize("table", TABLES)
def test_a_line_that_was_being_written_is_left_out(tmp_path: Path, table: str) -> None:
    writer = start(tmp_path / "killed")
    runs = list(agent_runs())
    for conditions, trace in runs[:7]:
        writer.add_path(conditions, trace, witness(conditions), ["unstable"] if len(conditions) == 1 else [])
    writer.close()
    with (tmp_path / "killed" / files.JOURNAL / table).open("ab") as stream:
        stream.write(b'{"conditions":[0,')
    resumed = start(tmp_path / "killed", resume=True)
    assert resumed.paths == 7
    for conditions, trace in runs:
        is_new = resumed.add_path(conditions, trace, witness(conditions))
        assert is_new == ((conditions, trace) not in runs[:7])
    resumed.finish(True)
    assert contents(tmp_path / "killed") == contents(write(tmp_path / "whole"))


def test_after_kill_9_all_finished_paths_are_there(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.soft.bundle.test_writer import *\n"
        "writer = start(Path(sys.argv[1]))\n"
        "for conditions, trace in list(agent_runs())[:4]: writer.add_path(conditions, trace, witness(conditions))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "killed")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(recover(tmp_path / "killed").paths) == 4
    resumed = start(tmp_path / "killed", resume=True)
    for conditions, trace in agent_runs():
        resumed.add_path(conditions, trace, witness(conditions))
    resumed.finish(True)
    assert same_paths(read(tmp_path / "killed"), read(write(tmp_path / "whole")))


def test_a_partial_bundle_can_be_continued_and_a_complete_one_not(tmp_path: Path) -> None:
    runs = list(agent_runs())
    write(tmp_path / "partial", runs[:6], complete=False)
    resumed = start(tmp_path / "partial", resume=True)
    assert resumed.recovered is not None
    assert len(resumed.recovered.paths) == 6
    for conditions, trace in runs[6:]:
        resumed.add_path(conditions, trace, witness(conditions))
    resumed.finish(True)
    assert contents(tmp_path / "partial") == contents(write(tmp_path / "whole"))
    with pytest.raises(SoftError, match="complete; there is nothing to resume"):
        start(tmp_path / "partial", resume=True)


def test_a_full_disk_keeps_the_finished_paths(tmp_path: Path, monkeypatch: Any) -> None:
    writer = start(tmp_path)
    runs = list(agent_runs())
    for conditions, trace in runs[:4]:
        writer.add_path(conditions, trace, witness(conditions))
    real_write = os.write

    def half(descriptor: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(NoRoom, match="a path cannot be written"):
        writer.add_path(*runs[5], witness(runs[5][0]))
    with pytest.raises(NoRoom):
        writer.add_path(*runs[6], witness(runs[6][0]))
    monkeypatch.undo()

    # Nor is there room for a second copy of the tables.
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("soft.bundle.writer.write_canonical", refuse)
    manifest = writer.finish(False, ["Stopped."])
    assert manifest.reasons == ("Stopped.", "The disk was full.")
    bundle = read(tmp_path)
    assert [bundle.terms_of(path) for path in bundle.paths] == [conditions for conditions, _ in runs[:4]]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files.NAMES)


def test_a_real_full_disk(tmp_path: Path) -> None:
    """A file-size limit stands for a small disk, in a process of its own."""
    code = (
        "import errno, resource, sys; from tests.soft.bundle.test_writer import *\n"
        "writer = start(Path(sys.argv[1]))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from soft.bundle import writer as module; module._FULL.add(errno.EFBIG)\n"
        "try:\n"
        "    for number in range(1000):\n"
        "        condition = t.eq(BUFFER, t.const(number, 32))\n"
        "        writer.add_path([condition], (), {'m0.buffer_id': number})\n"
        "except NoRoom: writer.finish(False, ['Stopped.'])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "small")], check=True)
    bundle = read(tmp_path / "small")
    assert 10 < len(bundle.paths) < 1000
    assert sorted(path.witness["m0.buffer_id"] for path in bundle.paths) == list(range(len(bundle.paths)))
    assert bundle.manifest.reasons == ("Stopped.", "The disk was full.")


def test_a_bundle_never_grows_beyond_what_readers_take(tmp_path: Path, monkeypatch: Any) -> None:
    writer = start(tmp_path)
    for number in range(10):
        writer.add_path([t.eq(BUFFER, t.const(number, 32))], (), {"m0.buffer_id": number})
    monkeypatch.setattr("soft.bundle.writer.MOST_NODES", 30)
    with pytest.raises(NoRoom, match="The bundle was full: its readers take no more"):
        writer.add_path([t.eq(BUFFER, t.const(11, 32))], (), {"m0.buffer_id": 11})
    writer.finish(False, ["Stopped."])
    assert len(read(tmp_path).paths) == 10


def test_two_explorations_do_not_write_to_one_place(tmp_path: Path) -> None:
    writer = start(tmp_path)
    with pytest.raises(SoftError, match="another exploration is writing here"):
        start(tmp_path, resume=True)
    with pytest.raises(SoftError, match="another exploration is writing here"):
        start(tmp_path, replace=True)
    writer.close()
    assert start(tmp_path, resume=True).paths == 0


def test_an_older_bundle_is_replaced_only_on_request(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(SoftError, match="there is a bundle already"):
        start(tmp_path)
    writer = start(tmp_path, replace=True)
    writer.finish(False, ["Nothing was explored."])
    assert len(read(tmp_path).paths) == 0


def test_resuming_another_exploration_is_refused(tmp_path: Path) -> None:
    start(tmp_path).close()
    with pytest.raises(SoftError, match="of another scenario or agent"):
        BundleWriter(tmp_path, scenario(), "somebody else", resume=True)
    with pytest.raises(SoftError, match="there is no exploration to continue"):
        start(tmp_path / "nowhere", resume=True)


def test_a_term_too_deep_for_readers_is_refused_when_written(tmp_path: Path) -> None:
    writer = start(tmp_path)
    term = BUFFER
    for number in range(25_000):
        term = t.mul(t.add(term, t.const(number, 32)), BUFFER)
    with pytest.raises(SoftError, match="nests too deep"):
        writer.add_path([t.eq(term, BUFFER)], (), {})


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SoftError, match="the bundle cannot be written"):
        start(tmp_path / "file" / "bundle")
