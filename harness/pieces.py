"""Wide fields in pieces: inside the explorer, a field of more than 16 bits is several variables.

Most conditions on a wide field are about a part of it, or compare it with a constant: then each piece is narrow enough
for a bitmap, where the whole would need the solver. Outside, in bundles, a field is one variable again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.terms import Term
from soft.solve.walk import post_order

# As many bits as harness.feasible keeps in a bitmap.
PIECE_BITS = 16

_BUILD: dict[str, Callable[..., Term]] = {
    "bvadd": t.add,
    "bvsub": t.sub,
    "bvmul": t.mul,
    "bvudiv": t.udiv,
    "bvurem": t.urem,
    "bvsdiv": t.sdiv,
    "bvsrem": t.srem,
    "bvand": t.and_,
    "bvor": t.or_,
    "bvxor": t.xor,
    "bvshl": t.shl,
    "bvlshr": t.lshr,
    "bvashr": t.ashr,
    "bvnot": t.not_,
    "concat": t.concat,
    "ite": t.ite,
    "not": t.negate,
    "and": t.conj,
    "or": t.disj,
    "=": t.eq,
    "bvult": t.ult,
    "bvslt": t.slt,
}


class Pieces:
    """The pieces of one scenario's fields, and the way from one form to the other."""

    def __init__(self, scenario: Scenario) -> None:
        self._fields = {variable.name: variable.width for variable in scenario.variables}
        self._parts = {name: _parts(name, width) for name, width in self._fields.items()}
        self.widths = {piece: high - low + 1 for parts in self._parts.values() for piece, high, low in parts}
        self._inwards: dict[Term, Term] = {}
        self._outwards: dict[Term, Term] = {}
        for name, width in self._fields.items():
            whole = t.var(name, width)
            for piece, high, low in self._parts[name]:
                self._outwards[t.var(piece, high - low + 1)] = t.extract(high, low, whole)
            self._inwards[whole] = t.concat(*[t.var(piece, high - low + 1) for piece, high, low in self._parts[name]])

    def split(self, values: Mapping[str, int]) -> dict[str, int]:
        """Values of pieces, from values of fields or of pieces."""
        result: dict[str, int] = {}
        for name, parts in self._parts.items():
            for piece, high, low in parts:
                known = values.get(piece) if len(parts) > 1 else None
                result[piece] = values[name] >> low & (1 << high - low + 1) - 1 if known is None else known
        return result

    def join(self, values: Mapping[str, int]) -> dict[str, int]:
        """Values of fields."""
        return {name: sum(values[piece] << low for piece, _, low in parts) for name, parts in self._parts.items()}

    def inside(self, term: Term) -> Term:
        """A term over fields as a term over pieces."""
        return rebuilt(term, self._inwards)

    def outside(self, term: Term) -> Term:
        """A term over pieces as a term over fields."""
        return rebuilt(term, self._outwards)


def _parts(name: str, width: int) -> list[tuple[str, int, int]]:
    """(name, highest bit, lowest bit) of each piece, the most significant first."""
    if width <= PIECE_BITS:
        return [(name, width - 1, 0)]
    lows = range(0, width, PIECE_BITS)
    return [(f"{name}#{low}", min(low + PIECE_BITS, width) - 1, low) for low in reversed(lows)]


def rebuilt(root: Term, memo: dict[Term, Term]) -> Term:
    """The term with its variables replaced as the memo says, simplified anew."""
    found = memo.get(root)
    if found is not None:
        return found
    for term in post_order((root,), memo):
        if term.op == "const":
            memo[term] = term
            continue
        args: list[Any] = [memo[a] if a.__class__ is Term else a for a in term.args]
        if term.op == "var":
            memo[term] = term
        elif term.op == "extract":
            memo[term] = t.extract(term.args[0], term.args[1], args[2])
        elif term.op == "sign_extend":
            memo[term] = t.sign_extend(term.args[0], args[1])
        elif term.op == "and":
            memo[term] = t.conj(*_whole_comparisons(args))
        elif term.op == "or":
            memo[term] = t.disj(*[t.negate(p) for p in _whole_comparisons([t.negate(a) for a in args])])
        else:
            memo[term] = _BUILD[term.op](*args)
    return memo[root]


def _whole_comparisons(parts: list[Term]) -> list[Term]:
    """Comparisons of neighbouring slices of one term with constants, as comparisons of larger slices."""
    slices: dict[Term, list[tuple[Term, int]]] = {}
    rest: list[Term] = []
    for part in parts:
        if part.op == "=" and part.args[1].op == "const" and part.args[0].op == "extract":
            slices.setdefault(part.args[0].args[2], []).append((part.args[0], part.args[1].args[0]))
        else:
            rest.append(part)
    for found in slices.values():
        found.sort(key=lambda pair: -pair[0].args[1])
        whole = t.concat(*[piece for piece, _ in found])
        value = 0
        for piece, wanted in found:
            value = value << piece.width | wanted
        joined = t.eq(whole, t.const(value, whole.width))
        rest += joined.args if joined.op == "and" else (joined,)
    return rest
