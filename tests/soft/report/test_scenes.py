"""What a report knows about scenarios, also of those that it cannot read."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from soft.crosscheck.model import ScenarioRecord
from soft.report.scenes import free_fields, run_command, scenes, slug, step_words
from soft.scenarios import loader
from tests.soft.report import example
from tests.soft.report.example import BODY, BUFFER, PORT


def test_a_scenario_of_the_catalogue_is_called_by_its_name() -> None:
    findings = example.findings()
    known = loader.load("packet_out")
    record = ScenarioRecord("packet_out", known.digest, known.summary, "1.0", known.text)
    both = scenes(msgspec.structs.replace(findings, scenarios=(record, *findings.scenarios)))
    assert (both["packet_out"].test, both["packet_out"].file) == ("packet_out", None)
    assert (both["tiny"].test, both["tiny"].file) == ("scenarios/tiny.toml", "scenarios/tiny.toml")


def test_another_version_of_a_known_scenario_is_a_file() -> None:
    findings = example.findings()
    record = msgspec.structs.replace(findings.scenarios[0], name="packet_out")
    scene = scenes(msgspec.structs.replace(findings, scenarios=(record,)))["packet_out"]
    assert scene.test == "scenarios/packet_out.toml"


def test_the_command_repeats_the_example() -> None:
    findings = example.findings()
    scene, finding = scenes(findings)["tiny"], findings.findings[2]
    words = shlex.split(run_command(scene, "a b; $(id)", finding.example))
    assert words[:5] == ["soft", "run", "a b; $(id)", "--test", "scenarios/tiny.toml"]
    scenario = example.scenario()
    assert scenario.complete(scenario.parse_values(words[6::2])) == finding.example.values


def test_the_bytes_of_a_field_are_found() -> None:
    findings = example.findings()
    scene, example_ = scenes(findings)["tiny"], findings.findings[0].example
    assert scene.places(BUFFER, example_)[0] == frozenset(range(8, 12))
    assert scene.places(PORT, example_)[0] == frozenset({28, 29})
    assert scene.places(BUFFER, example_)[1] == frozenset()
    assert scene.places("m9.nothing", example_) == {}
    broken = msgspec.structs.replace(example_, values={**example_.values, BUFFER: 1 << 40})
    assert scene.places(PORT, broken) == {}


def test_values_are_shown_as_people_write_them_or_at_least_as_numbers() -> None:
    findings = example.findings()
    scene = scenes(findings)["tiny"]
    assert scene.show(PORT, 0xFFFD) == "controller"
    assert scene.show(PORT, 1 << 20) == "0x100000"
    record = msgspec.structs.replace(findings.scenarios[0], text="no\nTOML [")
    unread = scenes(msgspec.structs.replace(findings, scenarios=(record,)))["tiny"]
    assert unread.scenario is None
    assert unread.show(PORT, 0xFFFD) == "0xfffd"
    assert unread.places(PORT, findings.findings[0].example) == {}


def test_fields_that_do_not_matter() -> None:
    finding = example.findings().findings[1]
    assert free_fields(finding) == ("m0.actions.0.type", "m0.actions.0.body", "m0.actions.1.max_len")


def test_parts_of_fields_have_names() -> None:
    scene = scenes(example.findings())["tiny"]
    part = scene.part_named(f"{BODY}[31:16]")
    assert part is not None
    assert (part.low, part.bits, part.name) == (16, 16, f"{BODY}[31:16]")
    assert part.of({BODY: 0x1234_5678}) == 0x1234
    assert scene.part_named(f"{BODY}[40:16]") is None
    assert scene.part_named(f"{BODY}[16:31]") is None


def test_steps_in_words() -> None:
    findings = example.findings()
    scene = scenes(findings)["tiny"]
    first = [step_words(scene, step)[0] for step in findings.findings[0].example.steps]
    assert [words.split(":")[0] for words in first[:1]] == ["send packet_out"]
    assert first[1].startswith("probe port 1 with TCP")
    assert first[2] == "wait 20 ms"


@pytest.mark.parametrize(("text", "name"), [("a/../b", "a-b"), ("", "x"), ("Ünï", "n"), ("x" * 99, "x" * 40)])
def test_names_of_files_are_plain(text: str, name: str) -> None:
    assert slug(text) == name
