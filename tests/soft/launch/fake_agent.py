"""A switch of a few lines, deliberately unlike ours, for tests of everything between an agent and a trace.

Run as a script: `fake_agent.py (--connect|--listen) ADDRESS [--port N=SPEC]...`. An echo request is answered; its data
may be an order: crash, exit, close, hang, flood, late, split, child, refuse, or leave: it closes its channel and comes
back where it listens, or where the file `again` says. A frame that comes in on a port goes out
of the next one. --greet NAME changes how it shakes hands; a drowsy one reads its channel only when somebody connects to
the socket `bell`.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6


def message(kind: int, xid: int, body: bytes = b"", version: int = 1) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


class Port:
    """A port on a UNIX datagram socket, an interface, or a stream as Open vSwitch has it."""

    def __init__(self, number: int, spec: str) -> None:
        self.number = number
        self.stream = False
        if spec.startswith("unix:") and "," in spec:
            own, self.peer = spec.removeprefix("unix:").split(",")
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.bind(own)
        elif spec.startswith("unix:"):
            self.stream = True
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(spec.removeprefix("unix:"))
        else:
            self.peer = ""
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.socket.bind((spec, 0))

    def receive(self) -> bytes:
        if self.stream:
            size = int.from_bytes(self.socket.recv(2, socket.MSG_WAITALL), "big")
            return self.socket.recv(size, socket.MSG_WAITALL)
        frame, address = self.socket.recvfrom(65535)
        outgoing = self.socket.family == socket.AF_PACKET and address[2] == socket.PACKET_OUTGOING
        return b"" if outgoing else frame

    def send(self, frame: bytes) -> None:
        if self.stream:
            self.socket.sendall(len(frame).to_bytes(2, "big") + frame)
        elif self.peer:
            self.socket.sendto(frame, self.peer)
        else:
            self.socket.send(frame)


class Left(Exception):
    """The channel was closed, and there shall be another."""


def address_of(text: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    kind, _, rest = text.partition(":")
    host, _, port = rest.partition(":")
    return (socket.AF_UNIX, rest) if kind == "unix" else (socket.AF_INET, (host, int(port)))


def open_again(listen: str | None) -> socket.socket:
    if listen:
        return open_control(None, listen)
    while True:
        time.sleep(0.001)
        if os.path.exists("again"):
            with open("again") as file:
                text = file.read()
            if text.endswith("\n"):
                os.unlink("again")
                return open_control(text.strip(), None)


def wait_for_the_bell(bell: socket.socket) -> None:
    caller, _ = bell.accept()
    caller.close()


def open_control(connect: str | None, listen: str | None) -> socket.socket:
    family, address = address_of(connect or listen or "")
    end = socket.socket(family, socket.SOCK_STREAM)
    if connect:
        end.connect(address)
        return end
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if isinstance(address, str) and os.path.exists(address):
        os.unlink(address)
    end.bind(address)
    end.listen(1)
    return end.accept()[0]


def obey(order: bytes, control: socket.socket, xid: int) -> None:
    """What the data of an echo request asks for."""
    reply = message(ECHO_REPLY, xid, order)
    if order == b"crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif order == b"exit":
        control.sendall(reply)
        sys.exit(3)
    elif order == b"close":
        control.sendall(reply)
        control.shutdown(socket.SHUT_RDWR)
        control.close()
        signal.pause()
    elif order == b"leave":
        control.close()
        raise Left
    elif order == b"hang":
        while True:
            pass
    elif order == b"flood":
        while True:
            control.sendall(reply)
    elif order == b"late":
        time.sleep(0.05)
        control.sendall(reply)
    elif order == b"split":
        control.sendall(reply[:5])
        time.sleep(0.002)
        control.sendall(reply[5:] + reply[:9])
    elif order == b"child":
        # A child that has left our session and would outlive us.
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        control.sendall(reply)
    else:
        control.sendall(reply)


def answer(control: socket.socket, greet: str, kind: int, xid: int, body: bytes) -> None:
    if kind == FEATURES_REQUEST and greet == "refuse":
        control.sendall(message(ERROR, xid, struct.pack("!HH", 1, 5)))
    elif kind == FEATURES_REQUEST and greet == "echo":
        control.sendall(message(ECHO_REQUEST, 77, b"alive?"))
        control.sendall(message(FEATURES_REPLY, xid, bytes(24)))
        control.sendall(message(ECHO_REQUEST, 78, b"still?"))
    elif kind == FEATURES_REQUEST:
        control.sendall(message(FEATURES_REPLY, xid, bytes(24)))
    elif kind == ECHO_REQUEST:
        obey(body, control, xid)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connect")
    parser.add_argument("--listen")
    parser.add_argument("--port", action="append", default=[])
    parser.add_argument("--greet", default="")
    options = parser.parse_args()
    print("the fake agent starts", flush=True)
    if options.greet == "die":
        sys.exit("no licence found")
    ports = [Port(int(text.partition("=")[0]), text.partition("=")[2]) for text in options.port]
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if options.greet == "drowsy":
        bell.bind("bell")
        bell.listen(8)
    control = open_control(options.connect, options.listen)
    while True:
        try:
            serve(control, ports, options.greet, bell)
            return
        except Left:
            control = open_again(options.listen)


def serve(control: socket.socket, ports: list[Port], greet: str, bell: socket.socket) -> None:
    if greet != "mute":
        control.sendall(message(HELLO, 1, version=4 if greet == "new" else 0 if greet == "old" else 1))
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    for port in ports:
        selector.register(port.socket, selectors.EVENT_READ, port)
    buffer = b""
    while True:
        if greet == "drowsy":
            wait_for_the_bell(bell)
        for key, _ in selector.select(0 if greet == "drowsy" else None):
            if key.data is not None:
                frame = key.data.receive()
                target = ports[(ports.index(key.data) + 1) % len(ports)]
                if frame:
                    target.send(frame)
                continue
            chunk = control.recv(65536)
            if not chunk:
                return
            buffer += chunk
            while len(buffer) >= 8 and len(buffer) >= int.from_bytes(buffer[2:4], "big"):
                length = int.from_bytes(buffer[2:4], "big")
                kind, xid = buffer[1], int.from_bytes(buffer[4:8], "big")
                body, buffer = buffer[8:length], buffer[length:]
                answer(control, greet, kind, xid, body)


if __name__ == "__main__":
    main()
