"""Slices through the input space: every cell must agree with the regions themselves."""

from __future__ import annotations

import itertools

import pytest

from soft.crosscheck.model import FieldSet, Finding, Relation
from soft.report.markup import Html
from soft.report.picture import Picture, Pictures
from soft.report.scenes import Scene, scenes
from soft.report.svg import svg
from tests.soft.report import example
from tests.soft.report.example import BODY, BUFFER, IN_PORT, KIND, MAX_LEN, PORT


def scene() -> Scene:
    return scenes(example.findings())["tiny"]


def drawn(findings: list[Finding], place: int = 0) -> Picture:
    picture = Pictures(findings, scene()).picture(findings[place])
    assert picture is not None
    return picture


def made(*regions: tuple[dict[str, int], list[FieldSet], tuple[Relation, ...]]) -> list[Finding]:
    maker = example.Maker()
    for values, sets, relations in regions:
        maker.add("heading", "content", values, sets, ((), ()), ("does a", "does b"), relations=relations)
    return maker.findings


def check(picture: Picture, finding: Finding, peers: list[Finding]) -> None:
    """The corners of every cell lie in the regions that the cell says."""
    axes = [picture.x] + ([picture.y] if picture.y is not None else [])
    for places in itertools.product(*[range(len(axis.segments)) for axis in axes]):
        cell = picture.cells[places[1] if len(places) > 1 else 0][places[0]]
        lines = {(x, y) for x, y, _ in picture.lines}
        for corner in itertools.product(*[axis.segments[place] for axis, place in zip(axes, places, strict=True)]):
            values = dict(finding.example.values)
            for axis, value in zip(axes, corner, strict=True):
                part = axis.part
                values[part.field] = values[part.field] & ~(part.most << part.low) | value << part.low
            holding = [peer.id for peer in peers if peer.region.holds(values)]
            if tuple(places) in lines and len(set(corner)) == 1:
                continue
            assert holding == ([] if cell is None else [cell.id]), (places, corner)


def drawable(picture: Picture, peers: list[Finding], *not_drawn: int) -> list[Finding]:
    """All findings but those which the picture says it leaves out."""
    assert picture.left_out == len(not_drawn)
    return [finding for place, finding in enumerate(peers) if place not in not_drawn]


def test_two_fields_and_their_neighbours() -> None:
    none = FieldSet(BUFFER, ((0xFFFFFFFF, 0xFFFFFFFF),), "x = none")
    some = FieldSet(BUFFER, ((0, 0xFFFFFFFE),), "x ≠ none")
    findings = made(
        ({BUFFER: 0xFFFFFFFF, PORT: 3}, [none, FieldSet(PORT, ((1, 4),), "y")], ()),
        ({BUFFER: 0xFFFFFFFF, PORT: 9}, [none, FieldSet(PORT, ((0, 0), (5, 24)), "y")], ()),
        ({BUFFER: 1, PORT: 9}, [some, FieldSet(PORT, ((100, 0xFFFF),), "y")], ()),
    )
    for place, finding in enumerate(findings):
        picture = drawn(findings, place)
        assert {picture.x.part.field, picture.y.part.field if picture.y else ""} == {BUFFER, PORT}
        assert {found.id for found in picture.findings} == {found.id for found in findings}
        check(picture, finding, findings)


def test_one_field_is_a_strip() -> None:
    findings = made(({PORT: 3}, [FieldSet(PORT, ((1, 4), (9, 9)), "y")], ()))
    picture = drawn(findings)
    assert picture.y is None
    assert picture.x.labels == ("0", "1 … 4", "5 … 8", "9", "10 … none")
    check(picture, findings[0], findings)


@pytest.mark.parametrize("operator", ["=", "≠"])
def test_related_fields_are_divided_by_a_line(operator: str) -> None:
    relation = Relation(IN_PORT, operator, PORT)  # type: ignore[arg-type]
    values = {IN_PORT: 2, PORT: 2 if operator == "=" else 3}
    findings = made((values, [FieldSet(PORT, ((1, 50),), "y")], (relation,)))
    picture = drawn(findings)
    assert picture.lines
    assert {line[2] is None for line in picture.lines} == {operator == "≠"}
    check(picture, findings[0], findings)


def test_a_relation_to_a_field_off_the_axes_cuts_the_axis() -> None:
    findings = made(
        (
            {IN_PORT: 2, PORT: 3, KIND: 0, MAX_LEN: 7},
            [FieldSet(KIND, ((0, 5),), "k"), FieldSet(MAX_LEN, ((7, 9),), "m"), FieldSet(PORT, ((1, 4),), "y")],
            (Relation(IN_PORT, "≠", PORT),),
        )
    )
    check(drawn(findings), findings[0], findings)


@pytest.mark.parametrize("field", [PORT, IN_PORT])
def test_bounds_that_move_with_another_field_cut_the_axis(field: str) -> None:
    bounds = (Relation(PORT, "≥", IN_PORT, 10, 3), Relation(PORT, "≤", IN_PORT, 10, 8))
    findings = made(({IN_PORT: 4, PORT: 45}, [FieldSet(field, ((2, 60),), "f")], bounds))
    picture = drawn(findings)
    assert picture.y is None
    assert len(picture.findings) == 1
    check(picture, findings[0], findings)


@pytest.mark.parametrize("wildcard", [0, 1])
def test_a_wildcard_stays_as_in_the_example(wildcard: int) -> None:
    """MAX_LEN plays the wildcard of IN_PORT."""
    either = FieldSet(IN_PORT, ((7, 7), (1 << 16, (2 << 16) - 1)), "in_port = 7 or wildcarded", 0, 16, IN_PORT, MAX_LEN)
    values = {IN_PORT: 7, PORT: 7, MAX_LEN: wildcard, KIND: 1}
    kind = FieldSet(KIND, ((0, 1),), "type in {0, 1}")
    findings = made((values, [either, kind], (Relation(IN_PORT, "=", PORT, head=MAX_LEN),)))
    check(drawn(findings), findings[0], findings)


def test_parts_of_one_field_meet_on_one_axis() -> None:
    """The high half, the low bits, and the whole of an action's body."""
    kind = FieldSet(KIND, ((1, 1),), "type = set_vlan_vid")
    findings = made(
        (
            {KIND: 1, BODY: 0x1000_0000},
            [kind, FieldSet(BODY, ((0x1000, 0xFFFF),), "v", 16, 16, "m0.actions.0.vlan_vid")],
            (),
        ),
        ({KIND: 1, BODY: 0x0005_0000}, [kind, FieldSet(BODY, ((0x0005_0000, 0x0007_FFFF),), "b")], ()),
        ({KIND: 2, BODY: 0x0005_0003}, [FieldSet(KIND, ((2, 2),), "k"), FieldSet(BODY, ((1, 3),), "l", 0, 2)], ()),
    )
    # The lowest two bits repeat too often to be drawn along the whole body.
    for place, not_drawn in enumerate([(), (2,), ()]):
        picture = drawn(findings, place)
        check(picture, findings[place], drawable(picture, findings, *not_drawn))
    axis = drawn(findings).y
    assert axis is not None
    assert axis.name == "m0.actions.0.vlan_vid"
    assert axis.labels[-1] == "0x1000 … 0xffff"


def test_what_cannot_be_drawn_is_counted() -> None:
    odd = FieldSet(BODY, ((1, 1),), "lowest bit", 0, 1)
    findings = made(
        ({BODY: 0x10}, [FieldSet(BODY, ((0, 0x1000),), "b")], ()),
        ({BODY: 0x2001}, [odd], ()),
    )
    assert drawn(findings).left_out == 1


def test_no_deciding_field_no_picture() -> None:
    findings = made(({}, [], ()))
    assert Pictures(findings, scene()).picture(findings[0]) is None


def test_unknown_fields_are_not_drawn() -> None:
    findings = made(({}, [FieldSet("m9.nothing", ((1, 1),), "n = 1")], (Relation("a[1:", "=", "b[70000:3]"),)))
    assert Pictures(findings, scene()).picture(findings[0]) is None


def test_the_drawing_has_three_panels_and_the_example_in_each() -> None:
    findings = list(example.findings().findings)
    for place, finding in enumerate(findings):
        drawing = svg(drawn(findings, place), finding)
        assert isinstance(drawing, Html)
        assert drawing.count('class="dot"') == 3
        assert "where they differ" in drawing
