"""The placeholders of a launch profile: which exist where, and how a text or a command line is filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from soft.errors import SoftError

# {{name}} stands for a literal {name}; other braces, as in a configuration file's own syntax, stay as they are.
_PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}|\{([a-z][a-z0-9_]*)\}")

# Every placeholder a profile may use, with what it becomes; `soft agents --placeholders` prints this.
MEANING = {
    "binary": "the agent's binary",
    "dir": "a private directory, removed afterwards",
    "here": "the directory of the profile",
    "controller": "where the agent shall connect to: tcp:127.0.0.1:PORT or unix:PATH",
    "listen": "where the agent shall listen: tcp:127.0.0.1:PORT or unix:PATH",
    "host": "the address of the control channel, 127.0.0.1",
    "tcp_port": "the TCP port of the control channel",
    "control_path": "the path of the control channel's UNIX socket",
    "ports": "`port_argument`, repeated for every port (an argument of its own)",
    "port1": "what port 1 is called on a command line: its `spec`; likewise port2, port3, ...",
    "number": "in `port_argument`: the port's OpenFlow number",
    "name": "in `port_argument`: the port's name, port1, port2, ...",
    "hwaddr": "in `port_argument`: the port's hardware address",
    "spec": "in `port_argument`: unix:OWN_PATH,PEER_PATH, an interface's name, or unix:PEER_PATH for Open vSwitch",
    "interface": "in `port_argument`: the interface's name (veth, tap and tap-device)",
    "own_path": "in `port_argument`: the UNIX socket that the agent binds (unix-datagram)",
    "peer_path": "in `port_argument`: the UNIX socket at our end (unix-datagram and ovs-dummy)",
}

_ANY_PORT = frozenset({"number", "name", "hwaddr", "spec"})
PORT_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "unix-datagram": _ANY_PORT | {"own_path", "peer_path"},
    "veth": _ANY_PORT | {"interface"},
    "tap": _ANY_PORT | {"interface"},
    "tap-device": _ANY_PORT | {"interface"},
    "ovs-dummy": _ANY_PORT | {"peer_path"},
    "none": frozenset(),
}


def allowed_placeholders(connection: str, address_kind: str) -> frozenset[str]:
    """What every text of a profile with this kind of control channel may use."""
    meeting = "controller" if connection == "connect" else "listen"
    parts = {"control_path"} if address_kind == "unix" else {"host", "tcp_port"}
    return frozenset({"binary", "dir", "here", meeting, *parts})


def placeholders_in(text: str) -> list[str]:
    return [match[2] for match in _PLACEHOLDER.finditer(text) if match[2]]


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with every placeholder replaced. A port that the scenario does not have is the only unknown left."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{match[1]}}}"
        if match[2] not in values:
            raise SoftError(f"The launch profile uses {{{match[2]}}}, which this scenario does not have.")
        return values[match[2]]

    return _PLACEHOLDER.sub(value, text)


def fill_command(
    command: Sequence[str], values: Mapping[str, str], port_argument: Sequence[str], ports: Sequence[Mapping[str, str]]
) -> list[str]:
    """The command line; {ports} becomes `port_argument` once for every port."""
    arguments: list[str] = []
    for text in command:
        if text == "{ports}":
            arguments += [fill(part, {**values, **port}) for port in ports for part in port_argument]
        else:
            arguments.append(fill(text, values))
    return arguments
