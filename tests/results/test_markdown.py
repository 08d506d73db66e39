from __future__ import annotations

from results.markdown import seconds, table


def test_a_table_sets_numbers_to_the_right() -> None:
    assert table(["name", "paths"], [["a|b", 7], ["c", None]]) == [
        "| name | paths |",
        "| --- | ---: |",
        "| a\\|b | 7 |",
        "| c | – |",
    ]


def test_long_times_are_minutes() -> None:
    assert [seconds(2), seconds(150)] == ["2.0 s", "2.5 m"]
