"""Commands before and after an agent's start, and how readiness is told."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.agent import start
from soft.launch.helpers import last_words
from tests.soft.launch.lab import PYTHON, processes_of, profile


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_commands_run_in_order_with_placeholders() -> None:
    extra = """
before = [["sh", "-c", "echo one > {dir}/log"], ["sh", "-c", "echo two >> log"]]
after_start = [["sh", "-c", "echo {port1} >> {dir}/log"]]
ready = { output = "the fake agent starts" }
"""
    with start(profile(extra=extra), PYTHON, 1) as agent:
        agent.handshake()
        one, two, three = (agent.directory / "log").read_text().splitlines()
        assert (one, two) == ("one", "two")
        assert three.startswith("unix:")


@pytest.mark.parametrize("ready", ['file = "up"', 'socket = "up"', 'output = "serving"'])
def test_a_background_command_is_awaited_and_ended(ready: str) -> None:
    server = (
        "import socket,sys,time; s=socket.socket(socket.AF_UNIX); time.sleep(0.05); s.bind('up'); s.listen();"
        " print('serving', flush=True); time.sleep(600)"
    )
    extra = f'before = [{{ command = ["python3", "-c", "{server}"], background = true, ready = {{ {ready} }} }}]'
    with start(profile(extra=extra), PYTHON, 1) as agent:
        agent.handshake()
        assert len(processes_of(agent.directory)) == 2


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ('before = [["sh", "-c", "echo no luck; exit 4"]]', r"`sh` failed \(exit 4\)\. Its last words: no luck"),
        ('before = [["sleep", "60"]]', "`sleep` did not end within 300 ms"),
        (
            'before = [{ command = ["false"], background = true, ready = { file = "x" } }]',
            r"`false` ended \(exit 1\) before it was ready",
        ),
        (
            'before = [{ command = ["sleep", "60"], background = true, ready = { file = "x" } }]',
            "`sleep` was not ready within 300 ms",
        ),
        ('ready = { output = "never said" }', "The agent was not ready within 300 ms"),
    ],
)
def test_what_fails_is_said(extra: str, sentence: str) -> None:
    with pytest.raises(SoftError, match=sentence), start(profile(extra=f"{extra}\nstart_timeout_ms = 300"), PYTHON, 1):
        pass


def test_last_words_are_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words(log) == ""
    log.write_bytes(b"".join(b"line %d\n\n" % number for number in range(5000)) + b"\xff end")
    assert last_words(log, 2) == " Its last words: line 4999 | � end"
    log.unlink()
