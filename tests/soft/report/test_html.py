"""The page, as text and in a real browser."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from soft.crosscheck.model import Findings
from soft.report.baseline import compare
from soft.report.html import page
from soft.report.scenes import scenes
from tests.soft.report import example
from tests.soft.report.browser import DARK, LIGHT, open_page, screenshot

EXERCISE = Path(__file__).with_name("exercise.js")


def made(findings: Findings) -> str:
    return page(findings, scenes(findings))


class Elements(HTMLParser):
    """Every element of a page with its attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def exercised(text: str) -> str:
    """The page with the exercise behind its own script, which its policy allows like that."""
    script = EXERCISE.read_text()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    return text.replace("</body>", f"<script>{script}</script></body>")


# ---------------------------------------------------------------------------------------------- in the browser


def test_a_person_can_filter_link_and_use_the_keyboard(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(exercised(made(example.findings())))
    seen = open_page(file)
    result = re.search(r'data-exercise="([^"]*)"', seen.document)
    assert result is not None, seen.console
    assert re.fullmatch(r"\d+ checks", result[1]), result[1]
    assert seen.console == ()


def test_console_errors_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "wrong.html"
    file.write_text("<!doctype html><script>throw new Error('seen')</script>")
    assert any("seen" in line for line in open_page(file).console)


@pytest.mark.parametrize(("flag", "is_dark"), [(LIGHT, False), (DARK, True)])
def test_the_page_is_not_blank_and_follows_the_system_colours(tmp_path: Path, flag: str, is_dark: bool) -> None:
    file = tmp_path / "report.html"
    file.write_text(made(example.findings()))
    rows = screenshot(file, flag)
    assert len(set(rows)) > len(rows) // 3
    colours = {row[i : i + 3] for row in rows[::3] for i in range(0, len(row), 3)}
    assert len(colours) > 50
    ground = rows[2][:3]
    assert (sum(ground) < 3 * 64) == is_dark


def test_hostile_texts_stay_texts_in_the_browser(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    findings = example.hostile()
    file.write_text(page(findings, scenes(findings), compare(findings, findings)))
    finding = findings.findings[0]
    seen = open_page(file, fragment=f"#{finding.id}")
    assert seen.console == ()
    assert re.search(rf'<details[^>]*id="finding-{finding.id}"[^>]* open', seen.document)


# ---------------------------------------------------------------------------------------------- as text


def test_hostile_texts_are_escaped() -> None:
    elements = Elements(made(example.hostile()))
    assert [name for name, _ in elements.elements].count("script") == 1
    assert "img" not in {name for name, _ in elements.elements}
    assert not any(key.startswith("on") for _, attributes in elements.elements for key in attributes)
    assert elements.text.count("<script>alert(1)</script>") >= 10
    assert "{{body}}" in elements.text


def test_nothing_is_fetched_and_only_our_script_may_run() -> None:
    text = made(example.findings())
    elements = Elements(text)
    policy = next(a["content"] for name, a in elements.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for name, attributes in elements.elements:
        for key in ("src", "href", "action", "xlink:href", "srcset"):
            value = attributes.get(key) or ""
            assert not re.match(r"(?i)\s*(https?:|//|javascript:)", value), (name, value)
        assert "style" not in attributes
    assert "url(http" not in text
    assert "@import" not in text


def test_a_hundred_findings_stay_below_five_megabytes() -> None:
    text = made(example.many(100))
    assert text.count('class="finding"') == 100
    assert len(text.encode()) < 5_000_000


def test_what_a_reader_needs_is_there() -> None:
    findings = example.findings()
    text = Elements(made(findings)).text
    assert "left and right differ in 4 ways" in text
    for cluster in findings.clusters:
        assert cluster.heading in text
    assert "soft run left --test scenarios/tiny.toml --set m0.actions.1.port=controller" in text
    for words in ("confirmed", "flaky", "not reproduced", "not replayed", "What is not proved"):
        assert words in text


def test_clusters_keep_their_order_and_findings_can_be_linked() -> None:
    findings = example.findings()
    elements = Elements(made(findings)).elements
    ids = [attributes.get("id") or "" for _, attributes in elements]
    assert [id for id in ids if id.startswith("cluster-")] == [f"cluster-{c.id}" for c in findings.clusters]
    assert len(ids) - ids.count("") == len(set(ids) - {""})
    links = {attributes["href"] for name, attributes in elements if name == "a"}
    assert {f"#finding-{finding.id}" for finding in findings.findings} <= links


def test_differing_bytes_are_marked_on_both_sides() -> None:
    text = made(example.findings())
    assert re.search(r"00 02 00</?[^>]*> ?<mark>04</mark>|00 02 00 <mark>04</mark>", text)
    assert re.search(r"00 02 00 <mark>05</mark>", text)


def test_the_baseline_marks_what_is_new() -> None:
    findings = example.findings()
    old = msgspec.structs.replace(
        findings,
        findings=findings.findings[1:],
        clusters=findings.clusters[1:],
        comparisons=(msgspec.structs.replace(findings.comparisons[0], findings=("0000f0000002",)),),
    )
    text = page(findings, scenes(findings), compare(old, findings))
    assert text.count('data-change="new"') == 1
    assert text.count('data-change="still there"') == 3
    assert "1 new, 0 gone, 3 still there" in text
    assert "data-change" not in made(findings).partition("<body>")[2].partition("<script>")[0]


def test_agreement_has_no_filters_and_says_that_it_is_proved() -> None:
    text = Elements(made(example.Maker().done()))
    assert "left and right agree on every input" in text.text
    assert "filters" not in {attributes.get("id") for _, attributes in text.elements}


def test_a_scenario_that_cannot_be_read_makes_a_plainer_page() -> None:
    findings = example.findings()
    record = msgspec.structs.replace(findings.scenarios[0], text="not\na scenario")
    text = made(msgspec.structs.replace(findings, scenarios=(record,)))
    assert text.count('class="finding"') == 4
    assert 'class="space"' not in text
