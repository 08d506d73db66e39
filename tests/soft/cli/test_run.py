"""`soft run`: what a user types and sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soft.launch.lab import PYTHON, processes_of, profile_text

ROOT = Path(__file__).resolve().parents[3]
SOFT = [sys.executable, "-m", "soft"]

SCENARIO = """\
name = "talk"
summary = "An echo request whose data may be an order"
openflow = "1.0"

[[step]]
send = "echo_request"
xid = 9
data = "{order}"

[[step]]
probe = 1
packet = {{ kind = "tcp", tp_dst = "symbolic" }}
"""


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the fake agent's profiles, and `tmp` for the files of its runs."""
    # Named after the test it could be too long for sockets, and soft would put them elsewhere.
    tmp_path = tmp_path_factory.mktemp("run")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "fake.toml").write_text(profile_text())
    (tmp_path / "veth.toml").write_text(profile_text(ports="veth", address="tcp"))
    for order in ("hi", "crash", "hang", "close", "flood"):
        (tmp_path / f"{order}.toml").write_text(SCENARIO.format(order=order.encode().hex()))
    return tmp_path


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(directory / "tmp"), "PYTHONPATH": str(ROOT)}


def soft_run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*SOFT, "run", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment(directory), capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert processes_of(directory) == []
    assert list((directory / "tmp").iterdir()) == []
    return done


def run_fake(directory: Path, *arguments: str, profile: str = "fake.toml") -> subprocess.CompletedProcess[str]:
    return soft_run(directory, str(PYTHON), "--profile", profile, *arguments)


def test_the_input_its_defaults_and_the_trace_step_by_step(fake: Path) -> None:
    done = run_fake(fake, "--test", "hi.toml", "--set", "p1.tp_dst=443")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{PYTHON.name}, scenario talk",
        "  p1.tp_dst = 443",
        "step 0: send echo_request: 2 bytes, xid 9",
        "  echo_reply: 2 bytes, xid 9",
        "step 1: probe port 1 with TCP 10.0.0.1:1025 → 10.0.0.2:443, 60 bytes",
        "  port 2: TCP 10.0.0.1:1025 → 10.0.0.2:443, 60 bytes",
    ]
    assert "  defaults: p1.tp_dst = 80" in run_fake(fake, "--test", "hi.toml").stdout.splitlines()


def test_json_is_one_object(fake: Path) -> None:
    document = json.loads(run_fake(fake, "--test", "hi.toml", "--json", "--set", "p1.tp_dst=7").stdout)
    assert document["input"] == {"p1.tp_dst": 7}
    assert document["set"] == ["p1.tp_dst"]
    assert "buffer_id" in document["normalisation"]
    first, second = document["steps"]
    assert first["events"][0] == {
        "step": 0,
        "kind": "message",
        "text": "echo_reply: 2 bytes, xid 9",
        "bytes": "0103000a000000096869",
        "decoded": {"OFPEchoReply": {"data": "aGk="}},
    }
    assert (second["events"][0]["kind"], second["events"][0]["port"]) == ("packet", 2)
    assert second["bytes"] == second["events"][0]["bytes"]


@pytest.mark.parametrize(
    ("order", "line"),
    [
        ("crash", "  crash: SIGSEGV"),
        ("close", "  closes the control connection"),
        ("hang", "  hangs: it does not become quiet"),
        ("flood", "  floods: it sends without end"),
    ],
)
def test_whatever_the_agent_does_is_an_outcome(fake: Path, order: str, line: str) -> None:
    done = run_fake(fake, "--test", f"{order}.toml")
    assert done.returncode == 0
    assert line in done.stdout.splitlines()


def test_raw_and_details(fake: Path) -> None:
    done = run_fake(fake, "--test", "hi.toml", "--raw", "--details")
    assert "    data: 2 bytes 6869" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--test", "flow_mood"), "There is no scenario 'flow_mood'; did you mean flow_mod"),
        (("--test", "none.toml"), "There is no file 'none.toml'."),
        (("--test", "hi.toml", "--set", "p1.tp_dts=1"), "did you mean p1.tp_dst"),
        (("--test", "hi.toml", "--set", "p1.tp_dst"), "is not of the form NAME=VALUE"),
        (("--test", "hi.toml", "--set", "p1.tp_dst=70000"), "does not fit in 16 bits"),
    ],
)
def test_what_is_misspelt_gives_one_sentence(fake: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = run_fake(fake, *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("agent", "options", "sentence"),
    [
        ("referense", (), "Did you mean reference?"),
        ("reference", ("--profile", "vswich"), "Did you mean vswitch?"),
        ("reference", ("--profile", "broken.toml"), "uses the unknown placeholder {contoller}"),
        ("./nothing", (), "There is no agent binary ./nothing"),
    ],
)
def test_a_misspelt_agent_profile_or_placeholder(
    fake: Path, agent: str, options: tuple[str, ...], sentence: str
) -> None:
    (fake / "broken.toml").write_text('command = ["{binary}", "{contoller}"]')
    done = soft_run(fake, agent, *options, "--test", "hi.toml")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("profile", ["fake.toml", "veth.toml"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing_behind(fake: Path, number: signal.Signals, profile: str) -> None:
    namespaces = _namespaces()
    command = [*SOFT, "run", str(PYTHON), "--profile", profile, "--test", "hang.toml"]
    process = subprocess.Popen(command, cwd=fake, env=environment(fake), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while not processes_of(fake) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert processes_of(fake)
    time.sleep(0.2)  # into the middle of the exchange
    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert b"Traceback" not in stderr
    assert processes_of(fake) == []
    assert list((fake / "tmp").iterdir()) == []
    assert _namespaces() <= namespaces


def _namespaces() -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # Only namespaces that a process started from this file could hold.
                if b"namespace_holder" in (entry / "cmdline").read_bytes() and _ancestor(int(entry.name), os.getpid()):
                    found.add(os.readlink(entry / "ns" / "net"))
            except OSError:
                continue
    return found


def _ancestor(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_open_vswitch_forwards_a_probe_to_the_port_that_the_rule_says(fake: Path) -> None:
    done = soft_run(
        fake, "ovs-vswitchd", "--test", "flow_mod", "--set", "m0.actions.0.body=0003ffff", "--set",
        "m0.actions.1.port=4", "--json",
    )  # fmt: skip
    events = json.loads(done.stdout)["steps"][1]["events"]
    assert [(event["kind"], event["port"]) for event in events] == [("packet", 3), ("packet", 4)]
    assert events[0]["bytes"] == json.loads(done.stdout)["steps"][1]["bytes"]
