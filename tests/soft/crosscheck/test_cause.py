"""Findings with one cause: what makes two of them one cluster, and what keeps two apart."""

from __future__ import annotations

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Findings
from soft.solve import terms as t
from tests.soft.crosscheck.agents import CRASH, SILENT, If, Tree, bundle, error, forward, number, scenario

# Two actions of any type, so that one thing can be said about either. By default both are outputs to port 0.
ACTIONS = """\
name = "actions"
summary = "A packet_out with two actions"
openflow = "1.0"

[[step]]
send = "packet_out"
buffer_id = { in = [7, 0xffffffff], default = 0xffffffff }
actions = [
    { type = "output", port = { range = [0, 9], default = 0 } },
    { type = "output", port = { range = [0, 9], default = 0 } },
]
data = { packet = "tcp" }
"""
FIRST, SECOND = (t.var(f"m0.actions.{place}.port", 16) for place in (0, 1))
BUFFERED = t.eq(t.var("m0.buffer_id", 32), t.const(7, 32))


def compared(left: Tree, right: Tree) -> Findings:
    scene = scenario(ACTIONS)
    return crosscheck([bundle(left, "one", scene), bundle(right, "two", scene)])


def headings(left: Tree, right: Tree) -> list[str]:
    return [cluster.heading for cluster in compared(left, right).clusters]


def either(value: int, then: Tree, otherwise: Tree) -> Tree:
    return If(t.eq(FIRST, number(value)), then, If(t.eq(SECOND, number(value)), then, otherwise))


def test_one_thing_about_any_item_of_a_list_is_one_cause() -> None:
    found = compared(SILENT, either(9, CRASH, SILENT))
    assert [cluster.heading for cluster in found.clusters] == [
        "packet_out with actions.0.port or actions.1.port = 9: one is silent, two crashes (SIGSEGV)"
    ]
    assert found.clusters[0].fields == ("m0.actions.0.port", "m0.actions.1.port")
    assert len(found.findings) == 2


def test_a_packet_more_is_the_same_whatever_else_is_forwarded() -> None:
    def forwards(first: Tree, second: Tree, third: Tree) -> Tree:
        return If(t.eq(FIRST, number(1)), first, If(t.eq(FIRST, number(2)), second, third))

    one = forwards(forward(1), (*forward(1), *forward(2)), SILENT)
    more = forwards((*forward(1), *forward(3)), (*forward(1), *forward(2), *forward(3)), forward(3))
    right = If(t.eq(SECOND, number(9)), more, one)
    assert headings(one, right) == ["packet_out with actions.1.port = 9: one does not, two forwards the packet"]


def test_an_error_about_an_action_is_not_one_about_the_request() -> None:
    """A buffer that is not looked for, and actions that are looked at first: each alone shows as a lost error."""
    right = If(BUFFERED, If(t.eq(FIRST, number(9)), error(2, 4), error(1, 8)), SILENT)
    assert headings(SILENT, right) == [
        "packet_out with buffer_id = 7, actions.0.port = 9: "
        "one is silent, two answers with the error bad_action/bad_out_port",
        "packet_out with buffer_id = 7, actions.0.port ≠ 9: "
        "one is silent, two answers with the error bad_request/buffer_unknown",
    ]


def test_codes_of_one_type_are_one_cause() -> None:
    right = If(BUFFERED, If(t.eq(FIRST, number(9)), error(2, 4), either(8, error(2, 5), SILENT)), SILENT)
    assert headings(SILENT, right) == [
        "packet_out with buffer_id = 7, and actions.0.port ≥ 8, or actions.1.port = 8: one is silent, "
        "two answers with an error (bad_action/bad_argument or bad_action/bad_out_port)"
    ]


def test_other_values_of_one_field_are_one_cause() -> None:
    """Where nothing else is common to them: the field decides."""
    four = If(BUFFERED, If(t.eq(FIRST, number(4)), error(5, 0), SILENT), SILENT)
    assert headings(SILENT, If(t.eq(FIRST, number(9)), error(1, 2), four)) == [
        "packet_out with actions.0.port = 9, or buffer_id = 7 and actions.0.port = 4: one is silent, "
        "two answers with an error (bad_request/bad_stat or queue_op_failed/bad_port)"
    ]


def test_other_fields_are_other_causes() -> None:
    assert len(headings(SILENT, If(t.eq(FIRST, number(9)), CRASH, If(BUFFERED, CRASH, SILENT)))) == 2


def test_what_the_default_input_shows_is_one_cause() -> None:
    assert headings(SILENT, CRASH) == ["any packet_out: one is silent, two crashes (SIGSEGV)"]
