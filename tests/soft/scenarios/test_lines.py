"""Where a key stands in a TOML text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.scenarios.lines import Path, line_of

TEXT = '''\
name = "x" # step = 1
summary = """two
lines"""

[[step]]
send = "flow_mod"
"quoted" = 1
match = { in_port = 1, wildcards = { in_port = 0 } }
actions = [
    { type = "output", port = "a]b" }, # ]
    { type = 1, 'body' = "00", parts = [1,
      2] },
]

[[step]]
probe = 1
[step.packet]
kind = "tcp"
dl.src.in = [
  1,
  2,
]

[[step]]
[[step.actions]]
type = 1
[[step.actions]]
type = 2
when = 1979-05-27 07:32:00
pi = 3.14
deep = [[1], [[
2]]]
last = \'\'\'it's''\'\'\'
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("summary",), 2),
        (("step",), 5),
        (("step", 0), 5),
        (("step", 0, "send"), 6),
        (("step", 0, "quoted"), 7),
        (("step", 0, "match", "wildcards", "in_port"), 8),
        (("step", 0, "actions", 0, "port"), 10),
        (("step", 0, "actions", 1, "type"), 11),
        (("step", 0, "actions", 1, "body"), 11),
        (("step", 0, "actions", 1, "parts", 1), 12),
        (("step", 1), 15),
        (("step", 1, "packet", "kind"), 18),
        (("step", 1, "packet", "dl", "src"), 19),
        (("step", 1, "packet", "dl", "src", "in", 1), 21),
        (("step", 2, "actions", 0, "type"), 26),
        (("step", 2, "actions", 1, "type"), 28),
        (("step", 2, "actions", 1, "when"), 29),
        (("step", 2, "actions", 1, "pi"), 30),
        (("step", 2, "actions", 1, "deep", 1, 0, 0), 32),
        (("step", 2, "actions", 1, "last"), 33),
        (("step", 2, "actions", 1, "missing", "thing"), 27),
        (("elsewhere",), 1),
        ((), 1),
    ],
)
def test_lines(path: Path, line: int) -> None:
    assert line_of(TEXT, path) == line


def test_a_text_that_is_not_toml_gives_some_line() -> None:
    assert line_of("[[", ("x",)) == 1
    assert line_of("a = [" * 50_000, ("a",)) == 1


def paths_of(value: object, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths_of(inner, (*path, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths_of(inner, (*path, index))


def test_every_key_that_tomllib_sees_is_found() -> None:
    from soft.scenarios.lines import _Scanner

    assert set(paths_of(tomllib.loads(TEXT))) == set(_Scanner(TEXT).scan())


@given(st.text(alphabet="[]{}=,.\"'#\n ab1", max_size=60))
def test_scanning_never_fails(text: str) -> None:
    assert 1 <= line_of(text, ("a", "b", 0)) <= text.count("\n") + 1
