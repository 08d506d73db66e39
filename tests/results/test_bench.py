from __future__ import annotations

from results.bench import names, objects, page, summary, tables


def test_objects_may_span_lines_or_share_one() -> None:
    assert list(objects('{"a": 1}\n{\n "b": {"c": 2}\n} {"d": 3}\n')) == [{"a": 1}, {"b": {"c": 2}}, {"d": 3}]
    assert list(objects("")) == []


def test_measures_of_the_same_keys_are_one_table() -> None:
    lines = list(tables([{"x": 1, "y": {"z": 2}}, {"x": 3, "y": {"z": 4}}, {"other": 5}]))
    assert lines[:4] == ["| x | y.z |", "| --- | ---: |", "| 1 | 2 |", "| 3 | 4 |"]
    assert "| other |" in lines


def test_a_list_of_measures_is_a_table_of_its_own() -> None:
    lines = list(tables([{"growth": [{"paths": 10, "seconds": 1}, {"paths": 100, "seconds": 10}]}]))
    assert lines[:1] == ["growth:"]
    assert "| 100 | 10 |" in lines


def test_every_benchmark_says_what_it_measures() -> None:
    assert "bench_cli" in names()
    for name in names():
        assert len(summary(name)) > 20, name


def test_a_failure_stands_on_the_page() -> None:
    form = {"arguments": ["--x"], "seconds": 1.0, "failed": "ended with status 1", "measures": []}
    text = "\n".join(page({"bench_cli": [form]}))
    assert "`python -m tests.benchmarks.bench_cli --x`, 1.0 s" in text
    assert "**failed**: ended with status 1" in text
