"""`soft tests` as a user sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soft.cli import soft
from soft.errors import SoftError
from soft.scenarios import loader

OWN = """\
name = "mine"
[[step]]
send = "echo_request"
data = { symbolic = true, bytes = 20 }

[[step]]
wait = 250

[[step]]
wait = "symbolic"
range_ms = [0, 5000]

[[step]]
probe = 2
packet = "arp"
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(soft, ["tests", *map(str, arguments)], catch_exceptions=False)


def test_the_list() -> None:
    lines = run().stdout.splitlines()
    assert lines[0].split() == ["name", "steps", "variables", "summary"]
    assert [line.split()[0] for line in lines[1:]] == loader.names()
    (queue,) = [line for line in lines if line.startswith("queue_config")]
    assert queue.split()[1:3] == ["1", "1"]
    assert queue.endswith("  queue_get_config_request for any port")


def test_the_list_as_json() -> None:
    shown = json.loads(run("--json").stdout)
    assert [entry["name"] for entry in shown["tests"]] == loader.names()
    assert {"name", "summary", "steps", "variables"} == set(shown["tests"][0])


def test_one_scenario() -> None:
    lines = run("show", "FlowMod").stdout.splitlines()
    assert lines[0].startswith("flow_mod: flow_mod with every field symbolic")
    assert lines[1] == "OpenFlow 1.0, 4 ports, begins after the handshake"
    assert "  m0  send flow_mod, 88 bytes" in lines
    assert "  p1  probe port 1 with a packet of 60 bytes" in lines
    assert "Variables, 558 bits in all:" in lines
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  m0.")}
    assert rows["m0.match.wildcards.nw_src"] == ["6", "63", "any"]
    assert rows["m0.command"] == ["16", "add", "any"]
    assert rows["m0.match.dl_src"] == ["48", "00:00:00:00:00:00", "any"]


def test_a_users_own_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    lines = run("show", file).stdout.splitlines()
    assert lines[0] == "mine"
    assert lines[4:9] == [
        "Steps:",
        "  m0  send echo_request, 28 bytes",
        "  w1  wait 250 ms",
        "  w2  wait 0 to 5000 ms",
        "  p3  probe port 2 with a packet of 60 bytes",
    ]
    assert lines[-2:] == [
        "  m0.data   160  00000000000000000000...  any",
        "  w2.ms      32  1000                     0 to 5000",
    ]


def test_one_scenario_as_json(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    shown = json.loads(run("show", file, "--json").stdout)
    assert (shown["name"], shown["openflow"], shown["ports"], shown["handshake"]) == ("mine", "1.0", 4, True)
    assert shown["digest"] == loader.load(str(file)).digest
    send, wait, symbolic, probe = shown["steps"]
    assert send == {"id": "m0", "kind": "send", "message": "echo_request", "default": "0102001c00000001" + "00" * 20}
    assert wait == {"id": "w1", "kind": "wait", "variable": None, "default": 250}
    assert symbolic == {"id": "w2", "kind": "wait", "variable": "w2.ms", "default": 1000}
    assert (probe["id"], probe["port"]) == ("p3", 2)
    assert shown["variables"][1] == {
        "name": "w2.ms",
        "width": 32,
        "default": 1000,
        "range": [0, 5000],
        "in": None,
        "except": None,
        "domain": "0 to 5000",
    }


def test_sizes_and_choices() -> None:
    lines = run("show", "hello").stdout.splitlines()
    assert lines[1].endswith("begins before the handshake")
    assert "  m0  send hello, up to 16 bytes" in lines
    assert any(line.split(maxsplit=3)[-1] == "one of 8, 12, 16" for line in lines if "m0.size" in line)
    assert "No variables: every run sends the same." in run("show", "concrete").stdout


def test_an_error_in_a_file_names_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN.replace("probe = 2", "probe = 9"))
    with pytest.raises(SoftError) as error:
        run("show", file)
    assert str(error.value) == f"{file}, line 14: p3.probe: probe is the number of a port, 1 to 4."


def test_a_misspelt_name_is_one_sentence_and_status_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "soft", "tests", "show", "flow_mdo"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("soft: There is no scenario 'flow_mdo'; did you mean flow_mod")
    assert done.stderr.count("\n") == 1


def test_a_misplaced_option_is_no_traceback() -> None:
    assert run("--json", "show", "flow_mod").exit_code == 2
