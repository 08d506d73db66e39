"""The value of a term under given inputs: no solver, no recursion, each shared node once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from soft.solve.terms import Term, signed, signed_quotient, signed_remainder


def _shift_left(a: int, n: int, width: int) -> int:
    return a << n if n < width else 0


def _divide(a: int, b: int, width: int) -> int:
    return a // b if b else (1 << width) - 1


_BINARY: dict[str, Callable[[int, int, int], int]] = {
    "bvadd": lambda a, b, w: a + b,
    "bvsub": lambda a, b, w: a - b,
    "bvmul": lambda a, b, w: a * b,
    "bvand": lambda a, b, w: a & b,
    "bvor": lambda a, b, w: a | b,
    "bvxor": lambda a, b, w: a ^ b,
    "bvshl": _shift_left,
    "bvlshr": lambda a, b, w: a >> b if b < w else 0,
    "bvashr": lambda a, b, w: signed(a, w) >> min(b, w),
    "bvudiv": _divide,
    "bvurem": lambda a, b, w: a % b if b else a,
    "bvsdiv": signed_quotient,
    "bvsrem": signed_remainder,
}


def apply(term: Term, values: list[int]) -> int:
    """The value of a node from the values of its term arguments, in order."""
    op = term.op
    if op == "=":
        return int(values[0] == values[1])
    if op == "and":
        return int(all(values))
    if op == "or":
        return int(any(values))
    if op == "not":
        return 1 - values[0]
    if op == "bvult":
        return int(values[0] < values[1])
    if op == "bvule":
        return int(values[0] <= values[1])
    if op == "extract":
        low: int = term.args[1]
        return values[0] >> low & ((1 << term.width) - 1)
    if op == "concat":
        result = 0
        for part, value in zip(term.args, values, strict=True):
            result = result << part.width | value
        return result
    if op == "ite":
        return values[1] if values[0] else values[2]
    binary = _BINARY.get(op)
    mask = (1 << term.width) - 1
    if binary is not None:
        return binary(values[0], values[1], term.width) & mask
    if op == "bvslt" or op == "bvsle":
        width = term.args[0].width
        a, b = signed(values[0], width), signed(values[1], width)
        return int(a < b if op == "bvslt" else a <= b)
    if op == "bvnot":
        return ~values[0] & mask
    if op == "bvneg":
        return -values[0] & mask
    if op == "sign_extend":
        return signed(values[0], term.args[1].width) & mask
    raise AssertionError(f"no evaluation for {op}")


def evaluate(term: Term, values: Mapping[str, int], memo: dict[Term, int] | None = None) -> int:
    """The value of `term`; a Boolean gives 0 or 1. A variable that `values` lacks raises KeyError.

    `memo` may be shared between calls with the same values.
    """
    if memo is None:
        memo = {}
    known = memo.get(term)
    if known is not None:
        return known
    stack: list[Term] = [term]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        op = node.op
        if op == "const":
            memo[node] = node.args[0]
        elif op == "var":
            memo[node] = values[node.args[0]]
        else:
            missing: list[Any] = [a for a in node.args if a.__class__ is Term and a not in memo]
            if missing:
                stack.extend(missing)
                continue
            memo[node] = apply(node, [memo[a] for a in node.args if a.__class__ is Term])
        stack.pop()
    return memo[term]
