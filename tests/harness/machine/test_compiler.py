"""Compiled blocks of real binaries against angr's own engine, and their terms against their integers."""

from __future__ import annotations

import collections

import pytest

from harness.machine.ends import Unsupported
from soft.solve.terms import Term
from tests.harness.machine import lab, oracle
from tests.harness.machine.lab import End, Start, assert_consistent, execute


def supported(
    code: bytes, address: int, start: Start, symbolic: float = 0.0, memory_too: bool = True
) -> tuple[End, dict[str, int], list[Term]] | None:
    try:
        return execute(code, address, start, symbolic, memory_too)
    except Unsupported:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_terms_are_worth_what_the_integers_are(seed: int) -> None:
    counts: collections.Counter[str] = collections.Counter()
    for number, (path, address, code) in enumerate(lab.blocks(seed, 100)):
        place = f"{path.name} {address:#x}"
        plain = supported(code, address, Start(1000 * seed + number))
        mixed = supported(code, address, Start(1000 * seed + number), symbolic=0.5)
        counts["blocks"] += 1
        if plain is None or mixed is None:
            counts["unsupported"] += 1
            continue
        counts["with conditions"] += bool(mixed[2])
        assert_consistent(*mixed)
        assert mixed[0].concrete() == plain[0].concrete(), place
    assert counts["unsupported"] < 0.2 * counts["blocks"], counts
    assert counts["with conditions"] > 0.3 * counts["blocks"], counts


@pytest.mark.parametrize("seed", range(100, 102))
def test_blocks_agree_with_angr(seed: int) -> None:
    compared = 0
    for number, (path, address, code) in enumerate(lab.blocks(seed, 60)):
        start = Start(1000 * seed + number)
        ours = supported(code, address, start)
        if ours is None or not isinstance(ours[0].next, int):
            continue  # angr does not go on after system calls and signals as we do
        theirs = oracle.end_of(code, address, start, ours[0])
        compared += 1
        assert theirs == ours[0].concrete(), f"{path.name} {address:#x} from {start.seed}"
    assert compared > 50


def test_symbolic_blocks_agree_with_angr() -> None:
    """For all inputs that take the same way, as the solver proves."""
    compared = 0
    for number, (path, address, code) in enumerate(lab.blocks(300, 40)):
        start = Start(300_000 + number)
        ours = supported(code, address, start, symbolic=0.4, memory_too=False)
        if ours is None or not isinstance(ours[0].next, int):
            continue
        differing = oracle.differing_registers(code, address, start, ours)
        if differing is not None:
            compared += 1
            assert not differing, f"{path.name} {address:#x} from {start.seed}"
    assert compared > 25
