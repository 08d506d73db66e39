"""The z3 back end. It calls z3's C interface directly: the Python classes on top cost several times the conversion."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import z3
from z3 import z3core

from soft.solve.solver import Answer
from soft.solve.terms import Term
from soft.solve.walk import children, post_order

# Handles are kept so that a term is converted once; past this many the table is dropped (about 300 MB of z3's memory).
CACHE_LIMIT = 1_000_000

_UNARY: dict[str, Callable[..., Any]] = {
    "bvnot": z3core.Z3_mk_bvnot,
    "bvneg": z3core.Z3_mk_bvneg,
    "not": z3core.Z3_mk_not,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "bvadd": z3core.Z3_mk_bvadd,
    "bvsub": z3core.Z3_mk_bvsub,
    "bvmul": z3core.Z3_mk_bvmul,
    "bvudiv": z3core.Z3_mk_bvudiv,
    "bvurem": z3core.Z3_mk_bvurem,
    "bvsdiv": z3core.Z3_mk_bvsdiv,
    "bvsrem": z3core.Z3_mk_bvsrem,
    "bvand": z3core.Z3_mk_bvand,
    "bvor": z3core.Z3_mk_bvor,
    "bvxor": z3core.Z3_mk_bvxor,
    "bvshl": z3core.Z3_mk_bvshl,
    "bvlshr": z3core.Z3_mk_bvlshr,
    "bvashr": z3core.Z3_mk_bvashr,
    "concat": z3core.Z3_mk_concat,
    "=": z3core.Z3_mk_eq,
    "bvult": z3core.Z3_mk_bvult,
    "bvule": z3core.Z3_mk_bvule,
    "bvslt": z3core.Z3_mk_bvslt,
    "bvsle": z3core.Z3_mk_bvsle,
}
_NARY: dict[str, Callable[..., Any]] = {"and": z3core.Z3_mk_and, "or": z3core.Z3_mk_or}


class Z3Backend:
    """One z3 context with one solver in it."""

    def __init__(self, milliseconds: int | None) -> None:
        self._context = z3.Context()
        self._raw = self._context.ref()
        # The general solver, not SolverFor("QF_BV"): on small queries along a stack it is four times as fast.
        self._solver = z3.Solver(ctx=self._context)
        if milliseconds is not None:
            self._solver.set("timeout", milliseconds)
        self._handles: dict[Term, Any] = {}
        self._sorts: dict[int, Any] = {}
        self._model: Any = None

    def push(self) -> None:
        self._solver.push()

    def pop(self) -> None:
        self._solver.pop()

    def add(self, condition: Term) -> None:
        z3core.Z3_solver_assert(self._raw, self._solver.solver, self._convert(condition))

    def check(self, assumptions: Sequence[Term]) -> Answer:
        # Assumptions are added between push and pop, because z3 takes only literals as assumptions proper. The model
        # outlives the pop: it is an object of its own.
        self._model = None
        if assumptions:
            self._solver.push()
            for assumption in assumptions:
                self.add(assumption)
        try:
            verdict = z3core.Z3_solver_check(self._raw, self._solver.solver)
            if verdict == z3.Z3_L_TRUE:
                self._model = self._solver.model()
        except z3.Z3Exception:
            return Answer.UNKNOWN
        finally:
            if assumptions:
                self._solver.pop()
        if verdict == z3.Z3_L_TRUE:
            return Answer.SAT
        return Answer.UNSAT if verdict == z3.Z3_L_FALSE else Answer.UNKNOWN

    def model(self, variables: Iterable[Term]) -> dict[str, int]:
        values: dict[str, int] = {}
        raw, out = self._raw, (z3.Ast * 1)()
        for variable in variables:
            handle = self._convert(variable)
            z3core.Z3_model_eval(raw, self._model.model, handle, True, out)
            value = self._held(out[0])
            if variable.width:
                values[variable.args[0]] = int(z3core.Z3_get_numeral_string(raw, value))
            else:
                values[variable.args[0]] = int(z3core.Z3_get_bool_value(raw, value) == z3.Z3_L_TRUE)
            z3core.Z3_dec_ref(raw, value)
        return values

    def _convert(self, root: Term) -> Any:
        handles = self._handles
        found = handles.get(root)
        if found is not None:
            return found
        if len(handles) > CACHE_LIMIT:
            self._release()
        for term in post_order((root,), handles):
            handles[term] = self._held(self._build(term, [handles[child] for child in children(term)]))
        return handles[root]

    def _release(self) -> None:
        # Users before what they use: z3 then frees one node at a time. Left to the end of the context, deep terms
        # cost quadratic time (36 s for 40,000 nodes).
        while self._handles:
            z3core.Z3_dec_ref(self._raw, self._handles.popitem()[1])

    def __del__(self) -> None:
        self._release()

    def _build(self, term: Term, parts: list[Any]) -> Any:
        op, raw = term.op, self._raw
        if op in _BINARY:
            return self._fold(_BINARY[op], parts)
        if op in _UNARY:
            return _UNARY[op](raw, parts[0])
        if op in _NARY:
            return _NARY[op](raw, len(parts), (z3.Ast * len(parts))(*parts))
        if op == "ite":
            return z3core.Z3_mk_ite(raw, *parts)
        if op == "extract":
            return z3core.Z3_mk_extract(raw, term.args[0], term.args[1], parts[0])
        if op == "sign_extend":
            return z3core.Z3_mk_sign_ext(raw, term.args[0], parts[0])
        if op == "const":
            if not term.width:
                return z3core.Z3_mk_true(raw) if term.args[0] else z3core.Z3_mk_false(raw)
            return z3core.Z3_mk_numeral(raw, str(term.args[0]), self._sort(term.width))
        if op == "var":
            return z3core.Z3_mk_const(raw, z3core.Z3_mk_string_symbol(raw, term.args[0]), self._sort(term.width))
        raise ValueError(f"no such operation: {op}")

    def _fold(self, make: Callable[..., Any], parts: list[Any]) -> Any:
        """Apply an operation of two arguments to more of them, as `concat` has."""
        handle = make(self._raw, parts[0], parts[1])
        for part in parts[2:]:
            partial = self._held(handle)
            handle = make(self._raw, partial, part)
            z3core.Z3_dec_ref(self._raw, partial)
        return handle

    def _sort(self, width: int) -> Any:
        sort = self._sorts.get(width)
        if sort is None:
            sort = z3core.Z3_mk_bv_sort(self._raw, width) if width else z3core.Z3_mk_bool_sort(self._raw)
            self._held(sort)
            self._sorts[width] = sort
        return sort

    def _held(self, handle: Any) -> Any:
        """Take a reference: z3 frees what nobody refers to at its next call."""
        z3core.Z3_inc_ref(self._raw, handle)
        return handle


def connect(milliseconds: int | None) -> Z3Backend:
    return Z3Backend(milliseconds)
