"""`soft replay` as a user sees it: on agents that it starts, and on a switch on a cable."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from soft.cli import soft
from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.folder import write_findings
from soft.crosscheck.model import read_findings
from soft.errors import SoftError
from soft.launch.find import find
from soft.replay.runner import run as run_live
from soft.scenarios.loader import parse
from soft.solve import terms as t
from soft.trace import Trace
from tests.agents.conftest import make
from tests.agents.lab import BUILD
from tests.soft.crosscheck.agents import SILENT, If, bundle
from tests.soft.replay import cable, lab
from tests.soft.replay.lab import LAST, TRUTH, equals, reply

OTHER = If(equals("b"), (reply(0, b"?"), *LAST), TRUTH)


def replay(*arguments: object) -> Result:
    command = ["replay", *map(str, arguments)]
    return CliRunner().invoke(soft, command, catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of findings about two counting agents, one of which is no live agent yet."""
    found = crosscheck([lab.orders(TRUTH), lab.orders(OTHER)], ["left", "right"])
    write_findings(tmp_path / "findings", found, {"clusters/note.txt": b"beside"})
    (tmp_path / "counting.toml").write_text(lab.PROFILE)
    return tmp_path


def agents(place: Path, right: Path) -> list[str]:
    profile = place / "counting.toml"
    return [
        "--agent", f"left={lab.binary()}", "--profile", f"left={profile}",
        "--agent", f"right={right}", "--profile", f"right={profile}",
    ]  # fmt: skip


def other_agent() -> Path:
    source = lab.SOURCE.read_text().replace("    default:\n", "    case 'b':\n        order = \"?\";\n    default:\n")
    return lab.compiled(source, "other")


def test_confirmed(place: Path) -> None:
    folder = place / "findings"
    result = replay(folder, *agents(place, other_agent()))
    assert result.return_value == 0
    assert result.stdout == "1 findings: 1 confirmed, 0 not reproduced, 0 flaky.\n"
    (finding,) = read_findings(folder).findings
    assert finding.confirmation is not None
    assert finding.confirmation.status == "confirmed"
    assert (folder / "clusters/note.txt").read_bytes() == b"beside"
    assert "confirmed" in (folder / "report.html").read_text()
    assert ElementTree.parse(folder / "junit.xml").getroot() is not None


def test_not_reproduced(place: Path) -> None:
    result = replay(place / "findings", *agents(place, lab.binary()), "--tries", 2)
    assert result.return_value == 1
    first, _, head, left, right, values = result.stdout.splitlines()
    assert first == "1 findings: 0 confirmed, 1 not reproduced, 0 flaky."
    assert head.startswith("Finding ")
    assert head.endswith(", orders, not reproduced:")
    assert left == "  left did as predicted in 2 of 2 tries."
    assert right.startswith("  right did as predicted in none of 2 tries: ")
    assert values.startswith("  input: m0.data.order=")


def test_one_object(place: Path) -> None:
    document = json.loads(replay(place / "findings", *agents(place, lab.binary()), "--json").stdout)
    assert (document["confirmed"], document["not_reproduced"], document["flaky"]) == (0, 1, 0)
    (finding,) = document["findings"]
    assert finding["status"] == "not reproduced"
    assert finding["agents"] == ["left", "right"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Say what to replay on"),
        (["--agent", "left"], "--agent takes LABEL=BINARY"),
        (["--agent", "left=a", "--agent", "left=b"], "--agent names left twice"),
        (["--agent", "middle=a"], "know no agent 'middle'"),
        (["--profile", "left=x", "--agent", "right=/bin/true"], "--profile names left, for which there is no --agent"),
        (["--connect", "tcp:x:1", "--listen", "tcp:1"], "not both"),
        (["--connect", "6653"], "is not of the form tcp:HOST:PORT"),
        (["--as", "left", "--agent", "right=x"], "say where with --connect or --listen"),
        (["--connect", "tcp:127.0.0.1:1", "--as", "middle"], "know no agent 'middle'"),
        (["--connect", "tcp:127.0.0.1:1", "--agent", "left=x"], "Say with --as which agent"),
        (["--connect", "tcp:127.0.0.1:1", "--port", "1=nosuch0"], "There is no interface nosuch0"),
    ],
)
def test_bad_input(place: Path, arguments: list[str], sentence: str) -> None:
    with pytest.raises(SoftError, match=sentence):
        replay(place / "findings", *arguments)


def test_no_findings(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="there are no findings here"):
        replay(tmp_path, "--agent", "left=x")


# ---------------------------------------------------------------------------------------------- a switch on a cable

TEXT = """\
name = "cable"
summary = "A packet out of a port"
[[step]]
send = "packet_out"
buffer_id = "none"
in_port = "none"
actions = [{ type = "output", port = { in = [1, 2] } }]
data = { packet = "tcp" }
"""


@pytest.fixture
def cabled(tmp_path: Path) -> Path:
    """Findings of the reference switch, and of one that loses the packets to port 2."""
    make("all")
    scene = parse(TEXT, "cable.toml")
    port = t.var("m0.actions.0.port", 16)

    def live(number: int) -> Trace:
        return run_live(find(str(BUILD / "reference")), scene, {"m0.actions.0.port": number}).trace

    second = t.eq(port, t.const(2, 16))
    good = bundle(If(second, live(2), live(1)), "reference", scene)
    bad = bundle(If(second, SILENT, live(1)), "lossy", scene)
    write_findings(tmp_path / "findings", crosscheck([good, bad], ["reference", "lossy"]), {})
    return tmp_path / "findings"


def test_a_switch_on_a_cable(cabled: Path) -> None:
    ports = [word for number in cable.PORTS for word in ("--port", f"{number}={cable.interface(number)}")]
    where = ["--connect", f"tcp:{cable.THEIRS}:{cable.TCP_PORT}", *ports]
    with cable.cables(), cable.listening(BUILD / "reference"):
        plain = replay(cabled, *where)
        assert plain.return_value == 0
        assert plain.stdout.endswith("1 findings: 1 like reference, 0 like none, 0 could not be played.\n")
        assert read_findings(cabled).findings[0].confirmation is None

        as_reference = replay(cabled, *where, "--as", "reference", "--tries", 1)
        assert as_reference.return_value == 0
        (finding,) = read_findings(cabled).findings
        assert finding.confirmation is not None
        assert finding.confirmation.words == ("reference did as predicted in 1 of 1 tries.", "lossy was not asked.")

        as_lossy = replay(cabled, *where, "--as", "lossy", "--tries", 1)
        assert as_lossy.return_value == 1
        assert "1 not reproduced" in as_lossy.stdout


def test_a_switch_that_is_not_there_is_an_outcome(cabled: Path) -> None:
    where = ["--connect", "tcp:127.0.0.1:9", "--patience", 0.2]
    result = replay(cabled, *where)
    assert result.return_value == 1
    assert "No switch answers at tcp:127.0.0.1:9: connection refused." in result.stdout
    assert "1 could not be played" in result.stdout
    result = replay(cabled, *where, "--as", "reference")
    assert result.return_value == 1
    assert "reference could not be asked: No switch answers" in result.stdout
