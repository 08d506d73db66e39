"""Waits are moved away from the moments that decide."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from soft.replay.timing import edges, playable, safe_values, waiting_seconds, waits
from soft.scenarios.loader import parse
from soft.solve import terms as t
from tests.soft.crosscheck.agents import SILENT, If, bundle, error, scenario

WAITING = """\
name = "waiting"
summary = "A wait of up to ten seconds between two fixed ones"
[[step]]
wait = 100
[[step]]
wait = "symbolic"
range_ms = [0, 10000]
[[step]]
send = "hello"
"""
SCENE = parse(WAITING, "waiting.toml")
WAIT = t.var("w1.ms", 32)


def within(low: int, high: int) -> t.Term:
    return t.conj(t.ule(t.const(low, 32), WAIT), t.ule(WAIT, t.const(high, 32)))


def safe(value: int, low: int, high: int) -> int | None:
    def holds(values: Mapping[str, int]) -> bool:
        return low <= values["w1.ms"] <= high

    found = safe_values(SCENE, {"w1.ms": value}, holds)
    return None if found is None else found["w1.ms"]


def test_what_waits() -> None:
    assert waits(SCENE)
    assert not waits(scenario())
    assert waiting_seconds(SCENE, {"w1.ms": 2500}) == 2.6


@pytest.mark.parametrize(
    ("value", "low", "high", "moved"),
    [
        (500, 0, 10_000, 500),  # far from everything
        (0, 0, 10_000, 0),  # the ends of the domain are not moments at which anything changes
        (10_000, 0, 10_000, 10_000),
        (1000, 1000, 9000, 1020),  # time runs late, never early
        (9000, 1000, 9000, 8850),
        (999, 0, 999, 849),
        (1001, 1001, 10_000, 1021),
        (1100, 1000, 1170, 1020),
        (1100, 1000, 1169, None),  # 170 ms are too short
        (1000, 1000, 1000, None),
    ],
)
def test_a_wait_is_moved_as_little_as_is_safe(value: int, low: int, high: int, moved: int | None) -> None:
    assert safe(value, low, high) == moved


def test_an_example_stays_on_its_path() -> None:
    made = bundle(If(within(0, 999), SILENT, If(within(1000, 1019), error(1, 1), error(1, 2))), "waiting", SCENE)
    early, short, late = (playable(made, path) for path in made.paths)
    assert early is not None and early["w1.ms"] <= 849  # noqa: PT018
    assert short is None
    assert late is not None and late["w1.ms"] >= 1040  # noqa: PT018


def test_the_two_sides_of_where_something_begins_and_ends() -> None:
    found = list(edges(SCENE, {"w1.ms": 1500}, lambda values: 1000 <= values["w1.ms"] <= 1999))
    assert [(edge.inside["w1.ms"], edge.outside["w1.ms"]) for edge in found] == [(1000, 999), (1999, 2000)]


def test_the_ends_of_the_domain_have_one_side() -> None:
    found = list(edges(SCENE, {"w1.ms": 1500}, lambda values: values["w1.ms"] >= 1000))
    assert [(edge.inside["w1.ms"], edge.outside["w1.ms"]) for edge in found] == [(1000, 999)]
