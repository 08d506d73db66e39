"""Open vSwitch's own tool works with each switch, listening on the loopback interface."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.lab import PATIENCE, Lab, binary, free_tcp_port, running

Ofctl = Callable[..., str]


@pytest.fixture
def address() -> str:
    return f"tcp:127.0.0.1:{free_tcp_port()}"


@pytest.fixture
def lab(tmp_path: Path, agent: str, address: str) -> Iterator[Lab]:
    with running(Lab(tmp_path, [binary(agent)], ["--dpid=abc"], control=f"--listen={address}")) as started:
        yield started


@pytest.fixture
def ofctl(lab: Lab, address: str) -> Ofctl:
    tool = shutil.which("ovs-ofctl")
    assert tool, "ovs-ofctl is missing: install Debian's package openvswitch-switch"

    def run(command: str, *arguments: str) -> str:
        line = [tool, "-O", "OpenFlow10", *command.split(), address, *arguments]
        result = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 0, result.stderr
        return result.stdout

    deadline = time.monotonic() + PATIENCE
    while True:  # until it listens
        try:
            run("probe")
        except AssertionError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return run


def flows(ofctl: Ofctl) -> list[str]:
    """Priority, match and actions of each flow, without what differs from run to run."""
    lines = [line.strip() for line in ofctl("dump-flows").splitlines() if "actions=" in line]
    return sorted(re.sub(r".*n_bytes=\d+, (idle_age=\d+, )?", "", line) for line in lines)


def test_show(ofctl: Ofctl) -> None:
    shown = ofctl("show")
    assert "dpid:0000000000000abc" in shown
    assert "n_tables:1, n_buffers:256" in shown
    assert "1(port1): addr:02:00:00:00:00:01" in shown
    assert "LOCAL(local)" in shown
    assert "miss_send_len=128" in shown


def test_flows(lab: Lab, ofctl: Ofctl) -> None:
    ofctl("add-flow", "priority=5,in_port=1,actions=output:2")
    ofctl("add-flow", "priority=7,in_port=1,ip,nw_src=10.0.0.0/8,actions=mod_vlan_vid:9,output:3")
    assert flows(ofctl) == [
        "priority=5,in_port=1 actions=output:2",
        "priority=7,ip,in_port=1,nw_src=10.0.0.0/8 actions=mod_vlan_vid:9,output:3",
    ]
    ofctl("--strict mod-flows", "priority=5,in_port=1,actions=output:4")
    assert flows(ofctl)[0] == "priority=5,in_port=1 actions=output:4"
    frame = bytes(12) + b"\x88\xb5" + bytes(46)
    lab.ports[1].send(frame)
    assert lab.ports[4].next() == frame
    assert "n_packets=1, n_bytes=60" in ofctl("dump-flows", "in_port=1")
    assert "packet_count=1 byte_count=60 flow_count=2" in ofctl("dump-aggregate")
    ofctl("del-flows", "ip")
    assert flows(ofctl) == ["priority=5,in_port=1 actions=output:4"]
    ofctl("del-flows")
    assert flows(ofctl) == []


def test_statistics(ofctl: Ofctl, agent: str) -> None:
    assert f"Software: {agent}" in ofctl("dump-desc")
    assert ofctl("dump-ports").count("rx pkts=0") == 5
    assert "rx pkts=0" in ofctl("dump-ports", "2")
    assert "active=0" in ofctl("dump-tables")
    assert "queue" in ofctl("queue-stats")


def test_ping(ofctl: Ofctl) -> None:
    assert "64 bytes from" in ofctl("ping", "64")


def test_ports(ofctl: Ofctl) -> None:
    ofctl("mod-port", "2", "noflood")
    assert re.search(r"2\(port2\).*\n\s+config:\s+NO_FLOOD", ofctl("show"))
