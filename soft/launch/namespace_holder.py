"""Holds a private network namespace open: run as a script of its own, it passes sockets made inside back to its parent.

It uses the standard library only and nothing of this package, because it is started with `python -I -S` to be quick.
The parent talks to it over file descriptor 0, a UNIX socket: one JSON request, one JSON answer with descriptors; the
namespace lives until the parent closes its end or dies.
"""

import array
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
TUNSETPERSIST = 0x400454CB
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23


class Impossible(Exception):
    """The namespace cannot be made; the message says what is missing."""


def enter_namespace() -> bool:
    """Unshare the network; without privilege inside a user namespace of our own, which is what True says."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return False
    first = os.strerror(ctypes.get_errno())
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise Impossible(
            f"A private network namespace needs root ({first}) or user namespaces, and those were refused too "
            f"({os.strerror(ctypes.get_errno())}). Run as root, allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or use UNIX socket ports."
        )
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def configure(kind: str, ports: list[dict[str, str]]) -> None:
    """Bring up loopback and the interfaces, with nothing of the kernel's own on the cable."""
    for where in ("all", "default"):
        try:
            with open(f"/proc/sys/net/ipv6/conf/{where}/disable_ipv6", "w") as file:
                file.write("1")
        except OSError:
            pass  # A kernel without IPv6 sends no router solicitations either.
    lines = ["link set lo up"]
    for port in ports:
        name, address, peer = port["name"], port["address"], port["peer"]
        if kind == "veth":
            lines.append(f"link add {name} address {address} type veth peer name {peer}")
            lines.append(f"link set {peer} arp off up")
        lines.append(f"link set {name} address {address} arp off up")
    try:
        done = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise Impossible("The command `ip` is missing; install iproute2.") from None
    if done.returncode != 0:
        raise Impossible(f"Interfaces for the ports could not be made: {done.stderr.strip() or 'ip failed'}.")


def open_tap(name: str) -> int:
    try:
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    except OSError as error:
        raise Impossible(f"The tap device {name} could not be made: {error.strerror}.") from None
    return device


def make_tap(name: str) -> None:
    """A tap interface whose device somebody else will open."""
    device = open_tap(name)
    fcntl.ioctl(device, TUNSETPERSIST, 1)
    os.close(device)


def open_packet_socket(interface: str) -> int:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.bind((interface, ETH_P_ALL))
    return end.detach()


def open_listener(port: int) -> int:
    listener = socket.create_server(("127.0.0.1", port))
    return listener.detach()


def connect(port: int) -> int:
    return socket.create_connection(("127.0.0.1", port), timeout=1).detach()


def prepare(request: dict[str, object]) -> tuple[dict[str, object], list[int]]:
    kind, ports = str(request["kind"]), request["ports"]
    assert isinstance(ports, list)
    in_user_namespace = enter_namespace()
    descriptors = [open_tap(port["name"]) for port in ports] if kind == "tap" else []
    if kind == "tap-device":
        for port in ports:
            make_tap(port["name"])
    configure(kind, ports if kind in ("veth", "tap", "tap-device") else [])
    if kind in ("veth", "tap-device"):
        descriptors = [open_packet_socket(port["peer" if kind == "veth" else "name"]) for port in ports]
    return {"user_namespace": in_user_namespace}, descriptors


def answer(parent: socket.socket, reply: dict[str, object], descriptors: list[int]) -> None:
    side = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    parent.sendmsg([json.dumps(reply).encode()], side)
    for descriptor in descriptors:
        os.close(descriptor)


def main() -> None:
    parent = socket.socket(fileno=0)
    while request := parent.recv(1 << 16):
        todo = json.loads(request)
        try:
            if todo["do"] == "prepare":
                answer(parent, *prepare(todo))
            elif todo["do"] == "listen":
                answer(parent, {}, [open_listener(todo["port"])])
            elif todo["do"] == "connect":
                answer(parent, {}, [connect(todo["port"])])
        except Impossible as error:
            answer(parent, {"error": str(error)}, [])
        except OSError as error:
            answer(parent, {"error": f"{error.strerror or error}.", "errno": error.errno or 0}, [])


if __name__ == "__main__":
    main()
