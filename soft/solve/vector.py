"""A term's value for many inputs at once, with NumPy: how a condition on a few bits is decided without a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from soft.solve.terms import Term

Array = NDArray[np.uint64]
_WORD = np.uint64


def evaluate_vector(
    term: Term, values: Mapping[str, Array], known: Mapping[Term, Array] | None = None
) -> Array | None:
    """The values of `term`, one for each row of the inputs; None where a part is wider than a machine word.

    `known` gives the values of sub-terms, where they are the inputs.
    """
    memo: dict[Term, Any] = dict(known or {})
    stack = [term]
    with np.errstate(all="ignore"):
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            if node.width > 64:
                return None
            high = _high_product(node)
            missing = [a for a in (node.args if high is None else high[:1]) if a.__class__ is Term and a not in memo]
            if missing:
                stack.extend(missing)
                continue
            if high is not None:
                memo[node] = _high(memo[high[0]], *high[1:]) >> _WORD(node.args[1] - 64) & _WORD((1 << node.width) - 1)
            elif node.op == "const":
                memo[node] = _WORD(node.args[0])
            elif node.op == "var":
                memo[node] = values[node.args[0]]
            else:
                result = _apply(node, [memo[a] for a in node.args if a.__class__ is Term])
                if result is None:
                    return None
                memo[node] = result
            stack.pop()
    rows = len(next(iter((values or known or {}).values())))
    return np.broadcast_to(np.asarray(memo[term], dtype=_WORD), (rows,))


def _high_product(node: Term) -> tuple[Term, int, bool] | None:
    """A word, a factor, and whether the word has a sign, if a term is of the upper half of their product.

    That is how compilers divide by a constant.
    """
    if node.op != "extract" or node.args[1] < 64 or node.args[2].op != "bvmul" or node.args[2].width != 128:
        return None
    word, factor = node.args[2].args
    if factor.op != "const" or factor.args[0] >> 64:
        return None
    if word.op == "sign_extend" and word.args[1].width == 64:
        return word.args[1], factor.args[0], True
    if word.op == "concat" and len(word.args) == 2 and word.args[0].op == "const" and not word.args[0].args[0]:
        return (word.args[1], factor.args[0], False) if word.args[1].width == 64 else None
    return None


def _high(word: Any, factor: int, has_sign: bool) -> Any:
    """The upper 64 bits of a product, from the products of halves."""
    low, half = _WORD((1 << 32) - 1), _WORD(32)
    a, b = np.asarray(word, dtype=_WORD) >> half, np.asarray(word, dtype=_WORD) & low
    c, d = _WORD(factor >> 32), _WORD(factor & ((1 << 32) - 1))
    ad, bc = a * d, b * c
    middle = (b * d >> half) + (ad & low) + (bc & low)
    found = a * c + (ad >> half) + (bc >> half) + (middle >> half)
    return found - np.where(a >> _WORD(31), _WORD(factor), _WORD(0)) if has_sign else found


def _sign(x: Any, width: int) -> Any:
    """As signed 64-bit numbers."""
    shift = _WORD(64 - width)
    return (np.asarray(x, dtype=_WORD) << shift).astype(np.int64) >> np.int64(64 - width)


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "bvadd": lambda a, b: a + b,
    "bvsub": lambda a, b: a - b,
    "bvmul": lambda a, b: a * b,
    "bvand": lambda a, b: a & b,
    "bvor": lambda a, b: a | b,
    "bvxor": lambda a, b: a ^ b,
    "=": lambda a, b: a == b,
    "bvult": lambda a, b: a < b,
    "bvule": lambda a, b: a <= b,
}


def _apply(node: Term, args: list[Any]) -> Any:
    op, width = node.op, node.width
    mask = _WORD((1 << width) - 1) if width else _WORD(1)
    if op in _PLAIN:
        return np.asarray(_PLAIN[op](args[0], args[1])).astype(_WORD) & mask
    if op == "extract":
        return args[0] >> _WORD(node.args[1]) & mask
    if op == "concat":
        result = args[0]
        for part, value in zip(node.args[1:], args[1:], strict=True):
            result = result << _WORD(part.width) | value
        return result
    if op == "ite":
        return np.where(np.asarray(args[0], dtype=bool), args[1], args[2])
    if op in ("and", "or"):
        result = args[0]
        for value in args[1:]:
            result = result & value if op == "and" else result | value
        return result
    if op == "not":
        return args[0] ^ _WORD(1)
    if op == "bvnot":
        return args[0] ^ mask
    if op == "sign_extend":
        return _sign(args[0], node.args[1].width).astype(_WORD) & mask
    if op in ("bvslt", "bvsle"):
        inner = node.args[0].width
        a, b = _sign(args[0], inner), _sign(args[1], inner)
        return np.asarray(a < b if op == "bvslt" else a <= b).astype(_WORD)
    if op in ("bvshl", "bvlshr"):
        amount = np.minimum(args[1], _WORD(63))
        shifted = args[0] << amount if op == "bvshl" else args[0] >> amount
        return np.where(args[1] < _WORD(width), shifted & mask, _WORD(0))
    if op == "bvashr":
        amount = np.minimum(np.asarray(args[1], dtype=_WORD), _WORD(63)).astype(np.int64)
        return (_sign(args[0], width) >> amount).astype(_WORD) & mask
    if op in ("bvudiv", "bvurem"):
        divisor = np.where(args[1] == _WORD(0), _WORD(1), args[1])
        if op == "bvudiv":
            return np.where(args[1] == _WORD(0), mask, args[0] // divisor)
        return np.where(args[1] == _WORD(0), args[0], args[0] % divisor)
    return None
