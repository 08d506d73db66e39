"""Upper bounds of terms, from the bounds of their parts: what is known of a term without knowing the input.

A compiler divides by a constant through a multiplication and a shift, and compares sums that it knows not to wrap.
Undoing that needs to know how large the parts can be.
"""

from __future__ import annotations

from typing import Any


def most_of(op: str, args: tuple[Any, ...], width: int) -> int:
    """No value of the node is larger than this; `args` are terms that have bounds already."""
    limit = (1 << width) - 1
    if op == "const":
        return int(args[0])
    if op == "concat":
        total = 0
        for part in args:
            total = total << part.width | part.most
        return int(total)
    if op == "extract":
        high = args[2].most >> args[1]
        return int(min(high, limit))
    if op == "ite":
        return int(max(args[1].most, args[2].most))
    if op == "bvadd":
        return _unless_wrapping(args[0].most + args[1].most, limit)
    if op == "bvmul":
        return _unless_wrapping(args[0].most * args[1].most, limit)
    if op == "bvudiv" and args[1].op == "const" and args[1].args[0]:
        return int(args[0].most // args[1].args[0])
    if op == "bvurem" and args[1].op == "const" and args[1].args[0]:
        return int(min(args[0].most, args[1].args[0] - 1))
    if op == "bvand":
        return int(min(args[0].most, args[1].most))
    if op in ("bvor", "bvxor"):
        return int((1 << max(args[0].most.bit_length(), args[1].most.bit_length())) - 1)
    if op == "bvlshr":
        return int(args[0].most)
    return limit


def _unless_wrapping(value: int, limit: int) -> int:
    """The value if it fits; else anything may come out of the wrapping."""
    return value if value <= limit else limit
