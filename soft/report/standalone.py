"""Send the input of one finding to a switch and print what comes back beside what two agents were predicted to do.

This file needs Python 3.9 and nothing else.

  python3 -I THIS_FILE --listen 6653                 wait for a switch that connects to its controller
  python3 -I THIS_FILE --connect 192.0.2.1:6653      connect to a switch that listens
  python3 -I THIS_FILE --listen unix:/tmp/control --port 1=veth1 --port 2=unix:AGENT,OURS

Ports of the switch are network interfaces (needs the right to open packet sockets), or UNIX datagram sockets: the
switch's own path, then ours. Ports that are not given are not probed and not watched. Predictions are normalised:
buffer ids, counters and the like may differ in what comes back.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

FINDING: dict[str, Any] = {}  # filled in by `soft report`

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY, PACKET_IN = 0, 1, 2, 3, 5, 6, 10
TYPES = [
    "hello",
    "error",
    "echo_request",
    "echo_reply",
    "vendor",
    "features_request",
    "features_reply",
    "get_config_request",
    "get_config_reply",
    "set_config",
    "packet_in",
    "flow_removed",
    "port_status",
    "packet_out",
    "flow_mod",
    "port_mod",
    "stats_request",
    "stats_reply",
    "barrier_request",
    "barrier_reply",
    "queue_get_config_request",
    "queue_get_config_reply",
]
HEADER = struct.Struct("!BBHI")
HELLO_XID, FEATURES_XID = 0xFFFFFF01, 0xFFFFFF02
# <linux/if_packet.h>; Python has no names for these.
SOL_PACKET, PACKET_AUXDATA, PACKET_OUTGOING, VLAN_VALID, VLAN_TPID_VALID = 263, 8, 4, 16, 64
ETH_P_ALL = 3
Event = dict[str, Any]  # kind, port, hex, words, step: as far as they make sense


def fail(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


# ------------------------------------------------------------------------------------------------ wires


def control_channel(arguments: argparse.Namespace) -> socket.socket:
    """A connected socket, whoever connects."""
    where: str = arguments.connect or arguments.listen
    path = where[5:] if where.startswith("unix:") else None
    host, _, number = where.rpartition(":")
    if path is None and not number.isdigit():
        fail(f"{where} is not HOST:PORT, PORT or unix:PATH.")
    if arguments.connect:
        if path is not None:
            end = socket.socket(socket.AF_UNIX)
            end.settimeout(arguments.timeout)
            end.connect(path)
            return end
        return socket.create_connection((host or "127.0.0.1", int(number)), arguments.timeout)
    if path is not None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(1)
    else:
        server = socket.create_server((host, int(number)))
    print(f"Waiting for the switch on {where}.", flush=True)
    server.settimeout(arguments.timeout)
    try:
        return server.accept()[0]
    finally:
        server.close()
        if path is not None:
            os.unlink(path)


class Port:
    """One port of the switch, seen from the cable."""

    def __init__(self, text: str) -> None:
        number, equals, wire = text.partition("=")
        if not equals or not number.isdigit():
            fail(f"{text} is not of the form N=INTERFACE or N=unix:AGENT,OURS.")
        self.number = int(number)
        self.peer = ""
        self.bound = ""
        if wire.startswith("unix:"):
            self.peer, comma, ours = wire[5:].partition(",")
            if not comma:
                fail(f"{text}: a UNIX port needs two paths: unix:AGENT,OURS.")
            self.end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.end.bind(ours)
            self.bound = ours
        else:
            self.end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.end.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            self.end.bind((wire, 0))
        self.end.setblocking(False)

    def send(self, frame: bytes) -> None:
        if self.peer:
            self.end.sendto(frame, self.peer)
        else:
            self.end.send(frame)

    def receive(self) -> bytes | None:
        """A frame, or None if this one was our own."""
        if self.peer:
            return self.end.recv(65535)
        frame, extra, _, address = self.end.recvmsg(65535, 256)
        if address[2] == PACKET_OUTGOING:
            return None
        # The kernel takes the VLAN tag out of the frame and hands it over beside it.
        for level, kind, data in extra:
            if level == SOL_PACKET and kind == PACKET_AUXDATA and len(data) >= 20:
                status, _, _, _, _, tci, tpid = struct.unpack_from("=IIIHHHH", data)
                if status & VLAN_VALID:
                    tag = struct.pack("!HH", tpid if status & VLAN_TPID_VALID else 0x8100, tci)
                    frame = frame[:12] + tag + frame[12:]
        return frame

    def close(self) -> None:
        self.end.close()
        if self.bound:
            os.unlink(self.bound)


class Switch:
    """The wires to the switch, and what has come over them."""

    def __init__(self, control: socket.socket, ports: list[Port], quiet: float) -> None:
        self.control = control
        self.control.setblocking(False)
        self.ports = {port.number: port for port in ports}
        self.quiet = quiet
        self.buffer = b""
        self.open = True

    def send(self, data: bytes) -> None:
        self.control.setblocking(True)
        try:
            self.control.sendall(data)
        except OSError:
            self.open = False
        finally:
            self.control.setblocking(False)

    def events(self, at_least: float = 0.0, until: Callable[[Event], bool] | None = None) -> list[Event]:
        """Everything that comes until it has been quiet for a while, or until an event that is waited for."""
        result: list[Event] = []
        first = time.monotonic()
        last = first
        while True:
            now = time.monotonic()
            left = max(last + self.quiet, first + at_least) - now
            if left <= 0:
                return result
            wires: dict[socket.socket, Port | None] = {port.end: port for port in self.ports.values()}
            if self.open:
                wires[self.control] = None
            if not wires:
                time.sleep(left)
                continue
            for end in select.select(list(wires), [], [], left)[0]:
                last = time.monotonic()
                port = wires[end]
                if port is None:
                    result += self._messages()
                else:
                    with contextlib.suppress(OSError):
                        frame = port.receive()
                        if frame is not None:
                            result.append({"kind": "packet", "port": port.number, "hex": frame.hex()})
            if until is not None and any(until(event) for event in result):
                return result

    def _messages(self) -> list[Event]:
        try:
            data = self.control.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.open = False
            return [{"kind": "end"}]
        self.buffer += data
        result: list[Event] = []
        while len(self.buffer) >= HEADER.size:
            length = max(HEADER.unpack_from(self.buffer)[2], HEADER.size)
            if len(self.buffer) < length:
                break
            message, self.buffer = self.buffer[:length], self.buffer[length:]
            if not self._housekeeping(message):
                result.append({"kind": "message", "hex": message.hex()})
        return result

    def _housekeeping(self, message: bytes) -> bool:
        """Echo requests are answered and say nothing about the finding."""
        version, kind, length, xid = HEADER.unpack_from(message)
        if kind == ECHO_REQUEST and FINDING["handshake"]:
            self.send(HEADER.pack(version, ECHO_REPLY, length, xid) + message[HEADER.size :])
            return True
        return False

    def handshake(self, timeout: float) -> None:
        version = FINDING["version"]
        self.send(HEADER.pack(version, HELLO, HEADER.size, HELLO_XID))
        self.send(HEADER.pack(version, FEATURES_REQUEST, HEADER.size, FEATURES_XID))

        def done(event: Event) -> bool:
            return event["kind"] == "end" or (event["kind"] == "message" and str(event["hex"]).startswith("06", 2))

        events = self.events(at_least=timeout, until=done)
        if not self.open or not any(done(event) for event in events):
            fail("The switch did not answer the handshake.")


# ------------------------------------------------------------------------------------------------ words


def signature(event: Event) -> tuple[Any, ...]:
    """What makes two events the same in kind: a message's type and an error's code, a packet's port."""
    kind, data = event["kind"], event.get("hex") or ""
    if kind == "message":
        code = data[2:4]
        return "message", code, data[16:24] if code == "01" else data[32:34] if code == "0a" else ""
    if kind == "packet":
        return "packet", event["port"]
    return ("end",)


def in_kind(events: list[Event]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Messages in their order; packets by port, because ports have no order between them."""
    kinds = [signature(event) for event in events if event["kind"] not in ("hang", "flood")]
    return [k for k in kinds if k[0] != "packet"], sorted(k for k in kinds if k[0] == "packet")


def words(event: Event) -> str:
    if event.get("words"):
        return str(event["words"])
    data = bytes.fromhex(event.get("hex") or "")
    if event["kind"] == "packet":
        return f"packet of {len(data)} bytes on port {event['port']}"
    if event["kind"] != "message":
        return "the switch closes the connection"
    if len(data) < HEADER.size:
        return f"fragment of {len(data)} bytes"
    name = TYPES[data[1]] if data[1] < len(TYPES) and data[0] == 1 else f"message of type {data[1]}"
    if data[1] == ERROR and len(data) >= 12:
        error, code = struct.unpack_from("!HH", data, 8)
        name += f" type {error} code {code}"
    return f"{name}, {len(data)} bytes"


def show(events: list[Event], indent: str) -> None:
    if not events:
        print(indent + "nothing")
    for event in events:
        print(indent + words(event))
        data = bytes.fromhex(event.get("hex") or "")
        for start in range(0, min(len(data), 256), 16):
            row = data[start : start + 16]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            print(f"{indent}  {start:04x}  {' '.join(f'{byte:02x}' for byte in row):<47}  {text}")
        if len(data) > 256:
            print(f"{indent}  ... {len(data) - 256} bytes more")


# ------------------------------------------------------------------------------------------------ the run


def play(switch: Switch) -> list[str]:
    """Every step in turn, and how far what came back looks like each prediction."""
    fits = dict.fromkeys(FINDING["predictions"], True)
    if FINDING["handshake"]:
        switch.handshake(5.0)
    before = [] if FINDING["handshake"] else switch.events()
    for number, step in enumerate(FINDING["steps"]):
        print(f"\nStep {step['id']}: {step['words']}", flush=True)
        wait = 0.0
        if step["kind"] == "send":
            switch.send(bytes.fromhex(step["hex"]))
        elif step["kind"] == "wait":
            wait = step["milliseconds"] / 1000
        elif step["port"] in switch.ports:
            switch.ports[step["port"]].send(bytes.fromhex(step["hex"]))
        else:
            print(f"  Port {step['port']} is not given (--port {step['port']}=...): not probed.")
        came, before = before + switch.events(at_least=wait), []
        print("  What came back:")
        show(came, "    ")
        for agent, events in FINDING["predictions"].items():
            mine = [event for event in events if event["step"] == number]
            # What goes out of a port that nobody watches cannot be missed.
            seen = [event for event in mine if event["kind"] != "packet" or event["port"] in switch.ports]
            same = in_kind(seen) == in_kind(came)
            fits[agent] = fits[agent] and same
            print(f"  {agent} was predicted to do{' the same in kind' if same else ''}:")
            show(mine, "    ")
    return [agent for agent, fit in fits.items() if fit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--listen", metavar="[HOST:]PORT", help="or unix:PATH")
    who.add_argument("--connect", metavar="HOST:PORT", help="or unix:PATH")
    parser.add_argument("--port", action="append", default=[], metavar="N=WIRE", help="repeat it")
    parser.add_argument("--quiet", type=float, default=0.5, metavar="SECONDS", help="silence that ends a step")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for the connection")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(f"Finding {FINDING['id']}, scenario {FINDING['scenario']}")
    print(FINDING["heading"])
    ports: list[Port] = []
    try:
        ports += [Port(text) for text in arguments.port]
        with control_channel(arguments) as control:
            like = play(Switch(control, ports, arguments.quiet))
    except (OSError, KeyboardInterrupt) as error:
        fail(f"The wires failed: {error or 'stopped by the user'}.")
    finally:
        for port in ports:
            port.close()
    print(f"\nIn kind, this switch does what was predicted for {' and '.join(like) or 'none of the agents'}.")


if __name__ == "__main__":
    main()
