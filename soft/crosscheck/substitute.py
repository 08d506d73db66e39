"""Terms with some of their variables replaced."""

from __future__ import annotations

from collections.abc import Mapping

from soft.solve import terms
from soft.solve.terms import Term
from soft.solve.walk import post_order


def substitute(
    root: Term, values: Mapping[str, int] | Mapping[str, Term], done: dict[Term, Term] | None = None
) -> Term:
    """A term with some of its variables replaced by numbers or terms, simplified.

    `done` keeps what becomes of each part of it: terms that share parts may share it, if the values are the same.
    """
    if root.variables.isdisjoint(values):
        return root
    done = {} if done is None else done
    for term in post_order((root,), done):
        if term.op == "var":
            new = values.get(term.args[0])
            done[term] = term if new is None else new if isinstance(new, Term) else terms.const(new, term.width)
        elif term.variables.isdisjoint(values):
            done[term] = term
        else:
            done[term] = build(term, [done[arg] if arg.__class__ is Term else arg for arg in term.args])
    return done[root]


_MAKE = {
    "extract": terms.extract,
    "concat": terms.concat,
    "sign_extend": terms.sign_extend,
    "bvadd": terms.add,
    "bvsub": terms.sub,
    "bvmul": terms.mul,
    "bvudiv": terms.udiv,
    "bvurem": terms.urem,
    "bvsdiv": terms.sdiv,
    "bvsrem": terms.srem,
    "bvand": terms.and_,
    "bvor": terms.or_,
    "bvxor": terms.xor,
    "bvnot": terms.not_,
    "bvneg": terms.neg,
    "bvshl": terms.shl,
    "bvlshr": terms.lshr,
    "bvashr": terms.ashr,
    "ite": terms.ite,
    "not": terms.negate,
    "and": terms.conj,
    "or": terms.disj,
    "=": terms.eq,
    "bvult": terms.ult,
    "bvule": terms.ule,
    "bvslt": terms.slt,
    "bvsle": terms.sle,
}


def build(term: Term, args: list[Term]) -> Term:
    made: Term = _MAKE[term.op](*args)  # type: ignore[operator]
    return made
