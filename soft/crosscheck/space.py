"""Parts of the input space: what each field may be, and what connects several fields.

A state is a conjunction of conditions in two parts: the allowed values of every field, as intervals, and *links*:
conditions on several fields at once, kept by groups that share no field. Groups and free fields are independent, so a
state is satisfiable exactly if each group is, and only a group whose fields or conditions changed has to be looked at
again. That is done with inputs found before, then with answers given before, then field by field if the group is a
choice between conditions on one field each, then with the solver.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soft.crosscheck.checksums import Checksums
from soft.crosscheck.stop import Stop
from soft.crosscheck.substitute import substitute
from soft.crosscheck.values import (
    Intervals,
    complement,
    contains,
    full,
    includes,
    intersect,
    nearest,
    single,
    solutions,
    solutions_within,
    split,
    union,
)
from soft.scenarios.model import Scenario
from soft.solve import terms
from soft.solve.evaluate import evaluate
from soft.solve.solver import Answer, Solver
from soft.solve.terms import FALSE, TRUE, Term

Input = dict[str, int]
Choice = tuple[str, Intervals]  # a field, and its values

# Inputs that are kept for each group of links: the last ones found are the likeliest to fit again.
_MOST_MODELS = 8
# Ways to choose that are tried before the solver is asked.
_MOST_CHOICES = 64
# Answers and intersections that are kept; past this many they are dropped, so that memory stays bounded.
_MOST_KEPT = 200_000
# Sets of more intervals than this are told to the solver by the conditions that they come from.
_MANY = 32


@dataclass(frozen=True, slots=True)
class Link:
    """Conditions on several fields that belong together because they share some."""

    variables: frozenset[str]
    conditions: frozenset[Term]


@dataclass(frozen=True, slots=True)
class State:
    """A part of the input space. A field that `values` lacks is free within its domain.

    `certain` is False if the solver gave up somewhere: then the part may be empty.
    """

    values: Mapping[str, Intervals]
    links: tuple[Link, ...] = ()
    certain: bool = True


class Space:
    """The input space of a scenario, with the solver and everything that was found out about its parts."""

    def __init__(
        self, scenario: Scenario, solver: Solver, headed: frozenset[str] = frozenset(), stop: Stop | None = None
    ) -> None:
        """`headed` are fields with one bit of another meaning above them, see soft.crosscheck.slices."""
        self.scenario = scenario
        self.headed = headed
        self.stop = stop or Stop()
        self.solver = solver
        self.kept = 0  # questions that needed no solver
        self.widths = {variable.name: variable.width for variable in scenario.variables}
        self._full = {name: full(width) for name, width in self.widths.items()}
        self._solutions: dict[Term, Intervals | None] = {}
        # Sets of values are known by their identity: the same ones come again and again, and some are long. Each entry
        # holds the sets that its key names, so that no other gets their number.
        self._intersections: dict[tuple[int, int], tuple[Intervals, Intervals, Intervals]] = {}
        self._within: dict[tuple[Term, int], tuple[Intervals, Intervals | None]] = {}
        self._complements: dict[int, tuple[Intervals, Intervals]] = {}
        self._meanings: dict[int, tuple[Intervals, Term]] = {}
        self._models: dict[frozenset[Term], list[Input]] = {}
        self._possible: dict[Term, bool] = {}
        self._parts: dict[Term, tuple[Term, ...]] = {}
        self._checksums = Checksums()
        # Nine conditions of ten are on one field alone: the field, and the values that satisfy it.
        self._plain: dict[Term, tuple[str, Intervals]] = {}
        self._choices: dict[Term, tuple[Choice, ...]] = {}
        self._substituted: dict[tuple[Term, frozenset[tuple[str, int]]], Term] = {}
        self._answers: dict[tuple[frozenset[Term], tuple[int, ...]], tuple[tuple[Intervals, ...], Answer]] = {}
        everything: State | None = State({})
        for condition in scenario.domain:
            assert everything is not None
            everything = self.assume(everything, condition)
        assert everything is not None, "a scenario's domain holds its defaults"
        self.everything = everything
        self.domain = {name: everything.values.get(name, self._full[name]) for name in self.widths}

    # ---------------------------------------------------------------------------------------------- conditions

    def assume(self, state: State, condition: Term) -> State | None:
        """The part of a state in which a condition holds; None if there is none."""
        plain = self._plain.get(condition)
        if plain is not None:
            self.kept += 1
            return self.restrict(state, *plain)
        for part in self.conjuncts(condition):
            narrowed = self._assume(state, part)
            if narrowed is None:
                return None
            state = narrowed
        return state

    def conjuncts(self, condition: Term) -> tuple[Term, ...]:
        """The parts of a condition that hold one by one."""
        parts = self._parts.get(condition)
        if parts is None:
            parts = self._parts[condition] = _conjuncts(condition)
        return parts

    def assume_all(self, state: State, conditions: Iterable[Term]) -> State | None:
        found: State | None = state
        for condition in conditions:
            if found is None:
                return None
            found = self.assume(found, condition)
        return found

    def possible(self, condition: Term) -> bool:
        """Whether a condition can hold at all. Of two checksums that is asked for many paths, and is a long proof."""
        known = self._possible.get(condition)
        if known is None:
            known = self._possible[condition] = self.assume(self.everything, condition) is not None
        return known

    def restrict(self, state: State, name: str, allowed: Intervals) -> State | None:
        """The part of a state in which a field has one of the given values."""
        # As `common`, without two calls: this is done a hundred thousand times.
        old = state.values.get(name) or self._full[name]
        known = self._intersections.get((id(old), id(allowed)))
        new = self._intersected(name, old, allowed) if known is None else known[2]
        if new is old:
            return state
        if not new:
            return None
        narrowed = State({**state.values, name: new}, state.links, state.certain)
        for link in state.links:
            if name in link.variables:
                return self._narrowed(narrowed, link, name)
        return narrowed

    def narrowed(self, state: State, name: str, allowed: Intervals) -> State | None:
        """As `restrict`, but no solver is asked: what the links leave of it is for `decided` to say."""
        new = self.common(state, name, allowed)
        if new is self.allowed(state, name):
            return state
        return State({**state.values, name: new}, state.links, state.certain) if new else None

    def decided(self, state: State) -> State | None:
        """A state after its links were looked at; None if they leave nothing of it."""
        found: State | None = state
        for link in state.links:
            found = None if found is None else self._decided(found, link)
        return found

    def common(self, state: State, name: str, allowed: Intervals) -> Intervals:
        """The values of a field in a state that are among some; the very same ones if all are."""
        old = self.allowed(state, name)
        known = self._intersections.get((id(old), id(allowed)))
        return self._intersected(name, old, allowed) if known is None else known[2]

    def others(self, name: str, allowed: Intervals) -> Intervals:
        """All values of a field but some."""
        known = self._complements.get(id(allowed))
        if known is None:
            if len(self._complements) > _MOST_KEPT:
                self._complements.clear()
            known = self._complements[id(allowed)] = allowed, complement(allowed, self.widths[name])
        return known[1]

    def _intersected(self, name: str, old: Intervals, allowed: Intervals) -> Intervals:
        if len(self._intersections) > _MOST_KEPT:
            self._intersections.clear()
        new = intersect(old, allowed)
        if new == old:
            new = old
        elif new == allowed:
            new = allowed
        elif len(new) > _MANY:
            term = terms.conj(self._meaning(name, old), self._meaning(name, allowed))
            self._meanings[id(new)] = new, term
        self._intersections[id(old), id(allowed)] = old, allowed, new
        return new

    def _meaning(self, name: str, values: Intervals) -> Term:
        """That a field has one of some values."""
        known = self._meanings.get(id(values))
        return member(terms.var(name, self.widths[name]), values) if known is None else known[1]

    def _narrowed(self, state: State, link: Link, name: str) -> State | None:
        """A state after one field of a group has lost values: what equals it loses them too."""
        for condition in link.conditions:
            if condition.op == "=" and name in condition.variables:
                left, right = condition.args
                if left.op == "var" and right.op == "var":
                    other = right.args[0] if left.args[0] == name else left.args[0]
                    allowed = state.values[name]
                    if not includes(allowed, self.allowed(state, other)):
                        return self.restrict(state, other, allowed)
        return self._decided(state, link)

    def allowed(self, state: State, name: str) -> Intervals:
        """The values that a field may have by itself: links may exclude some of them."""
        return state.values.get(name) or self._full[name]

    def _assume(self, state: State, condition: Term) -> State | None:
        names = condition.variables
        if len(names) == 1:
            (name,) = names
            allowed = self.within(condition, name, self.allowed(state, name))
            if allowed is not None:
                self.kept += 1
                return self.restrict(state, name, allowed)
        elif not names:
            return state if evaluate(condition, {}) else None
        else:
            fixed = self._fixed(state, names)
            if len(fixed) >= len(names) - 1:
                with contextlib.suppress(RecursionError):  # a stranger's term may nest deeper than the constructors go
                    return self._assume(state, self._with(condition, fixed))
        link = Link(names, frozenset((condition,)))
        apart = []
        for other in state.links:
            if other.variables.isdisjoint(names):
                apart.append(other)
            elif condition in other.conditions:
                return state
            else:
                link = Link(link.variables | other.variables, link.conditions | other.conditions)
        linked = State(state.values, (*apart, link), state.certain)
        if condition.op == "=" and condition.args[0].op == "var" and condition.args[1].op == "var":
            left, right = (argument.args[0] for argument in condition.args)
            both = self.restrict(linked, left, self.allowed(state, right))
            both = None if both is None else self.restrict(both, right, self.allowed(both, left))
            return None if both is None else self._decided(both, link)
        return self._decided(linked, link)

    def _with(self, condition: Term, fixed: Input) -> Term:
        """A condition with the values of some fields in it: the same ones come with many paths."""
        key = condition, frozenset(fixed.items())
        found = self._substituted.get(key)
        if found is None:
            if len(self._substituted) > _MOST_KEPT:
                self._substituted.clear()
            found = self._substituted[key] = substitute(condition, fixed)
        return found

    def solutions(self, condition: Term, name: str) -> Intervals | None:
        """The values of a field that satisfy a condition on it alone, if they are a few intervals."""
        if condition not in self._solutions:
            if len(self._solutions) > _MOST_KEPT:
                self._solutions.clear()
                self._plain.clear()
            found = self._solutions[condition] = self._solved(condition, name)
            if found is not None:
                self._plain[condition] = name, found
            if found is not None and len(found) > _MANY:
                self._meanings[id(found)] = found, condition
        return self._solutions[condition]

    def within(self, condition: Term, name: str, allowed: Intervals) -> Intervals | None:
        """The values of a field that satisfy a condition on it alone, as far as the others are not allowed anyway."""
        found = self.solutions(condition, name)
        if found is None and allowed is not self._full[name]:
            key = condition, id(allowed)
            if key not in self._within:
                if len(self._within) > _MOST_KEPT:
                    self._within.clear()
                self._within[key] = allowed, solutions_within(condition, name, self.widths[name], allowed)
            found = self._within[key][1]
        return found

    def _solved(self, condition: Term, name: str) -> Intervals | None:
        width = self.widths[name]
        if name not in self.headed:
            return solutions(condition, name, width)
        # With the bit above decided, a masked comparison is a plain one.
        found: list[tuple[int, int]] = []
        rest = terms.var(f"{name} without its head", width - 1)
        for head in (0, 1):
            plain = substitute(condition, {name: terms.concat(terms.const(head, 1), rest)})
            below = solutions(plain, rest.args[0], width - 1)
            if below is None:
                return None
            found += [(low + (head << width - 1), high + (head << width - 1)) for low, high in below]
        return union(tuple(found))

    def _fixed(self, state: State, names: Iterable[str]) -> Input:
        values = state.values
        fixed: Input = {}
        for name in names:
            allowed = values.get(name)
            if allowed is not None and len(allowed) == 1 and allowed[0][0] == allowed[0][1]:
                fixed[name] = allowed[0][0]
        return fixed

    # ---------------------------------------------------------------------------------------------- answers

    def _decided(self, state: State, link: Link) -> State | None:
        """The state if a group of links can be satisfied in it."""
        answer = self._ask(state, link)
        if answer is Answer.SAT:
            return state
        return None if answer is Answer.UNSAT else State(state.values, state.links, certain=False)

    def _ask(self, state: State, link: Link) -> Answer:
        names = sorted(link.variables)
        allowed = tuple(self.allowed(state, name) for name in names)
        models = self._models.setdefault(link.conditions, [])
        if self._fitting(models, names, allowed) is not None:
            self.kept += 1
            return Answer.SAT
        key = (link.conditions, tuple(map(id, allowed)))
        known = self._answers.get(key)
        if known is not None:
            self.kept += 1
            return known[1]
        if len(self._answers) > _MOST_KEPT:
            self._answers.clear()
        choices = [self._choices_of(condition) for condition in _ordered(link.conditions)]
        if all(choices) and math.prod(map(len, choices)) <= _MOST_CHOICES:
            self.kept += 1
            chosen = self._chosen(dict(zip(names, allowed, strict=True)), choices)
            answer = Answer.UNSAT if chosen is None else Answer.SAT
            if chosen is not None:
                models.append({name: values[0][0] for name, values in chosen.items()})
                del models[:-_MOST_MODELS]
            self._answers[key] = allowed, answer
            return answer
        conditions = [self._settled(state, condition) for condition in _ordered(link.conditions)]
        if FALSE in conditions:
            self.kept += 1
            answer = Answer.UNSAT
        else:
            answer = self.solver.check([*conditions, *self._membership(names, allowed)])
        if answer is Answer.SAT:
            models.append(self.solver.model([terms.var(name, self.widths[name]) for name in names]))
            del models[:-_MOST_MODELS]
        self._answers[key] = allowed, answer
        return answer

    def _settled(self, state: State, condition: Term) -> Term:
        """A condition where it is in question, without what a solver would take long for."""
        if not self._checksums.concerns(condition):
            return condition
        with contextlib.suppress(RecursionError):  # a stranger's term may nest deeper than the constructors go
            fixed = self._fixed(state, condition.variables)
            return self._checksums.settled(self._with(condition, fixed) if fixed else condition)
        return condition

    def _choices_of(self, condition: Term) -> tuple[Choice, ...]:
        """A condition as a choice between conditions on one field each, if it is one: that some field does not match.

        Empty if it is something else.
        """
        known = self._choices.get(condition)
        if known is None:
            known = self._choices[condition] = tuple(self._found_choices(condition))
        return known

    def _found_choices(self, condition: Term) -> list[Choice]:
        found: list[Choice] = []
        for part in self.conjuncts(terms.negate(condition)):
            if len(part.variables) != 1:
                return []
            (name,) = part.variables
            values = self.solutions(terms.negate(part), name)
            if values is None:
                return []
            found.append((name, values))
        return found

    def _chosen(
        self, values: Mapping[str, Intervals], choices: Sequence[Sequence[Choice]]
    ) -> Mapping[str, Intervals] | None:
        """Values of fields with which one of each of the choices holds."""
        if not choices:
            return values
        for name, allowed in choices[0]:
            known = self._intersections.get((id(values[name]), id(allowed)))
            new = self._intersected(name, values[name], allowed) if known is None else known[2]
            found = self._chosen({**values, name: new}, choices[1:]) if new else None
            if found is not None:
                return found
        return None

    def _fitting(self, models: list[Input], names: list[str], allowed: tuple[Intervals, ...]) -> Input | None:
        for model in reversed(models):
            if all(contains(values, model[name]) for name, values in zip(names, allowed, strict=True)):
                return model
        return None

    def _membership(self, names: Iterable[str], allowed: Iterable[Intervals]) -> list[Term]:
        return [
            self._meaning(name, values)
            for name, values in zip(names, allowed, strict=True)
            if values is not self._full[name]
        ]

    # ---------------------------------------------------------------------------------------------- inputs

    def example(self, state: State, wanted: Mapping[str, int] | None = None) -> Input | None:
        """An input of a state, as near to the wanted one (by default, the scenario's defaults) as is easy to find.

        None if the solver gives up, or finds that there is none.
        """
        wanted = self.scenario.defaults if wanted is None else wanted
        linked = [name for link in state.links for name in sorted(link.variables)]
        for name in linked:
            # One field after the other gets the value that is wanted, if the others then still have one.
            near = self.restrict(state, name, single(nearest(self.allowed(state, name), wanted[name])))
            if near is not None and near.certain:
                state = near
        values = {name: nearest(self.allowed(state, name), wanted[name]) for name in self.widths}
        for link in state.links:
            names = sorted(link.variables)
            if self._ask(state, link) is not Answer.SAT:
                return None
            model = self._fitting(
                self._models[link.conditions], names, tuple(self.allowed(state, name) for name in names)
            )
            if model is None:  # the answer is older than the inputs that are kept
                model = self._fresh(link, names, state)
                if model is None:
                    return None
            values.update(model)
        return values

    def _fresh(self, link: Link, names: list[str], state: State) -> Input | None:
        allowed = [self.allowed(state, name) for name in names]
        if self.solver.check([*_ordered(link.conditions), *self._membership(names, allowed)]) is not Answer.SAT:
            return None
        return self.solver.model([terms.var(name, self.widths[name]) for name in names])

    def conditions(self, state: State) -> list[Term]:
        """A state as conditions."""
        names = sorted(state.values)
        linked = [condition for link in state.links for condition in _ordered(link.conditions)]
        return [*self._membership(names, [state.values[name] for name in names]), *linked]


def member(term: Term, values: Intervals) -> Term:
    """That a term has one of some values."""
    width = term.width
    choices = []
    for low, high in values:
        if low == high:
            choices.append(terms.eq(term, terms.const(low, width)))
        else:
            lower = terms.ule(terms.const(low, width), term) if low else TRUE
            upper = terms.ule(term, terms.const(high, width)) if high < (1 << width) - 1 else TRUE
            choices.append(terms.conj(lower, upper))
    return terms.disj(*choices)


def _ordered(conditions: frozenset[Term]) -> list[Term]:
    return sorted(conditions, key=lambda term: term.uid)


def _conjuncts(condition: Term) -> tuple[Term, ...]:
    """The parts of a condition that hold one by one; those on one and the same field stay together."""
    if condition.op == "not" and condition.args[0].op == "or":
        condition = terms.conj(*[terms.negate(part) for part in condition.args[0].args])
    if len(condition.variables) < 2:
        return (condition,)
    try:
        parts = split(condition)
    except RecursionError:  # a stranger's term may nest deeper than the constructors go
        return (condition,)
    grouped: dict[frozenset[str], list[Term]] = {}
    for part in parts:
        grouped.setdefault(part.variables, []).append(part)
    return tuple(terms.conj(*group) for group in grouped.values())
