"""The bitwuzla back end."""

from collections.abc import Iterable, Sequence

import bitwuzla
from bitwuzla import Kind, Option, Result

from soft.solve.solver import Answer
from soft.solve.terms import Term
from soft.solve.walk import children, post_order

# Handles are kept so that a term is converted once; past this many the table is dropped.
CACHE_LIMIT = 1_000_000
# An instance never forgets what it was asked: after 7,000 small queries each took 8 times as long as at the start. A
# fresh one with the same assertions costs a few of them.
CHECKS_PER_INSTANCE = 100

_KINDS = {
    "concat": Kind.BV_CONCAT,
    "bvadd": Kind.BV_ADD,
    "bvsub": Kind.BV_SUB,
    "bvmul": Kind.BV_MUL,
    "bvudiv": Kind.BV_UDIV,
    "bvurem": Kind.BV_UREM,
    "bvsdiv": Kind.BV_SDIV,
    "bvsrem": Kind.BV_SREM,
    "bvand": Kind.BV_AND,
    "bvor": Kind.BV_OR,
    "bvxor": Kind.BV_XOR,
    "bvnot": Kind.BV_NOT,
    "bvneg": Kind.BV_NEG,
    "bvshl": Kind.BV_SHL,
    "bvlshr": Kind.BV_SHR,
    "bvashr": Kind.BV_ASHR,
    "ite": Kind.ITE,
    "not": Kind.NOT,
    "and": Kind.AND,
    "or": Kind.OR,
    "=": Kind.EQUAL,
    "bvult": Kind.BV_ULT,
    "bvule": Kind.BV_ULE,
    "bvslt": Kind.BV_SLT,
    "bvsle": Kind.BV_SLE,
}
_ANSWERS = {Result.SAT: Answer.SAT, Result.UNSAT: Answer.UNSAT, Result.UNKNOWN: Answer.UNKNOWN}


class BitwuzlaBackend:
    """One bitwuzla instance with its own term manager."""

    def __init__(self, milliseconds: int | None) -> None:
        self._manager = bitwuzla.TermManager()
        self._options = bitwuzla.Options()
        self._options.set(Option.PRODUCE_MODELS, True)
        if milliseconds is not None:
            self._options.set(Option.TIME_LIMIT_PER, milliseconds)
        self._solver = bitwuzla.Bitwuzla(self._manager, self._options)
        self._checks = 0
        self._levels: list[list[bitwuzla.Term]] = [[]]
        self._handles: dict[Term, bitwuzla.Term] = {}
        # bitwuzla makes a new constant at each mk_const, whatever its name: variables are kept for good.
        self._variables: dict[Term, bitwuzla.Term] = {}

    def push(self) -> None:
        self._levels.append([])
        self._solver.push()

    def pop(self) -> None:
        self._levels.pop()
        self._solver.pop()

    def add(self, condition: Term) -> None:
        handle = self._convert(condition)
        self._levels[-1].append(handle)
        self._solver.assert_formula(handle)

    def check(self, assumptions: Sequence[Term]) -> Answer:
        if self._checks >= CHECKS_PER_INSTANCE:
            self._renew()
        self._checks += 1
        return _ANSWERS[self._solver.check_sat(*[self._convert(assumption) for assumption in assumptions])]

    def _renew(self) -> None:
        self._solver = bitwuzla.Bitwuzla(self._manager, self._options)
        self._checks = 0
        for depth, level in enumerate(self._levels):
            if depth:
                self._solver.push()
            if level:
                self._solver.assert_formula(*level)

    def model(self, variables: Iterable[Term]) -> dict[str, int]:
        values: dict[str, int] = {}
        for variable in variables:
            value = self._solver.get_value(self._convert(variable)).value(16)
            values[variable.args[0]] = int(value, 16) if variable.width else int(value)
        return values

    def _convert(self, root: Term) -> bitwuzla.Term:
        handles = self._handles
        found = handles.get(root)
        if found is not None:
            return found
        if len(handles) > CACHE_LIMIT:
            handles.clear()
        for term in post_order((root,), handles):
            handles[term] = self._build(term, [handles[child] for child in children(term)])
        return handles[root]

    def _build(self, term: Term, parts: list[bitwuzla.Term]) -> bitwuzla.Term:
        op, manager = term.op, self._manager
        if op in _KINDS:
            return manager.mk_term(_KINDS[op], parts)
        if op == "extract":
            return manager.mk_term(Kind.BV_EXTRACT, parts, [term.args[0], term.args[1]])
        if op == "sign_extend":
            return manager.mk_term(Kind.BV_SIGN_EXTEND, parts, [term.args[0]])
        if op == "const":
            if not term.width:
                return manager.mk_true() if term.args[0] else manager.mk_false()
            return manager.mk_bv_value(manager.mk_bv_sort(term.width), f"{term.args[0]:x}", 16)
        if op == "var":
            if term not in self._variables:
                sort = manager.mk_bv_sort(term.width) if term.width else manager.mk_bool_sort()
                self._variables[term] = manager.mk_const(sort, term.args[0])
            return self._variables[term]
        raise ValueError(f"no such operation: {op}")


def connect(milliseconds: int | None) -> BitwuzlaBackend:
    return BitwuzlaBackend(milliseconds)
