"""`soft crosscheck` as a user sees it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from soft.bundle.writer import BundleWriter
from soft.cli import soft
from soft.crosscheck.model import Confirmation, Findings, read_findings
from soft.errors import SoftError
from soft.solve import terms as t
from tests.soft.bundle import example
from tests.soft.crosscheck.agents import PORT, SCENARIO, SILENT, If, Tree, bundle, error, number, scenario

STRICT = If(t.ult(number(5), PORT), error(2, 4), SILENT)


def write(directory: Path, tree: Tree, label: str, text: str = SCENARIO, *, complete: bool = True) -> Path:
    scene = scenario(text)
    made = bundle(tree, label, scene)
    writer = BundleWriter(directory, scene, label)
    for path in made.paths[: None if complete else -1]:
        writer.add_path(made.terms_of(path), made.traces[path.trace], path.witness)
    writer.finish(complete, () if complete else ("The time limit was reached.",), {})
    return directory


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lab")
    other = SCENARIO.replace('"tiny"', '"other"').replace("range = [0, 7] }, max_len", "range = [0, 6] }, max_len")
    write(place / "lax" / "tiny", SILENT, "lax")
    write(place / "strict" / "tiny", STRICT, "strict")
    write(place / "part" / "tiny", STRICT, "part", complete=False)
    write(place / "lax" / "other", SILENT, "lax", other)
    write(place / "strict" / "other", SILENT, "strict", other)
    return place


def run(*arguments: object) -> Result:
    return CliRunner().invoke(soft, ["crosscheck", *map(str, arguments)], catch_exceptions=False)


def test_differences_are_one_line_a_cluster(lab: Path) -> None:
    result = run(lab / "lax" / "tiny", lab / "strict" / "tiny")
    assert result.exit_code == 1
    first, blank, last = result.stdout.splitlines()
    assert first == (
        "lost error: packet_out with actions.0.port ≥ 6: lax is silent, "
        "strict answers with the error bad_action/bad_out_port"
    )
    assert not blank
    assert last.startswith("tiny: lax and strict differ in 1 way (1 finding, ")


def test_agreement_is_status_0(lab: Path) -> None:
    result = run(lab / "lax" / "other", lab / "strict" / "other")
    assert result.exit_code == 0
    assert "other: lax and strict agree on every input, proved (" in result.stdout


def test_what_was_not_explored_is_status_3(lab: Path) -> None:
    result = run(lab / "part" / "tiny", lab / "part" / "tiny")
    assert result.exit_code == 3
    assert "no difference found, but not every input was compared" in result.stdout
    assert "  part was not explored completely. The time limit was reached.\n  for example " in result.stdout


def test_json_is_one_object(lab: Path) -> None:
    result = run(lab / "lax" / "tiny", lab / "strict" / "tiny", "--json")
    summary = json.loads(result.stdout)
    assert list(summary) == ["verdict", "findings", "clusters", "unknown", "seconds", "queries"]
    assert (summary["verdict"], summary["findings"], summary["unknown"]) == ("differ", 1, [])
    assert summary["clusters"][0]["fields"] == ["m0.actions.0.port"]
    unknown = json.loads(run(lab / "part" / "tiny", lab / "part" / "tiny", "--json").stdout)
    assert unknown["unknown"][0]["kind"] == "unexplored"
    assert unknown["unknown"][0]["example"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders_compare_scenario_by_scenario(lab: Path, tmp_path: Path, jobs: int) -> None:
    out = tmp_path / "findings"
    assert run(lab / "lax", lab / "strict", "-o", out, "--jobs", jobs).exit_code == 1
    found = read_findings(out)
    assert [(c.scenario, c.verdict) for c in found.comparisons] == [("other", "agree"), ("tiny", "differ")]
    for finding in found.findings:
        assert (out / finding.conditions).read_text().startswith("; tiny, finding ")
    assert "lax is silent" in (out / "report.html").read_text()
    assert (out / "junit.xml").exists()


def test_three_agents(lab: Path) -> None:
    result = run(lab / "lax" / "tiny", lab / "strict" / "tiny", lab / "lax" / "tiny", "--solver", "z3")
    assert result.exit_code == 1
    assert "odd one out: strict)" in result.stdout
    assert "lax and lax (2) agree" in result.stdout


def test_findings_are_confirmed_in_one_go(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(found: Findings, agents: dict[str, object]) -> Findings:
        asked.extend(agents)
        seen = [msgspec.structs.replace(f, confirmation=Confirmation("confirmed", 3)) for f in found.findings]
        return msgspec.structs.replace(found, findings=tuple(seen))

    monkeypatch.setattr("soft.replay.confirm.confirm", confirm)
    monkeypatch.setattr("soft.launch.find.find", lambda binary: binary)
    live = [word for label in ("lax", "strict") for word in ("--confirm", f"{label}=builds/{label}")]
    result = run(lab / "lax" / "tiny", lab / "strict" / "tiny", "-o", tmp_path / "findings", *live)
    assert asked == ["lax", "strict"]
    assert "bad_action/bad_out_port (confirmed)" in result.stdout
    (finding,) = read_findings(tmp_path / "findings").findings
    assert finding.confirmation == Confirmation("confirmed", 3)


def test_nothing_is_written_without_a_folder(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(lab / "lax" / "tiny", lab / "strict" / "tiny")
    assert not list(tmp_path.iterdir())


def test_bad_input_is_a_sentence(lab: Path, tmp_path: Path) -> None:
    tiny = lab / "lax" / "tiny"
    other = example.write(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("two bundles", (tiny,)),
        ("another scenario|different scenarios", (tiny, lab / "lax" / "other")),
        ("another scenario", (tiny, other)),
        ("no such bundle", (tiny, tmp_path / "nothing")),
        ("is no bundle", (tiny, tmp_path / "empty")),
        ("no solver called", (tiny, tiny, "--solver", "oracle")),
        ("above 0", (tiny, tiny, "--timeout", "0")),
        ("--confirm takes LABEL=BINARY", (tiny, tiny, "--confirm", "lax")),
        ("names other, but the bundles are of lax and strict", (tiny, lab / "strict/tiny", "--confirm", "other=x")),
    ]
    for sentence, arguments in cases:
        with pytest.raises(SoftError, match=sentence):
            run(*arguments)
