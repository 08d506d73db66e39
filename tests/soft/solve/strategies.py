"""Random terms for property-based tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from soft.solve import terms as t
from soft.solve.smtlib import build
from soft.solve.terms import Term

X, Y, FLAG = t.var("m0.x", 16), t.var("m0.actions.0.y", 16), t.var("flag", 1)
VARIABLES = {"m0.x": X, "m0.actions.0.y": Y, "flag": FLAG}

WORDS = ["bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvand", "bvor", "bvxor"]
SHIFTS = ["bvshl", "bvlshr", "bvashr"]
COMPARISONS = ["=", "bvult", "bvule", "bvslt", "bvsle"]


@st.composite
def any_term(draw: Callable[..., Any], x: Term = X, y: Term = Y, flag: Term = FLAG) -> Term:
    """A well-formed term that no constructor has simplified: everything a bundle may hold."""
    words = [x, y, build("concat", (), [flag, t.const(draw(st.integers(0, 0x7FFF)), 15)])]
    truths = [t.TRUE, build("=", (), [x, y])]
    for _ in range(draw(st.integers(0, 25))):
        a, b = words[draw(st.integers(0, len(words) - 1))], words[draw(st.integers(0, len(words) - 1))]
        c, d = truths[draw(st.integers(0, len(truths) - 1))], truths[draw(st.integers(0, len(truths) - 1))]
        n = draw(st.integers(0, 15))
        match draw(st.integers(0, 7)):
            case 0:
                words.append(build((WORDS + SHIFTS)[draw(st.integers(0, 12))], (), [a, b]))
            case 1:
                truths.append(build(COMPARISONS[draw(st.integers(0, 4))], (), [a, b]))
            case 2:
                truths.append(build(["and", "or"][n % 2], (), [c, d, c][: 2 + n % 3 % 2]))
            case 3:
                truths.append(build("not", (), [c]))
            case 4:
                words.append(build("ite", (), [c, a, b]))
            case 5:
                words.append(build(["bvnot", "bvneg"][n % 2], (), [a]))
            case 6:
                part = build("extract", (n, 0), [a])
                words.append(build("sign_extend", (15 - n,), [part]) if n < 15 else part)
            case _:
                words.append(t.const(n, 16))
    last: Term = draw(st.sampled_from([words[-1], truths[-1]]))
    return last
