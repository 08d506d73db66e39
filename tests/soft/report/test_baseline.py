"""What is new, gone, still there, and what nobody looked at."""

from __future__ import annotations

import msgspec

from soft.crosscheck.model import Doubt
from soft.report.baseline import compare, document
from tests.soft.report import example


def test_a_crosscheck_against_itself_has_nothing_new() -> None:
    findings = example.findings()
    changes = compare(findings, findings)
    assert (changes.new, changes.gone, changes.not_compared) == ((), (), ())
    assert changes.still == findings.findings


def test_new_and_gone_are_each_others_mirror() -> None:
    few, more = example.many(2), example.many(5)
    assert [f.id for f in compare(few, more).new] == [f.id for f in compare(more, few).gone]
    assert len(compare(few, more).new) == 3


def test_a_scenario_that_was_not_compared_again_is_not_gone() -> None:
    old = example.findings()
    record = msgspec.structs.replace(old.scenarios[0], digest="0" * 64)
    new = msgspec.structs.replace(old, scenarios=(record,), findings=(), clusters=(), comparisons=())
    changes = compare(old, new)
    assert changes.gone == ()
    assert changes.not_compared == old.findings
    assert "4 not compared" in changes.sentence


def test_what_is_gone_where_something_was_not_explored_is_doubtful() -> None:
    maker = example.Maker()
    new = maker.done(doubts=(Doubt("unexplored", "left", "left was not explored completely."),))
    assert compare(example.findings(), new).doubtful == ("tiny",)


def test_the_document_names_every_finding_with_its_heading() -> None:
    few, more = example.many(1), example.many(2)
    shown = document(compare(few, more), more)
    assert [entry["id"] for entry in shown["new"]] == [more.findings[1].id]
    assert shown["new"][0]["heading"] == more.clusters[0].heading
