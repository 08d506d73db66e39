"""Which conditions may hold together: cheap answers first, the solver for the rest, every answer kept.

Conditions that share no variable do not influence each other. So what a run has assumed is kept by *component*: a set
of connected variables with the conditions on them. A component over a few bits (most conditions are on one 8- or
16-bit field) is a bitmap of its allowed values, and a question about it needs no solver. Components are interned:
two runs that assumed the same share the object, and with it the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from soft.solve import terms as t
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term
from soft.solve.vector import Array, evaluate_vector

# A component of up to this many bits is a bitmap: 65,536 values are 8 kB and evaluated in well under a millisecond.
NARROW_BITS = 16
# Where the domain bounds a variable, this many: a minute in milliseconds. Agents divide times, and solvers take seconds
# for that.
_BOUNDED_BITS = 17

Model = dict[str, int]


class GaveUp(Exception):
    """The solver reached its time limit."""


@dataclass(slots=True, eq=False)
class Component:
    """Connected variables, what was assumed of them, and (for a narrow one) the assignments that are left."""

    variables: tuple[tuple[str, int], ...]  # (name, width), sorted: the first is the most significant of an assignment
    conditions: frozenset[Term]
    bitmap: int | None
    steps: dict[Term, Component] = field(default_factory=dict)
    negations: dict[tuple[Term, ...], Model | None] = field(default_factory=dict)
    values: dict[Term, Array | None] = field(default_factory=dict)


class Feasibility:
    """Answers for one process. `queries` counts the calls that reached the solver, `kept` those that did not."""

    def __init__(
        self, widths: Mapping[str, int], domain: Iterable[Term], solver: str = "z3", timeout: float = 20.0
    ) -> None:
        self._widths = dict(widths)
        # The bits that a variable's domain leaves it; those above are zero.
        self._bits = dict(widths)
        self._solver = Solver(solver, timeout=timeout)
        self._columns: dict[tuple[tuple[str, int], ...], dict[str, Array]] = {}
        self._bitmaps: dict[tuple[tuple[tuple[str, int], ...], Term], int | None] = {}
        self._joined: dict[frozenset[int], Component] = {}
        self._implied: dict[tuple[Term, Term], bool] = {}
        self._valid: dict[Term, bool] = {}
        self._alive: list[Component] = []  # keeps ids in _joined valid
        self.queries = 0
        self.kept = 0
        self.roots: dict[str, Component] = {}
        domain = tuple(domain)
        for condition in domain:
            for name, bits in _bounded(condition):
                self._bits[name] = min(self._bits[name], bits)
        for name, width in widths.items():
            variables = ((name, width),)
            self.roots[name] = Component(variables, frozenset(), self._bitmap_of(variables, frozenset()))
        for condition in domain:
            self.assume(self.roots, condition)

    # ---------------------------------------------------------------------------------------------- assumptions

    def assume(self, components: dict[str, Component], condition: Term) -> bool:
        """Add a condition to the components of its variables; False if a bitmap shows that it adds nothing."""
        changed = False
        for part in _conjuncts(condition):
            component = self._component(components, part)
            known = component.steps.get(part)
            if known is None:
                known = component.steps[part] = self._extend(component, part)
            if known is not component:
                changed = True
                for name, _ in known.variables:
                    components[name] = known
        return changed

    def _component(self, components: Mapping[str, Component], condition: Term) -> Component:
        """The component of a condition's variables, joined of several if need be."""
        names = condition.variables
        first = components[next(iter(names))]
        if len(names) == 1:
            return first
        distinct = {id(c): c for c in (components[name] for name in names)}
        if len(distinct) == 1:
            return first
        key = frozenset(distinct)
        joined = self._joined.get(key)
        if joined is None:
            parts = list(distinct.values())
            variables = tuple(sorted(v for part in parts for v in part.variables))
            conditions = frozenset().union(*[part.conditions for part in parts])
            joined = Component(variables, conditions, self._bitmap_of(variables, conditions))
            self._joined[key] = joined
            self._alive.extend(parts)
        return joined

    def _extend(self, component: Component, condition: Term) -> Component:
        if condition in component.conditions:
            return component
        bitmap = None
        if component.bitmap is not None:
            allowed = self._bitmap(component.variables, condition)
            if allowed is not None:
                bitmap = component.bitmap & allowed
                if bitmap == component.bitmap:
                    return component
        return Component(component.variables, component.conditions | {condition}, bitmap)

    # ---------------------------------------------------------------------------------------------- questions

    def otherwise(self, components: Mapping[str, Component], excluded: tuple[Term, ...]) -> Model | None:
        """An assignment to the variables involved under which none of `excluded` holds, or None if there is none.

        Raises GaveUp if the solver does.
        """
        together = self._component(components, excluded[0])
        for condition in excluded[1:]:
            if not condition.variables <= {name for name, _ in together.variables}:
                together = self._component(components, t.conj(*excluded))
                break
        if excluded in together.negations:
            self.kept += 1
            return together.negations[excluded]
        answer = together.negations[excluded] = self._ask(together, excluded)
        return answer

    def _ask(self, component: Component, excluded: tuple[Term, ...]) -> Model | None:
        bitmap = component.bitmap
        if bitmap is not None:
            for condition in excluded:
                held = self._bitmap(component.variables, condition)
                if held is None:
                    break
                bitmap &= ~held
            else:
                self.kept += 1
                if bitmap == 0:
                    return None
                return self._assignment(component.variables, (bitmap & -bitmap).bit_length() - 1)
        return self.solve([*component.conditions, *map(t.negate, excluded)], component.variables)

    def solve(self, conditions: Iterable[Term], variables: Iterable[tuple[str, int]]) -> Model | None:
        """Ask the solver."""
        self.queries += 1
        solver = self._solver
        solver.push()
        try:
            for condition in conditions:
                solver.add(condition)
            answer = solver.check()
            if answer is Answer.UNKNOWN:
                raise GaveUp
            if answer is Answer.UNSAT:
                return None
            return solver.model([t.var(name, width) for name, width in variables])
        finally:
            solver.pop()

    def allowed_values(self, components: Mapping[str, Component], term: Term) -> Array | None:
        """A superset of the values that a term can have, if its variables are few bits."""
        together = self._component(components, term)
        if term not in together.values:
            together.values[term] = self._values(together, term)
        return together.values[term]

    def _values(self, together: Component, term: Term) -> Array | None:
        variables = together.variables
        if together.bitmap is None:
            names = sorted(term.variables)
            variables = tuple((name, self._widths[name]) for name in names)
            if not self._is_narrow(variables):
                return self._slice_values(together, term)
        values = evaluate_vector(term, self._column(variables))
        if values is None:
            return None
        if together.bitmap is not None:
            rows = 1 << self._size(variables)
            raw = together.bitmap.to_bytes(max(1, rows // 8), "little")
            values = values[np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")[:rows].astype(bool)]
        if term.width <= NARROW_BITS:
            # A table of all values is much quicker than sorting them.
            return np.flatnonzero(np.bincount(values.astype(np.int64), minlength=1)).astype(np.uint64)
        return np.unique(values)

    def _slice_values(self, together: Component, term: Term) -> Array | None:
        """The same for a narrow slice of wide variables: what the conditions on this very slice leave."""
        if term.width > NARROW_BITS:
            return None
        values = np.arange(1 << term.width, dtype=np.uint64)
        for condition in together.conditions:
            if depends_only_on(condition, term):
                holds = evaluate_vector(condition, {}, {term: values})
                if holds is not None:
                    values = values[holds.astype(bool)]
        return values

    def is_implied(self, components: Mapping[str, Component], condition: Term) -> bool:
        """Whether what was assumed implies a condition; False also where only the solver could tell."""
        together = self._component(components, condition)
        if together.bitmap is None:
            return condition in together.conditions
        held = self._bitmap(together.variables, condition)
        return held is not None and together.bitmap & ~held == 0

    def is_valid(self, condition: Term) -> bool:
        """Whether a condition holds whatever its variables are; False also where the solver cannot tell."""
        known = self._valid.get(condition)
        if known is None:
            try:
                known = self.solve([t.negate(condition)], ()) is None
            except GaveUp:
                known = False
            self._valid[condition] = known
        return known

    def implies(self, given: Term, condition: Term) -> bool:
        """Whether one condition implies another; False also where that is not seen because they are over many bits."""
        key = (given, condition)
        known = self._implied.get(key)
        if known is None:
            known = self._implied[key] = self._seen_to_imply(given, condition)
        return known

    def _seen_to_imply(self, given: Term, condition: Term) -> bool:
        names = sorted(given.variables | condition.variables)
        variables = tuple((name, self._widths[name]) for name in names)
        if self._is_narrow(variables):
            first, second = self._bitmap(variables, given), self._bitmap(variables, condition)
            return first is not None and second is not None and first & ~second == 0
        # Both may be about one narrow slice of a wide variable.
        for part in _narrow_slices(given):
            if depends_only_on(given, part) and depends_only_on(condition, part):
                values = np.arange(1 << part.width, dtype=np.uint64)
                holds, implied = (evaluate_vector(c, {}, {part: values}) for c in (given, condition))
                return holds is not None and implied is not None and not np.any(holds & ~implied)
        return False

    # ---------------------------------------------------------------------------------------------- bitmaps

    def _size(self, variables: tuple[tuple[str, int], ...]) -> int:
        return sum(self._bits[name] for name, _ in variables)

    def _is_narrow(self, variables: tuple[tuple[str, int], ...]) -> bool:
        is_bounded = any(self._bits[name] < width for name, width in variables)
        return self._size(variables) <= (_BOUNDED_BITS if is_bounded else NARROW_BITS)

    def _assignment(self, variables: tuple[tuple[str, int], ...], index: int) -> Model:
        model: Model = {}
        for name, _ in reversed(variables):
            model[name] = index & ((1 << self._bits[name]) - 1)
            index >>= self._bits[name]
        return model

    def _column(self, variables: tuple[tuple[str, int], ...]) -> dict[str, Array]:
        columns = self._columns.get(variables)
        if columns is None:
            shift = self._size(variables)
            index = np.arange(1 << shift, dtype=np.uint64)
            columns = {}
            for name, _ in variables:
                shift -= self._bits[name]
                columns[name] = index >> np.uint64(shift) & np.uint64((1 << self._bits[name]) - 1)
            self._columns[variables] = columns
        return columns

    def _bitmap(self, variables: tuple[tuple[str, int], ...], condition: Term) -> int | None:
        key = (variables, condition)
        if key not in self._bitmaps:
            values = evaluate_vector(condition, self._column(variables))
            if values is None:
                self._bitmaps[key] = None
            else:
                packed = np.packbits(values.astype(bool), bitorder="little")
                self._bitmaps[key] = int.from_bytes(packed.tobytes(), "little")
        return self._bitmaps[key]

    def _bitmap_of(self, variables: tuple[tuple[str, int], ...], conditions: frozenset[Term]) -> int | None:
        if not self._is_narrow(variables):
            return None
        bitmap = (1 << (1 << self._size(variables))) - 1
        for condition in conditions:
            allowed = self._bitmap(variables, condition)
            if allowed is None:
                return None
            bitmap &= allowed
        return bitmap


def _bounded(condition: Term) -> list[tuple[str, int]]:
    """The variables of which a condition of a domain leaves the lowest bits only, with how many these are."""
    if condition.op != "not" or condition.args[0].op != "bvult":
        return []
    most, bounded = condition.args[0].args
    parts = bounded.args if bounded.op == "concat" else (bounded,)
    if most.op != "const" or any(part.op != "var" for part in parts):
        return []
    left, found = most.args[0].bit_length(), []
    for part in reversed(parts):
        found.append((part.args[0], min(left, part.width)))
        left -= found[-1][1]
    return found


def _conjuncts(condition: Term) -> tuple[Term, ...]:
    """The parts that hold one by one; they need not be put into one component."""
    if condition.op == "and":
        return condition.args
    if condition.op == "not" and condition.args[0].op == "or":
        return tuple(t.negate(part) for part in condition.args[0].args)
    return (condition,)


def depends_only_on(term: Term, part: Term) -> bool:
    """Does `term` depend on inputs only through one sub-term?"""
    seen = {part}
    stack = [term]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        if node.op == "var":
            return False
        seen.add(node)
        stack.extend(a for a in node.args if a.__class__ is Term)
    return True


def _narrow_slices(term: Term) -> list[Term]:
    """The narrow slices of variables in a term."""
    found, seen, stack = [], set(), [term]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op == "extract" and node.args[2].op == "var" and node.width <= NARROW_BITS:
            found.append(node)
        else:
            stack.extend(a for a in node.args if a.__class__ is Term)
    return found
