"""When two outputs differ: the condition against comparing the bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soft.crosscheck.outputs import Outputs, difference
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import TRUE
from soft.trace import Message, Payload, Trace, evaluate_trace

X, Y = t.var("x", 8), t.var("y", 8)
_byte = st.integers(0, 255)
_piece = st.one_of(st.binary(min_size=1, max_size=2), st.sampled_from((X, Y, t.add(X, Y), t.concat(X, Y))))
_length = st.sampled_from((None, t.zero_extend(8, X), t.const(2, 16), t.zero_extend(8, t.extract(7, 0, Y))))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    return (Message(0, Payload(tuple(draw(st.lists(_piece, max_size=3))), draw(_length))),)


@given(traces(), traces(), _byte | st.integers(0, 5), _byte | st.integers(0, 5))
def test_outputs_differ_exactly_where_the_condition_holds(a: Trace, b: Trace, x: int, y: int) -> None:
    values = {"x": x, "y": y}
    claimed = any(evaluate(term, values) for term in difference(a, b))
    assert claimed == (evaluate_trace(a, values) != evaluate_trace(b, values))


def test_equal_traces_have_one_number() -> None:
    outputs = Outputs()
    silent: Trace = ()
    first, second = outputs.add([silent, (Message(0, Payload((X,))),)]), outputs.add([(Message(0, Payload((X,))),)])
    assert first == [0, 1]
    assert second == [1]
    assert outputs.difference(1, 1) == ()
    assert outputs.difference(0, 1) == (TRUE,)
