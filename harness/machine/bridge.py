"""Terms to and from claripy, for the rare operations whose meaning is taken from angr's own tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harness.machine.ends import Unsupported
from soft.solve import terms as t
from soft.solve.terms import Term

_BINARY = {
    "bvadd": "__add__",
    "bvsub": "__sub__",
    "bvmul": "__mul__",
    "bvand": "__and__",
    "bvor": "__or__",
    "bvxor": "__xor__",
    "bvshl": "__lshift__",
    "bvashr": "__rshift__",
    "bvudiv": "__floordiv__",
    "bvurem": "__mod__",
}


def to_claripy(term: Term, memo: dict[Term, Any] | None = None) -> Any:
    """The claripy expression of a term."""
    import claripy

    memo = {} if memo is None else memo
    stack = [term]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        missing = [a for a in node.args if a.__class__ is Term and a not in memo]
        if missing:
            stack.extend(missing)
            continue
        args = [memo[a] for a in node.args if a.__class__ is Term]
        memo[node] = _node_to_claripy(claripy, node, args)
        stack.pop()
    return memo[term]


def _node_to_claripy(claripy: Any, node: Term, args: list[Any]) -> Any:
    op = node.op
    if op == "const":
        return claripy.BVV(node.args[0], node.width) if node.width else claripy.BoolV(bool(node.args[0]))
    if op == "var":
        return claripy.BVS(node.args[0], node.width, explicit_name=True)
    if op == "extract":
        return args[0][node.args[0] : node.args[1]]
    if op == "sign_extend":
        return args[0].sign_extend(node.args[0])
    if op in _BINARY:
        return getattr(args[0], _BINARY[op])(args[1])
    functions: dict[str, Callable[..., Any]] = {
        "concat": claripy.Concat,
        "bvlshr": claripy.LShR,
        "bvsdiv": lambda a, b: a.SDiv(b),
        "bvsrem": lambda a, b: a.SMod(b),
        "bvnot": lambda a: ~a,
        "ite": claripy.If,
        "not": claripy.Not,
        "and": claripy.And,
        "or": claripy.Or,
        "=": lambda a, b: a == b,
        "bvult": claripy.ULT,
        "bvslt": claripy.SLT,
    }
    return functions[op](*args)


_FROM: dict[str, Callable[..., Term]] = {
    "__sub__": t.sub,
    "__lshift__": t.shl,
    "LShR": t.lshr,
    "__rshift__": t.ashr,
    "__floordiv__": t.udiv,
    "__mod__": t.urem,
    "SDiv": t.sdiv,
    "SMod": t.srem,
    "__invert__": t.not_,
    "__neg__": t.neg,
    "Concat": t.concat,
    "If": t.ite,
    "Not": t.negate,
    "And": t.conj,
    "Or": t.disj,
    "__eq__": t.eq,
    "__ne__": t.ne,
    "ULT": t.ult,
    "__lt__": t.ult,
    "ULE": t.ule,
    "__le__": t.ule,
    "UGT": t.ugt,
    "__gt__": t.ugt,
    "UGE": t.uge,
    "__ge__": t.uge,
    "SLT": t.slt,
    "SLE": t.sle,
    "SGT": lambda a, b: t.slt(b, a),
    "SGE": lambda a, b: t.sle(b, a),
}
_VARIADIC: dict[str, Callable[[Term, Term], Term]] = {
    "__add__": t.add,
    "__mul__": t.mul,
    "__and__": t.and_,
    "__or__": t.or_,
    "__xor__": t.xor,
}


def from_claripy(ast: Any, memo: dict[Any, Term] | None = None) -> Term:
    """The term of a claripy expression; what has no bit-vector form is refused by name."""
    memo = {} if memo is None else memo
    stack = [ast]
    while stack:
        node = stack[-1]
        key = node.hash()
        if key in memo:
            stack.pop()
            continue
        children = [a for a in node.args if hasattr(a, "hash") and hasattr(a, "op")]
        missing = [a for a in children if a.hash() not in memo]
        if missing:
            stack.extend(missing)
            continue
        memo[key] = _node_from_claripy(node, [memo[a.hash()] for a in children])
        stack.pop()
    return memo[ast.hash()]


def _node_from_claripy(node: Any, args: list[Term]) -> Term:
    op = node.op
    if op == "BVV":
        return t.const(node.args[0], node.length)
    if op == "BoolV":
        return t.TRUE if node.args[0] else t.FALSE
    if op == "BVS":
        return t.var(node.args[0], node.length)
    if op == "Extract":
        return t.extract(node.args[0], node.args[1], args[0])
    if op == "ZeroExt":
        return t.zero_extend(node.args[0], args[0])
    if op == "SignExt":
        return t.sign_extend(node.args[0], args[0])
    if op == "Reverse":
        width = args[0].width
        return t.concat(*[t.extract(i + 7, i, args[0]) for i in range(0, width, 8)])
    if op in ("RotateLeft", "RotateRight"):
        bits = t.const(args[0].width, args[0].width)
        forward, back = (t.shl, t.lshr) if op == "RotateLeft" else (t.lshr, t.shl)
        amount = t.urem(args[1], bits)
        return t.or_(forward(args[0], amount), back(args[0], t.sub(bits, amount)))
    if op in _VARIADIC:
        result = args[0]
        for arg in args[1:]:
            result = _VARIADIC[op](result, arg)
        return result
    if op in _FROM:
        return _FROM[op](*args)
    raise Unsupported(f"the operation {op}, which has no bit-vector form")


def operation(op: str, widths: tuple[int, ...]) -> tuple[Callable[..., int], Callable[..., Term]]:
    """A VEX operation from angr's tables; not floating point, where those only come near."""
    if re.search(r"F\d|F0?x|Est", op):
        raise Unsupported(f"the operation {op}")
    try:
        from angr.engines.vex.claripy import irop

        meaning = irop.vexop_to_simop(op)
    except ImportError as error:
        raise Unsupported(f"the operation {op}, which needs angr") from error
    except Exception as error:
        raise Unsupported(f"the operation {op}") from error

    def symbolic(*args: Term) -> Term:
        try:
            return from_claripy(meaning.calculate(*[to_claripy(a) for a in args]))
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported(f"the operation {op} ({error})") from error

    def concrete(*args: int) -> int:
        result = symbolic(*[t.const(a, w) for a, w in zip(args, widths, strict=True)])
        if result.op != "const":
            raise Unsupported(f"the operation {op}")
        return int(result.args[0])

    return concrete, symbolic
