"""What is printed comes back as the same term; what a stranger wrote is checked."""

import pytest
import z3
from hypothesis import given, settings

from soft.errors import SoftError
from soft.solve import terms as t
from soft.solve.smtlib import MAX_WIDTH, parse_term, print_sort, print_term
from soft.solve.terms import Term
from tests.soft.solve.strategies import FLAG, VARIABLES, X, Y, any_term


@settings(max_examples=400, deadline=None)
@given(any_term())
def test_a_printed_term_comes_back_as_itself(term: Term) -> None:
    assert parse_term(print_term(term), VARIABLES, {}) is term


@settings(max_examples=60, deadline=None)
@given(any_term())
def test_z3_reads_what_is_printed(term: Term) -> None:
    script = "".join(f"(declare-const {name} {print_sort(v.width)})\n" for name, v in VARIABLES.items())
    text = f"{script}(define-fun it () {print_sort(term.width)} {print_term(term)})\n(assert (= it it))"
    # A context of its own: definitions would stay in z3's main one, and angr's solver stumbles over them there.
    z3.parse_smt2_string(text, ctx=z3.Context())


def test_a_condition_reads_like_a_condition() -> None:
    assert print_term(t.ult(X, t.const(7, 16))) == "(bvult m0.x #x0007)"
    assert print_term(t.eq(FLAG, t.const(1, 1))) == "(= flag #b1)"
    assert print_term(t.extract(7, 0, X)) == "((_ extract 7 0) m0.x)"


def test_names_stand_for_terms_in_both_directions() -> None:
    total = t.add(X, Y)
    assert print_term(t.eq(total, t.const(1, 16)), {total: "t0"}) == "(= t0 #x0001)"
    assert parse_term("(= t0 #x0001)", VARIABLES, {"t0": total}) is t.eq(total, t.const(1, 16))


def test_a_shared_term_is_printed_once() -> None:
    term = X
    for _ in range(60):
        term = t.mul(term, term)
    text = print_term(term)
    assert len(text) < 2000  # as a tree: 2 to the 60
    assert parse_term(text, VARIABLES, {}) is term


def test_depth_is_no_problem() -> None:
    term = X
    for _ in range(20_000):
        term = t.xor(t.add(term, Y), X)
    assert parse_term(print_term(term), VARIABLES, {}) is term
    assert parse_term("(bvnot " * 50_000 + "m0.x" + ")" * 50_000, VARIABLES, {}).op == "bvnot"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no term."),
        ("(bvadd m0.x", "The term ends too early: a closing parenthesis is missing."),
        ("(bvadd m0.x m0.x))", "After the end of the term stands `)`."),
        (")", "There is a closing parenthesis too many."),
        ("(", "The term ends after an opening parenthesis."),
        ("m0.z", "The name `m0.z` is used but not defined before."),
        ("'", "`'` is neither a name nor a constant."),
        ("(bvadd m0.x flag)", "bvadd does not apply to (_ BitVec 16) and (_ BitVec 1)."),
        ("(bvadd m0.x)", "bvadd does not apply to (_ BitVec 16)."),
        ("(and)", "and does not apply to nothing."),
        ("(not m0.x)", "not does not apply to (_ BitVec 16)."),
        ("(ite m0.x m0.x m0.x)", "ite does not apply to (_ BitVec 16) and (_ BitVec 16) and (_ BitVec 16)."),
        ("((_ extract 16 0) m0.x)", "(_ extract 16 0) does not apply to (_ BitVec 16)."),
        ("((_ extract 0 1) m0.x)", "(_ extract 0 1) does not apply to (_ BitVec 16)."),
        ("((_ extract -1 1) m0.x)", "`-1` is not a number that fits here."),
        ("((_ repeat 4) m0.x)", "`( _ repeat 4 ) m0.x` does not begin an operation."),
        ("(system m0.x)", "There is no operation `system`."),
        (
            "((_ sign_extend 99999999) m0.x)",
            f"A bit-vector of 100000015 bits is too wide; at most {MAX_WIDTH} are allowed.",
        ),
        ("(let ((?0 m0.x)) (bvadd ?0 ?0)) ?0", "After the end of the term stands `?0`."),
        ("(bvadd (let ((?0 m0.x)) ?0) ?0)", "The name `?0` is used but not defined before."),
        ("(let (?0 m0.x) ?0)", "A let binds one name to one term, as in (let ((name term)) body)."),
        ("m0.x ; comment", "The character ; does not belong into a term."),
    ],
)
def test_a_malformed_term_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SoftError) as error:
        parse_term(text, VARIABLES, {})
    assert str(error.value) == sentence


def test_doubling_widths_stop_at_the_bound() -> None:
    names = {"t": X}
    for _ in range(12):
        names["t"] = parse_term("(concat t t)", VARIABLES, names)
    with pytest.raises(SoftError, match="A bit-vector of 131072 bits is too wide"):
        parse_term("(concat t t)", VARIABLES, names)


def test_wide_multiplication_is_refused() -> None:
    names = {"w": t.concat(*[t.var(f"v{i}", 64) for i in range(5)])}
    with pytest.raises(SoftError, match="bvmul on 320 bits is too costly"):
        parse_term("(bvmul w w)", VARIABLES, names)
