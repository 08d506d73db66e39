"""Bundles damaged at random: a sentence or a bundle, never a traceback.

SOFT_FUZZ_CASES=100000 runs as many cases as that; by default a few hundred.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from soft.bundle import files
from soft.bundle.check import check
from soft.bundle.export import export_all
from soft.bundle.reader import read, recover
from soft.bundle.show import summary
from soft.bundle.writer import BundleWriter
from soft.errors import SoftError
from tests.soft.bundle.example import agent_runs, scenario, witness, write

CASES = int(os.environ.get("SOFT_FUZZ_CASES", "400"))
NASTY = [
    b"0",
    b"-1",
    b"4294967296",
    b"1e308",
    b"99999999999999999999",
    b"null",
    b"\xff",
    b"\0",
    b"(",
    b")",
    b"t0",
    b"c0",
]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One to three faults: bytes, lines, numbers and words."""
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(8)
        place = chance.randrange(len(data) + 1)
        lines = data.split(b"\n")
        line = chance.randrange(len(lines))
        if kind == 0 and data:
            place = chance.randrange(len(data))
            data = data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
        elif kind == 1:
            data = data[:place]
        elif kind == 2:
            data = data[:place] + chance.choice(NASTY) + data[place + chance.randrange(3) :]
        elif kind == 3:
            del lines[line]
            data = b"\n".join(lines)
        elif kind == 4:
            lines.insert(line, chance.choice(lines))
            data = b"\n".join(lines)
        elif kind == 5:
            other = chance.randrange(len(lines))
            lines[line], lines[other] = lines[other], lines[line]
            data = b"\n".join(lines)
        else:
            pattern = rb"[0-9]+" if kind == 6 else rb"[A-Za-z_][A-Za-z0-9_.]*"
            words = list(re.finditer(pattern, data))
            if words:
                word = chance.choice(words)
                new = chance.choice([chance.choice(NASTY), chance.choice(words).group()])
                data = data[: word.start()] + new + data[word.end() :]
    return data


@pytest.mark.timeout(0)
def test_damage_never_gets_through_as_a_traceback(tmp_path: Path) -> None:
    directory = write(tmp_path / "bundle")
    originals = {name: (directory / name).read_bytes() for name in files.NAMES}
    accepted = 0
    for seed in range(CASES):
        chance = random.Random(seed)
        names = chance.sample(files.NAMES, chance.choice([1, 1, 1, 2]))
        for name in names:
            (directory / name).write_bytes(damaged(originals[name], chance))
        try:
            bundle = read(directory)
            accepted += 1
            # What was accepted must be usable.
            check(bundle)
            list(summary(bundle))
            list(export_all(bundle))
        except SoftError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}, {names}: {error!r}") from error
        for name in names:
            (directory / name).write_bytes(originals[name])
    # Damage in a comment, a label or a number may do no harm; most damage must be seen.
    assert accepted < CASES / 2


@pytest.mark.timeout(0)
def test_damaged_files_of_one_piece(tmp_path: Path) -> None:
    files.pack(write(tmp_path / "bundle"), tmp_path / "whole.soft")
    original = (tmp_path / "whole.soft").read_bytes()
    for seed in range(CASES):
        (tmp_path / "x.soft").write_bytes(damaged(original, random.Random(seed)))
        try:
            read(tmp_path / "x.soft")
        except SoftError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


@pytest.mark.timeout(0)
def test_damaged_journals(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path, scenario(), "example 1.0")
    for conditions, trace in list(agent_runs())[:6]:
        writer.add_path(conditions, trace, witness(conditions))
    writer.close()
    names = (files.START, files.TERMS, files.TRACES, files.PATHS)
    for seed in range(CASES // 4):
        chance = random.Random(seed)
        file = tmp_path / files.JOURNAL / chance.choice(names)
        original = file.read_bytes()
        file.write_bytes(damaged(original, chance))
        try:
            recover(tmp_path)
        except SoftError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}, {file.name}: {error!r}") from error
        finally:
            file.write_bytes(original)
