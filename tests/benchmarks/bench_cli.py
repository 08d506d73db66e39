"""How long a user waits for the command itself: the best of several starts.

    python -m tests.benchmarks.bench_cli

prints one JSON object a line. `soft --help` is to answer in under 0.5 s.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

COMMANDS = (("--help",), ("tests",), ("agents",), ("crosscheck", "--help"))
STARTS = 7


def fastest(arguments: tuple[str, ...]) -> float:
    best = float("inf")
    for _ in range(STARTS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "soft", *arguments], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    for arguments in COMMANDS:
        command = " ".join(("soft", *arguments))
        print(json.dumps({"command": command, "seconds": round(fastest(arguments), 3)}), flush=True)


if __name__ == "__main__":
    main()
