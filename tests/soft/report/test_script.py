"""The stand-alone script, run by a Python without our packages, against a switch made of a few lines."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
import threading
from pathlib import Path

from soft.report.scenes import scenes
from soft.report.script import script
from tests.soft.report import example

FEATURES = bytes.fromhex("01060020ffffff02") + bytes(24)


def written(tmp_path: Path, place: int) -> Path:
    findings = example.findings()
    file = tmp_path / "finding.py"
    file.write_bytes(script(findings, findings.findings[place], scenes(findings)["tiny"]))
    return file


class Switch(threading.Thread):
    """Shakes hands, then answers the first message with what it is told; on port 1 it sends every frame back."""

    def __init__(self, control: socket.socket, answer: bytes, port: socket.socket | None = None) -> None:
        super().__init__(daemon=True)
        self.control, self.answer, self.port = control, answer, port
        self.got = b""

    def run(self) -> None:
        with self.control:
            self.control.settimeout(20)
            self.control.sendall(bytes.fromhex("0100000800000001"))
            while len(self.got) < 16:
                self.got += self.control.recv(4096)
            # An echo request in between must be answered, and must not show.
            self.control.sendall(bytes.fromhex("010200080000002a") + FEATURES)
            while b"\x01\x0d\x00\x5c" not in self.got:
                self.got += self.control.recv(4096)
            self.control.sendall(self.answer)
            if self.port is not None:
                self.port.settimeout(20)
                frame, address = self.port.recvfrom(4096)
                self.port.sendto(frame, address)
            while data := self.control.recv(4096):
                self.got += data


def run(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(file), "--quiet", "0.2", *arguments], capture_output=True, text=True, timeout=60
    )


def test_it_connects_and_recognises_an_agent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        made: list[Switch] = []

        def serve() -> None:
            made.append(Switch(server.accept()[0], bytes.fromhex("0101000c0000000100020005")))
            made[0].start()

        accepting = threading.Thread(target=serve, daemon=True)
        accepting.start()
        done = run(written(tmp_path, 3), "--connect", address)
    assert done.returncode == 0, done.stderr
    assert "error type 2 code 5, 12 bytes" in done.stdout
    assert done.stdout.rstrip().endswith("In kind, this switch does what was predicted for right.")
    assert "echo" not in done.stdout
    assert bytes.fromhex("010300080000002a") in made[0].got


def test_it_listens_and_probes_through_unix_sockets(tmp_path: Path) -> None:
    control, own, ours = (tmp_path / name for name in ("control", "own", "ours"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as port, socket.socket(socket.AF_UNIX) as end:
        port.bind(str(own))

        def connect() -> None:
            while True:
                try:
                    end.connect(str(control))
                except OSError:
                    continue
                Switch(end, b"", port).run()
                return

        threading.Thread(target=connect, daemon=True).start()
        done = run(written(tmp_path, 2), "--listen", f"unix:{control}", "--port", f"1=unix:{own},{ours}")
    assert done.returncode == 0, done.stderr
    assert "packet of 60 bytes on port 1" in done.stdout
    assert done.stdout.rstrip().endswith("predicted for none of the agents.")
    assert not control.exists()
    assert not ours.exists()


def test_wrong_arguments_are_a_sentence(tmp_path: Path) -> None:
    file = written(tmp_path, 0)
    for arguments in (["--listen", "nowhere"], ["--connect", "unix:/nowhere/at/all"], ["--listen", "1", "--port", "x"]):
        done = run(file, *arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") == 1


def test_hostile_texts_are_only_text_in_it() -> None:
    findings = example.hostile()
    source = script(findings, findings.findings[0], scenes(findings)["tiny"])
    tree = ast.parse(source)
    data = next(node.value for node in tree.body if isinstance(node, ast.AnnAssign))
    assert data is not None
    assert ast.literal_eval(data)["heading"] == findings.clusters[0].heading
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= sys.stdlib_module_names
