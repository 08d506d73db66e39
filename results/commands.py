"""Run many `soft` commands, a few at a time, and say how each went."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

# After a time limit a command is asked to stop, so that it cleans up; it gets this long for it.
_GRACE = 15.0


@dataclass(frozen=True, slots=True)
class Command:
    """One `soft` command, or one of another module. `weight` is about how many seconds it takes: long ones go first."""

    name: str
    arguments: tuple[str, ...]
    weight: float = 1.0
    limit: float | None = None
    good: frozenset[int] = frozenset({0})
    output: Path | None = None
    """Where its standard output goes."""
    module: str = "soft"
    """What is run."""


@dataclass(frozen=True, slots=True)
class Result:
    command: Command
    seconds: float
    failure: str
    """Why it did not work; empty if it did."""


Say = Callable[[str], None]


def run_all(commands: Sequence[Command], jobs: int, say: Say = print) -> list[Result]:
    """Run the commands, `jobs` at a time; a line for each as it ends. Whatever ends this ends those that run."""
    results: list[Result] = []
    running: set[subprocess.Popen[bytes]] = set()
    ordered = sorted(commands, key=lambda command: -command.weight)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_run, command, running) for command in ordered]
        try:
            for number, future in enumerate(as_completed(futures), 1):
                result = future.result()
                how = f"{result.seconds:.1f} s" if not result.failure else result.failure
                say(f"[{number}/{len(futures)}] {result.command.name}: {how}")
                results.append(result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.terminate()
            raise
    return results


def _run(command: Command, running: set[subprocess.Popen[bytes]]) -> Result:
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", command.module, *command.arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.add(process)
    try:
        failure = ""
        try:
            out, err = process.communicate(timeout=command.limit)
        except subprocess.TimeoutExpired:
            failure = f"not done after {command.limit:g} s"
            out, err = _stopped(process)
        if not failure and process.returncode not in command.good:
            lines = err.decode(errors="replace").strip().splitlines()
            failure = lines[-1] if lines else f"ended with status {process.returncode}"
        if not failure and command.output is not None:
            command.output.parent.mkdir(parents=True, exist_ok=True)
            temporary = command.output.with_name(command.output.name + ".part")
            temporary.write_bytes(out)
            os.replace(temporary, command.output)
        return Result(command, time.monotonic() - begin, failure)
    finally:
        running.discard(process)


def _stopped(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    process.terminate()
    try:
        return process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()
