"""One finding as HTML: behaviours, region, traces side by side, the picture, the example, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from soft.crosscheck.model import EventRecord, Finding, Findings
from soft.crosscheck.words import relation_texts
from soft.report.align import Row, differing, payload, rows
from soft.report.files import finding_files
from soft.report.hexdump import WIDTH, dump, printable, runs
from soft.report.markup import Html, safe, tag
from soft.report.picture import Pictures
from soft.report.scenes import Scene, deciding_fields, free_fields, run_command, step_words
from soft.report.svg import COLOURS, behaviours, svg, swatch
from soft.report.text import confirmation, region_claim

CONFIRMATIONS = {
    "confirmed": "The live agents did what was predicted.",
    "not reproduced": "The live agents did something else than predicted.",
    "flaky": "The live agents did not always do the same.",
    "not replayed": "Nobody has sent the example to the live agents yet: soft replay does.",
}


def finding_html(
    findings: Findings, finding: Finding, pictures: Pictures, scene: Scene, change: str | None, sure: bool
) -> Html:
    """A finding that opens and closes. `sure`: where there is no finding, the agents are proved to agree."""
    status = confirmation(finding)
    labels = [agent.label for agent in findings.agents]
    return tag(
        "details",
        tag(
            "summary",
            tag("span", finding.region.text.removesuffix("; everything else free"), class_="region"),
            tag(
                "span",
                badge(change, f"change {change.split()[0]}") if change is not None else None,
                badge(status, f"conf {status.replace(' ', '-')}", CONFIRMATIONS[status]),
                tag(
                    "a",
                    f"#{finding.id}",
                    class_="link",
                    href=f"#finding-{finding.id}",
                    aria_label="Link to this finding",
                ),
                class_="badges",
            ),
        ),
        tag(
            "div",
            _behaviours(finding, labels),
            _region(finding, scene),
            _traces(finding, scene, labels),
            _picture(finding, pictures, scene, sure),
            _example(finding, scene),
            _repeat(finding, scene, labels),
            class_="body",
        ),
        class_="finding",
        id=f"finding-{finding.id}",
        data_scenario=finding.scenario,
        data_severity=finding.severity,
        data_agents=" ".join(str(labels.index(label)) for label in finding.agents),
        data_confirmation=status,
        data_change=change,
    )


def badge(text: str, kind: str, title: str | None = None) -> Html:
    return tag("span", text, class_=f"badge {kind}", title=title)


def agent_name(label: str, labels: Sequence[str]) -> Html:
    return tag("b", label, class_=f"agent a{labels.index(label) % 6}")


def _part(title: str, *children: Html | None) -> Html:
    return tag("section", tag("h4", title), *children)


# ---------------------------------------------------------------------------------------------- words


def _behaviours(finding: Finding, labels: Sequence[str]) -> Html:
    both = [
        tag(
            "div",
            agent_name(b.agent, labels),
            tag("p", b.summary),
            tag("p", f"marks: {', '.join(b.marks)}", class_="note") if b.marks else None,
            class_=f"card a{labels.index(b.agent) % 6}",
        )
        for b in (*finding.behaviours, *finding.others)
    ]
    return tag("div", both, class_="columns")


def _region(finding: Finding, scene: Scene) -> Html:
    deciding = deciding_fields(finding)
    lines = [
        tag(
            "li",
            tag("code", field.text),
            tag("span", "decides", class_="note") if field.field in deciding else None,
        )
        for field in finding.region.fields
    ]
    lines += [tag("li", tag("code", text)) for text in relation_texts(finding.region.relations)]
    free = free_fields(finding)
    return _part(
        "On which inputs",
        tag("ul", lines, class_="fields") if lines else tag("p", "On every input."),
        tag("p", tag("span", "Do not matter: ", class_="note"), _codes(free)) if free else None,
        tag("p", region_claim(finding), class_="note"),
        tag("p", *finding.confirmation.words, class_="note")
        if finding.confirmation is not None and finding.confirmation.words
        else None,
    )


def _codes(names: Sequence[str]) -> Html:
    return safe([part for name in names for part in (tag("code", name), Html(" "))])


# ---------------------------------------------------------------------------------------------- traces


def _traces(finding: Finding, scene: Scene, labels: Sequence[str]) -> Html:
    aligned = rows(finding)
    names = [agent_name(label, labels) for label in finding.agents]
    parts: list[Html] = [tag("div", names, class_="columns head")]
    for number, step in enumerate(finding.example.steps):
        parts.append(tag("p", tag("b", step.id), " ", step_words(scene, step)[0], class_="step"))
        mine = [row for row in aligned if row.step == number]
        parts += [_row(row, names) for row in mine]
        if not mine:
            parts.append(tag("p", "Neither agent sends anything.", class_="note same"))
    return _part("What the agents do with the example", *parts)


def _row(row: Row, names: Sequence[Html]) -> Html:
    if row.equal and row.left is not None:
        title = tag("summary", "the same on both sides: ", _title(row.left))
        return tag("details", title, _decoded(row.left, None), _hex(payload(row.left)), class_="same")
    a, b = payload(row.left), payload(row.right)
    marks = (differing(a, b), differing(b, a)) if row.comparable else (frozenset[int](), frozenset[int]())
    return tag(
        "div",
        _event(names[0], row.left, row.right if row.comparable else None, marks[0]),
        _event(names[1], row.right, row.left if row.comparable else None, marks[1]),
        class_="columns",
    )


def _event(name: Html, event: EventRecord | None, other: EventRecord | None, marked: Set[int]) -> Html:
    who = tag("span", name, class_="who")
    if event is None:
        return tag("div", who, tag("p", "nothing", class_="note"), class_="event nothing")
    return tag(
        "div",
        who,
        tag("p", _title(event), class_="title"),
        _hex(payload(event), marked),
        _decoded(event, other),
        class_=f"event {event.kind}",
    )


def _title(event: EventRecord) -> str:
    first = event.words[0] if event.words else event.kind
    return f"port {event.port}: {first}" if event.port is not None else first


def _decoded(event: EventRecord, other: EventRecord | None) -> Html | None:
    """The fields of a message; those that the other agent's does not have are marked."""
    lines = event.words[1:]
    if not lines:
        return None
    theirs = set(other.words) if other is not None else set(lines)
    return tag(
        "ul", [tag("li", line.strip(), class_=None if line in theirs else "diff") for line in lines], class_="decoded"
    )


def _hex(data: bytes, marked: Set[int] = frozenset(), kind: str | None = None) -> Html | None:
    if not data:
        return None
    return tag("pre", _hex_lines(data, marked, kind), class_="hex", tabindex=0 if len(data) > WIDTH * 32 else None)


def _hex_lines(data: bytes, marked: Set[int], kind: str | None) -> Iterator[Html]:
    for line in dump(data, marked):
        if line.left_out:
            yield tag("i", f"      … {line.left_out} rows left out …\n")
            continue
        yield tag("i", f"{line.offset:04x}  ")
        width = 0
        text: list[Html] = []
        for run, mark in runs(line.cells):
            shown = run.hex(" ")
            width += len(shown) + 1
            yield tag("mark", shown, class_=kind) if mark else safe(shown)
            yield Html(" ")
            text.append(tag("mark", printable(run), class_=kind) if mark else safe(printable(run)))
        yield safe([Html(" " * (3 * WIDTH + 1 - width)), tag("s", text), Html("\n")])


# ---------------------------------------------------------------------------------------------- picture


def _picture(finding: Finding, pictures: Pictures, scene: Scene, sure: bool) -> Html | None:
    made = pictures.picture(finding)
    if made is None:
        return None
    axes = {made.x.part.field} | ({made.y.part.field} if made.y is not None else set())
    rest = [name for name in finding.example.values if name in deciding_fields(finding) - axes]
    legend = [
        tag("li", swatch(f"b{place % COLOURS}"), summary)
        for place, summary in enumerate(behaviours(made)[: 2 * COLOURS])
    ]
    legend.append(tag("li", swatch("none"), "both do the same" if sure else "no difference found"))
    legend.append(tag("li", swatch("this"), "this finding"))
    if any(other.id != finding.id for other in made.findings):
        legend.append(tag("li", swatch("that"), "other findings of these two agents"))
    note = "The dot is the example."
    if rest:
        note += f" A slice: {', '.join(f'{name} = {scene.show(name, finding.example.values[name])}' for name in rest)}"
        note += " as in the example."
    if made.left_out:
        note += f" {made.left_out} more findings of these agents are not drawn."
    return _part(
        "The input space", svg(made, finding), tag("ul", legend, class_="legend"), tag("p", note, class_="note")
    )


# ---------------------------------------------------------------------------------------------- the example


def _example(finding: Finding, scene: Scene) -> Html:
    values, deciding = finding.example.values, deciding_fields(finding)
    table = [
        tag(
            "tr",
            tag("td", tag("code", name)),
            tag("td", tag("code", scene.show(name, value))),
            tag("td", "decides" if name in deciding else "default" if scene.is_default(name, value) else ""),
            class_="decides" if name in deciding else None,
        )
        for name, value in values.items()
    ]
    head = tag("tr", tag("th", "field", scope="col"), tag("th", "value", scope="col"), tag("th", "", scope="col"))
    marked: dict[int, set[int]] = {}
    for field in deciding:
        for number, places in scene.places(field, finding.example).items():
            marked.setdefault(number, set()).update(places)
    steps = []
    for number, step in enumerate(finding.example.steps):
        first, *more = step_words(scene, step)
        steps.append(tag("p", tag("b", step.id), " ", first, class_="step"))
        if step.kind != "wait":
            steps.append(_hex(bytes.fromhex(step.hex), marked.get(number, set()), "field") or Html(""))
        if more:
            steps.append(
                tag(
                    "details",
                    tag("summary", "decoded"),
                    tag("ul", [tag("li", line.strip()) for line in more], class_="decoded"),
                    class_="same",
                )
            )
    legend = tag("p", tag("mark", "marked", class_="field"), " bytes hold the fields that decide.", class_="note")
    return _part(
        "Example input",
        tag(
            "div",
            tag("div", tag("table", tag("thead", head), tag("tbody", table), class_="values"), class_="scroll"),
            tag("div", steps, legend if any(marked.values()) else None),
            class_="columns",
        ),
    )


def _repeat(finding: Finding, scene: Scene, labels: Sequence[str]) -> Html:
    commands = [
        tag(
            "div",
            tag("code", run_command(scene, behaviour.agent, finding.example)),
            tag("button", "copy", type="button", class_="copy"),
            class_="command",
        )
        for behaviour in finding.behaviours
    ]
    files = [tag("li", tag("a", words, href=name)) for name, words in finding_files(finding).items()]
    return _part("Repeat it", *commands, tag("ul", files, class_="files"))
