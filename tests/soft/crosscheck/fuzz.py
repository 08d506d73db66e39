"""Real bundles, damaged so that most of them still read: the whole of `soft crosscheck` has to cope.

    python -m tests.soft.crosscheck.fuzz CASES [FIRST]

runs as many cases, from the given number on, and prints how often which exit status came. A case is its number: what it
does depends on nothing else. Every case ends with one of the four statuses, in bounded time, and without a traceback.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from click.testing import CliRunner

from soft.bundle import files
from soft.cli import soft
from soft.errors import SoftError
from tests.agents.lab import ROOT
from tests.soft.bundle.test_fuzz import damaged

SAMPLES = ROOT / "results" / "samples"
SCENARIOS = (*["queue_config"] * 9, "short_symb")
AGENTS = ("reference", "vswitch")
# Far more than a case takes (10 to 50 ms): only what does not end gets there.
MOST_SECONDS = 60
MOST_BYTES = 1 << 20
# One case in so many writes its report too, which takes longer than the rest: it is the same code for every finding.
REPORTS = 10

Lines = list[str]
Parts = dict[str, Lines]


def originals() -> dict[tuple[str, str], Parts]:
    """The files of the sample bundles, by scenario and agent, in lines."""
    found = {}
    for scenario in set(SCENARIOS):
        for agent in AGENTS:
            source = files.open_source(SAMPLES / agent / f"{scenario}.soft")
            found[scenario, agent] = {
                name: files.read_text(source, name, MOST_BYTES).splitlines() for name in files.NAMES
            }
    return found


# ---------------------------------------------------------------------------------------------- damage

CONSTANT = re.compile(r"#x([0-9a-f]+)")
OPERATORS = ("=", "bvult", "bvule", "bvslt", "bvsle")
CONNECTIVES = ("and", "or")
EVENTS: tuple[dict[str, object], ...] = (
    {"event": "crash", "step": 0, "reason": "SIGSEGV"},
    {"event": "close", "step": 0},
    {"event": "hang", "step": 0},
    {"event": "flood", "step": 0},
    {"event": "packet", "step": 0, "port": 2, "payload": ["#x0102030405060708090a0b0c0800"]},
    {"event": "message", "step": 0, "payload": ["#x010a001200000000ffffffff00000000"]},
    {"event": "message", "step": 0, "payload": []},
)


def drop_paths(parts: Parts, chance: random.Random) -> None:
    lines = parts[files.PATHS]
    for _ in range(chance.randint(1, 3)):
        if lines:
            del lines[chance.randrange(len(lines))]


def repeat_path(parts: Parts, chance: random.Random) -> None:
    lines = parts[files.PATHS]
    if lines:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))


def change_paths(parts: Parts, chance: random.Random) -> None:
    """Swap or change the conditions, outputs or witnesses of two paths."""
    lines = parts[files.PATHS]
    if not lines:
        return
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    one, two = json.loads(lines[a]), json.loads(lines[b])
    key = chance.choice(("conditions", "trace", "trace", "trace", "witness"))
    if chance.random() < 0.5:
        one[key], two[key] = two[key], one[key]
    elif key == "trace":
        one[key] = chance.randrange(len(parts[files.TRACES]))
    elif one[key]:
        place = chance.randrange(len(one[key]))
        if chance.random() < 0.5:
            del one[key][place]
        else:
            one[key][place] = chance.choice((0, 1, one[key][place] ^ 1, one[key][place] + 1))
    if chance.random() < 0.2:
        one["marks"] = chance.choice((["unstable"], ["approximate"], ["unstable", "approximate"]))
    lines[b], lines[a] = json.dumps(two), json.dumps(one)


def change_constant(parts: Parts, chance: random.Random, name: str) -> None:
    lines = parts[name]
    places = [n for n, line in enumerate(lines) if CONSTANT.search(line)]
    if not places:
        return
    place = chance.choice(places)
    match = chance.choice(list(CONSTANT.finditer(lines[place])))
    digits = list(match.group(1))
    digits[chance.randrange(len(digits))] = chance.choice("0123456789abcdef")
    lines[place] = f"{lines[place][: match.start(1)]}{''.join(digits)}{lines[place][match.end(1) :]}"


def change_condition_constant(parts: Parts, chance: random.Random) -> None:
    change_constant(parts, chance, files.TERMS)


def change_output_constant(parts: Parts, chance: random.Random) -> None:
    change_constant(parts, chance, files.TRACES)


def change_operator(parts: Parts, chance: random.Random) -> None:
    lines = parts[files.TERMS]
    place = chance.randrange(len(lines))
    words = OPERATORS if chance.random() < 0.8 else CONNECTIVES
    old = [word for word in words if f"({word} " in lines[place]]
    if old:
        lines[place] = lines[place].replace(f"({chance.choice(old)} ", f"({chance.choice(words)} ", 1)


def change_trace(parts: Parts, chance: random.Random) -> None:
    """Drop, repeat, swap or add events, or move one to another step or port."""
    lines = parts[files.TRACES]
    place = chance.randrange(len(lines))
    events = json.loads(lines[place])
    kind = chance.randrange(5)
    if kind == 0 and events:
        del events[chance.randrange(len(events))]
    elif kind == 1 and events:
        events.append(chance.choice(events))
    elif kind == 2 and events:
        chance.choice(events)["step"] = chance.randrange(3)
    elif kind == 3 and events:
        event = chance.choice(events)
        if event.get("payload"):
            event["payload"] = event["payload"][: chance.randrange(len(event["payload"]) + 1)]
            event["payload"].append(chance.choice(("m0.port", "#x00", "#xffffffff")))
    else:
        events.insert(chance.randrange(len(events) + 1), dict(chance.choice(EVENTS)))
    lines[place] = json.dumps(events)


def swap_traces(parts: Parts, chance: random.Random) -> None:
    chance.shuffle(parts[files.TRACES])


def claim(parts: Parts, chance: random.Random) -> None:
    """Say that a bundle is partial, or that it is complete."""
    manifest = json.loads("\n".join(parts[files.MANIFEST]))
    manifest["complete"] = chance.random() < 0.5
    manifest["reasons"] = [] if manifest["complete"] else ["The time limit was reached."]
    parts[files.MANIFEST] = json.dumps(manifest).splitlines()


def any_bytes(parts: Parts, chance: random.Random) -> None:
    name = chance.choice(files.NAMES)
    data = "\n".join(parts[name]).encode("utf-8", "surrogateescape")
    parts[name] = damaged(data, chance).decode("utf-8", "surrogateescape").split("\n")


DAMAGE: tuple[Callable[[Parts, random.Random], None], ...] = (
    drop_paths, repeat_path, change_paths, change_paths, change_condition_constant, change_output_constant,
    change_operator, change_trace, change_trace, swap_traces, claim, any_bytes,
)  # fmt: skip


def counted(parts: Parts) -> None:
    """Let the manifest tell the truth about the numbers, so that readers go on to what is wrong."""
    try:
        manifest = json.loads("\n".join(parts[files.MANIFEST]))
        paths = [json.loads(line) for line in parts[files.PATHS]]
        crashes = {n for n, line in enumerate(parts[files.TRACES]) if '"crash"' in line}
        manifest["counts"] |= {
            "paths": len(paths),
            "outputs": len(parts[files.TRACES]),
            "crashes": sum(path["trace"] in crashes for path in paths),
            "conditions": sum(line.startswith("(define-fun c") for line in parts[files.TERMS]),
        }
        parts[files.MANIFEST] = json.dumps(manifest).splitlines()
    except (ValueError, KeyError, TypeError):
        pass  # damaged beyond counting


# ---------------------------------------------------------------------------------------------- cases


class TooLong(Exception):
    """A case did not end in time."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def case(number: int, place: Path, bundles: dict[tuple[str, str], Parts]) -> int:
    """The exit status of one crosscheck. Anything but a status goes through as the exception that it is."""
    chance = random.Random(number)
    scenario = chance.choice(SCENARIOS)
    folders = []
    for side, agent in enumerate(chance.choice((AGENTS, AGENTS[::-1], AGENTS[:1] * 2, AGENTS[1:] * 2))):
        parts = {name: list(lines) for name, lines in bundles[scenario, agent].items()}
        if side == 0 or chance.random() < 0.3:
            chosen = chance.choices(DAMAGE, k=chance.choice((1, 1, 2, 3)))
            # The others need something that can be read to work on.
            for damage in sorted(chosen, key=lambda damage: damage is any_bytes):
                if damage is not any_bytes or damage is chosen[-1]:
                    damage(parts, chance)
            counted(parts)
        folder = place / f"{side}"
        folder.mkdir(exist_ok=True)
        for name, lines in parts.items():
            data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
            (folder / name).write_bytes(data)
        folders.append(str(folder))
    written = ["-o", str(place / "findings")] if number % REPORTS == 0 else []
    try:
        with limited(MOST_SECONDS):
            result = CliRunner().invoke(soft, ["crosscheck", *folders, *written], catch_exceptions=False)
    except SoftError:
        return 2  # what the command says as one sentence
    finally:
        if written:
            shutil.rmtree(place / "findings", ignore_errors=True)
    if result.exit_code not in (0, 1, 2, 3) or "Traceback" in result.output:
        raise AssertionError(f"status {result.exit_code}: {result.output[-2000:]}")
    return result.exit_code


def run(numbers: range) -> Counter[int]:
    """How often each status came. Raises AssertionError with the number of the first case that went wrong."""
    bundles, statuses = originals(), Counter[int]()
    with tempfile.TemporaryDirectory() as place:
        for number in numbers:
            try:
                statuses[case(number, Path(place), bundles)] += 1
            except Exception as error:
                raise AssertionError(f"case {number}: {error!r}") from error
    return statuses


def main(arguments: list[str]) -> None:
    first = int(arguments[1]) if len(arguments) > 1 else 0
    last = first + int(arguments[0])
    total: Counter[int] = Counter()
    for start in range(first, last, 1000):
        total += run(range(start, min(start + 1000, last)))
        print(f"{min(start + 1000, last) - first:,} cases: {dict(sorted(total.items()))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
