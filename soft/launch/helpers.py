"""The processes around an agent: commands before and after its start, helpers in the background, readiness."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from soft.errors import SoftError
from soft.launch.placeholders import fill, fill_command
from soft.launch.process import Spawning, describe_exit, spawn
from soft.launch.profile import Command, Profile, Ready


class Helpers:
    """Starts the commands of one profile with its placeholders filled in, each with a log of its own."""

    def __init__(
        self,
        profile: Profile,
        values: Mapping[str, str],
        ports: Sequence[Mapping[str, str]],
        directory: Path,
        environment: Mapping[str, str],
        enter: Callable[[], None] | None,
        deadline: float,
    ) -> None:
        self._profile = profile
        self._values = values
        self._ports = ports
        self._directory = directory
        self._environment = environment
        self._enter = enter
        self._deadline = deadline
        self._started = 0

    def later(self, values: Mapping[str, str], deadline: float) -> Helpers:
        """For commands while the agent runs: some placeholders are others now, and the start's deadline has passed."""
        merged = {**self._values, **values}
        return Helpers(self._profile, merged, self._ports, self._directory, self._environment, self._enter, deadline)

    def start(
        self,
        command: Sequence[str],
        log: str,
        before_main: Callable[[int], None] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command, with more variables in its environment than all others have."""
        environment = {**self._environment, **(more or {})}
        arguments = fill_command(command, self._values, self._profile.port_argument, self._ports)
        descriptor = os.open(self._directory / log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            return spawn(arguments, Spawning(self._directory, environment, descriptor, self._enter), before_main)
        finally:
            os.close(descriptor)

    def run(self, commands: Sequence[Command]) -> None:
        """Each command in turn: to its end, or until it is ready if it stays in the background."""
        for command in commands:
            self._started += 1
            log = f"helper{self._started}.log"
            process = self.start(command.command, log)
            name = f"`{Path(command.command[0]).name}`"
            if command.background:
                if command.ready is not None:
                    self.await_ready(command.ready, process, log, name)
                continue
            self._finish(process, log, name)

    def _finish(self, process: subprocess.Popen[bytes], log: str, name: str) -> None:
        try:
            code = process.wait(max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise SoftError(
                f"{name} did not end within {self._profile.start_timeout_ms} ms.{self._words(log)}"
            ) from None
        if code != 0:
            raise SoftError(f"{name} failed ({describe_exit(code)}).{self._words(log)}")

    def await_ready(self, ready: Ready, process: subprocess.Popen[bytes], log: str, name: str) -> None:
        pause = 0.0005
        while not self._is_ready(ready, log):
            # A process may put itself into the background: its success is no end.
            if (code := process.poll()) is not None and code != 0:
                raise SoftError(f"{name} ended ({describe_exit(code)}) before it was ready.{self._words(log)}")
            if time.monotonic() > self._deadline:
                raise SoftError(f"{name} was not ready within {self._profile.start_timeout_ms} ms.{self._words(log)}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)

    def _is_ready(self, ready: Ready, log: str) -> bool:
        if ready.file is not None:
            return (self._directory / fill(ready.file, self._values)).exists()
        if ready.output is not None:
            return ready.output in (self._directory / log).read_text(errors="replace")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(str(self._directory / fill(ready.socket or "", self._values)))
            return True
        return False

    def _words(self, log: str) -> str:
        return last_words(self._directory / log)


def last_words(log: Path, lines: int = 5) -> str:
    """The last lines of a log as part of a sentence: " Its last words: ..."."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        text = file.read().decode("utf-8", "replace")
        if tail := [line.strip() for line in text.splitlines() if line.strip()][-lines:]:
            return " Its last words: " + " | ".join(tail)
    return ""
