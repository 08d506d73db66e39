"""One path: the conditions under which a run goes the way it goes, and what it decides where a value is symbolic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.feasible import Component, Feasibility, GaveUp, Model, depends_only_on
from harness.machine.ends import Fault
from harness.machine.memory import Memory
from harness.machine.values import Sym, Value, concrete, make, term_of
from harness.marks import APPROXIMATE, blur, is_marked, is_within, mark, places, span
from harness.unwritten import Unwritten
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.solve.vector import Array, evaluate_vector

# A read through a symbolic address of up to this many places becomes a term over all of them; beyond, the address is
# pinned and its other values are paths of their own.
MOST_PLACES = 512
# How many values of one pinned term are followed; beyond, the bundle is partial and says so.
MOST_CHOICES = 4096
# Pointers to memory of which so many bytes are the same count as pointers to the same: empty tables, for one.
_LOOK_AT = 32
# Nodes of an address term that are looked at in the search for its narrow core.
_CORE_NODES = 400


@dataclass(frozen=True, slots=True)
class Fork:
    """Where an input leaves paths that are known already: behind `stem`, where they went on with `taken`.

    The stem is in terms of a bundle, the rest in those of the explorer (see harness.pieces).
    """

    stem: tuple[Term, ...]
    taken: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """What to run next: an input, from which decision on its alternatives are new, and the choices already taken there.

    The decision `bound` may be a choice among many; `taken` has the conditions of those already followed. A resumed
    search knows no numbers of decisions: it has a `fork` instead.
    """

    values: Mapping[str, int]
    bound: int = 0
    taken: tuple[Term, ...] = ()
    fork: Fork | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A condition that this run met, with what was assumed of its variables before."""

    condition: Term
    before: Mapping[str, Component]
    is_choice: bool


@dataclass(frozen=True, slots=True)
class PathState:
    """What a path has decided up to one moment."""

    decisions: tuple[Decision, ...]
    components: Mapping[str, Component]
    seen: frozenset[Term]
    given_up: tuple[str, ...]
    needs_written: bool


class Path:
    """The decisions of one run. Serves the machine wherever a value depends on the input."""

    def __init__(
        self,
        feasibility: Feasibility,
        job: Job,
        memory: Memory,
        outside: Callable[[Term], Term] = lambda term: term,
        unwritten: Unwritten | None = None,
    ) -> None:
        self.values = job.values
        self.decisions: list[Decision] = []
        self.marks: dict[str, None] = {}
        self.given_up: dict[str, None] = {}
        self._feasibility = feasibility
        self._job = job
        self._memory = memory
        self._outside = outside
        self._unwritten = unwritten
        self.needs_written = False
        """Whether the path, or what comes out of it, may be another if bytes that were never written are."""
        self._components: dict[str, Component] = dict(feasibility.roots)
        self._seen: set[Term] = set()
        self._evaluated: dict[Term, int] = {}

    def save(self) -> PathState:
        return PathState(
            tuple(self.decisions),
            dict(self._components),
            frozenset(self._seen),
            tuple(self.given_up),
            self.needs_written,
        )

    def restore(self, state: PathState) -> None:
        """Go on from there, with another input that leads there."""
        self.decisions = list(state.decisions)
        self.given_up = dict.fromkeys(state.given_up)
        self.needs_written = state.needs_written
        self._components = dict(state.components)
        self._seen = set(state.seen)

    # ---------------------------------------------------------------------------------------------- for the machine

    def branch(self, condition: Term, holds: bool) -> None:
        condition = self.written(condition)
        self._decide(condition if holds else t.negate(condition), is_choice=False)

    def written(self, term: Term) -> Term:
        """A term that this path depends on, without bytes that were never written."""
        if self._unwritten is None:
            return term
        changed = self._unwritten.known(term)
        if changed is not term and not self.needs_written:
            self.needs_written = self._unwritten.matters(term)
        return changed

    def _written_value(self, value: Sym) -> Sym:
        term = self.written(value.term)
        return value if term is value.term else Sym(term, value.value)

    def settled(self, condition: Term, holds: bool) -> bool:
        """Whether a condition cannot go otherwise here, as far as that is cheap to see."""
        if self._unwritten is not None and self._unwritten.known(condition) is not condition:
            return False
        wanted = condition if holds else t.negate(condition)
        if is_marked(wanted):
            self._judge(wanted)
            return True
        return wanted in self._seen or self._feasibility.is_implied(self._components, wanted)

    def pin(self, value: Sym) -> int:
        """Fix a value by a condition on its narrow core; its other values are alternatives of one choice."""
        value = self._written_value(value)
        if value.term.op == "const" or self._is_approximate(value.term):
            return value.value
        core = narrow_core(value.term)
        self._decide(self._same(value, core), is_choice=True)
        return value.value

    def _same(self, value: Sym, core: Term) -> Term:
        """That a value is what it is in this run: all values of its core that give it, where they can be listed."""
        allowed = self._feasibility.allowed_values(self._components, core) if core is not value.term else None
        if allowed is not None:
            results = evaluate_vector(value.term, {}, {core: allowed})
            if results is not None:
                return member(core, allowed[results == np.uint64(value.value)], allowed)
        return t.eq(core, t.const(self._evaluate(core), core.width))

    def most(self, value: Sym) -> int | None:
        """An upper bound of a value, or None if none is known that is worth the name."""
        value = self._written_value(value)
        if is_marked(value.term):
            return span(value.term)[1]
        allowed = self._allowed(value.term)
        return int(allowed.max()) if allowed is not None and len(allowed) else None

    def bounds(self, value: Sym) -> tuple[int, int]:
        """The least and the largest number that a value can be, as far as that is cheap to see."""
        value = self._written_value(value)
        allowed = None if is_marked(value.term) else self._allowed(value.term)
        if allowed is None or not len(allowed):
            return span(value.term)
        return int(allowed.min()), int(allowed.max())

    def _allowed(self, term: Term) -> Array | None:
        """A superset of the values that a term can have, if they can be listed."""
        if term.op == "const":
            return _array(term.args)
        core = narrow_core(term)
        allowed = self._feasibility.allowed_values(self._components, core)
        return allowed if allowed is None or core is term else evaluate_vector(term, {}, {core: allowed})

    def place(self, address: Sym, size: int) -> int:
        """Where a store through a symbolic address goes."""
        return address.value if self._places_of(address, size, "w") is not None else self.pin(address)

    def stored(self, address: Sym, size: int) -> None:
        """After such a store: where its place holds for this input only, so does what stands at all that it may be."""
        where = self._places_of(address, size, "w")
        if where is not None:
            blur(self._memory, where)

    def _places_of(self, address: Sym, size: int, how: str) -> range | None:
        """All bytes at an address that holds for this input only, if they are known and there."""
        where = places(address.term, size) if is_marked(address.term) else None
        return where if where is not None and is_within(self._memory, where, how) else None

    def simplify(self, value: Value, given: Term) -> Value:
        """The same value wherever `given` holds: without the choices that it decides."""
        if isinstance(value, int) or is_marked(value.term) or is_marked(given):
            return value
        term = value.term
        while term.op == "ite":
            condition, yes, no = term.args
            if self._feasibility.implies(given, condition):
                term = yes
            elif self._feasibility.implies(given, t.negate(condition)):
                term = no
            else:
                break
        return make(term, value.value) if term is not value.term else value

    def read(self, address: Sym, size: int) -> Value:
        """A load through a symbolic address: one term over the places that it can reach, if they are few."""
        address = self._written_value(address)
        if self._places_of(address, size, "r") is not None:
            unknown = t.concat(*(mark() for _ in range(size)))
            return Sym(unknown, concrete(self._memory.load(address.value, size)))
        if address.term.op == "const" or self._is_approximate(address.term):
            return self._memory.load(address.value, size)
        core = narrow_core(address.term)
        places = self._places(address.term, core)
        if places is None:
            return self._memory.load(self.pin(address), size)
        mapped = {value: place for value, place in places.items() if self._is_readable(place, size)}
        here = self._evaluate(core)
        if len(mapped) < len(places):
            inside = member(core, _array(mapped), _array(places))
            self._decide(inside if here in mapped else t.negate(inside), is_choice=False)
            if here not in mapped:
                raise Fault(address.value, "read")
        contents: dict[Value | Term, list[int]] = {}
        for value, place in mapped.items():
            loaded = self._memory.load(place, size)
            contents.setdefault(loaded.term if isinstance(loaded, Sym) else loaded, []).append(value)
        if len(contents) == 1:
            return self._memory.load(address.value, size)
        candidates = _array(mapped)
        if (
            size == 8
            and sum(isinstance(c, int) and self._memory.permissions(c >> 12) is not None for c in contents) > 1
        ):
            # A table of pointers: merged, every access behind it would be symbolic. Follow one pointer a path, or
            # all that point to the same content: what is read there is then no term.
            loaded = self._memory.load(address.value, size)
            here_is = self._pointed_to(loaded)
            contents = {c: group for c, group in contents.items() if self._pointed_to(c) == here_is}
            together = _array(value for group in contents.values() for value in group)
            self._decide(member(core, together, candidates), is_choice=True)
            if len(contents) == 1:
                return loaded
            candidates = together
        groups = sorted(contents.items(), key=lambda item: (-len(item[1]), item[1][0]))
        width = 8 * size
        result = _as_term(groups[0][0], width)
        for content, group in groups[1:]:
            result = t.ite(member(core, _array(group), candidates), _as_term(content, width), result)
        return make(result, concrete(self._memory.load(address.value, size)))

    # ---------------------------------------------------------------------------------------------- decisions

    def _decide(self, condition: Term, is_choice: bool) -> None:
        if condition.op == "const" or condition in self._seen:
            return
        if is_marked(condition):
            self._judge(condition)
            return
        self._seen.add(condition)
        before = {name: self._components[name] for name in condition.variables}
        if self._feasibility.assume(self._components, condition):
            self.decisions.append(Decision(condition, before, is_choice))

    def _is_approximate(self, term: Term) -> bool:
        """Whether a term holds for this input only: then nothing can be said about others, and the path tells so."""
        if not is_marked(term):
            return False
        self.marks[APPROXIMATE] = None
        return True

    def _judge(self, condition: Term) -> None:
        """A condition on what holds for this input only makes the path approximate, unless it holds for all inputs."""
        if APPROXIMATE not in self.marks and not self._feasibility.is_valid(condition):
            self.marks[APPROXIMATE] = None

    def alternatives(self) -> list[Job]:
        """The inputs that leave this path at each of its new decisions."""
        jobs = []
        bound, already = self._new_from()
        for number, decision in enumerate(self.decisions):
            if number < bound:
                continue
            earlier = already if number == bound and decision.is_choice else ()
            if len(earlier) >= MOST_CHOICES:
                self.given_up[f"more than {MOST_CHOICES} values of one pinned term"] = None
                continue
            try:
                model = self._other(decision, (*earlier, decision.condition))
            except GaveUp:
                self.given_up["the solver reached its time limit"] = None
                continue
            if model is None:
                continue
            values = {**self.values, **model}
            if decision.is_choice:
                jobs.append(Job(values, number, (*earlier, decision.condition)))
            else:
                jobs.append(Job(values, number + 1))
        return jobs

    def _new_from(self) -> tuple[int, tuple[Term, ...]]:
        """The first decision whose alternatives are new, and which of them were followed already."""
        fork = self._job.fork
        if fork is None:
            return self._job.bound, self._job.taken
        left = set(fork.stem)
        for number, decision in enumerate(self.decisions):
            # Decisions that could not go otherwise are not among a path's conditions: the fork is behind them.
            if not left and self._cuts(decision):
                return (number, fork.taken) if decision.is_choice else (number + 1, ())
            left.discard(self._outside(decision.condition))
        return len(self.decisions), ()

    def conditions(self) -> list[Term]:
        """The conditions that cut something off: those implied by the ones before are left out."""
        return [decision.condition for decision in self.decisions if self._cuts(decision)]

    def _cuts(self, decision: Decision) -> bool:
        """Whether a decision could have gone otherwise, as far as we know."""
        try:
            return self._other(decision, (decision.condition,)) is not None
        except GaveUp:
            return True

    def _other(self, decision: Decision, excluded: tuple[Term, ...]) -> Model | None:
        return self._feasibility.otherwise(decision.before, excluded)

    # ---------------------------------------------------------------------------------------------- addresses

    def _evaluate(self, term: Term) -> int:
        return evaluate(term, self.values, self._evaluated)

    def _pointed_to(self, content: Value | Term) -> object:
        """What a pointer points to, as far as it may be the same as what another does."""
        if not isinstance(content, int) or not self._is_readable(content, _LOOK_AT):
            return content.term if isinstance(content, Sym) else content
        return tuple(v if isinstance(v, int) else v.term for v in self._memory.read_values(content, _LOOK_AT))

    def _is_readable(self, address: int, size: int) -> bool:
        pages = {address >> 12, address + size - 1 >> 12}
        return all("r" in (self._memory.permissions(page) or "") for page in pages)

    def _places(self, address: Term, core: Term) -> dict[int, int] | None:
        """Value of the core → address, for a superset of the values that the core can have; None if they are many."""
        allowed = self._feasibility.allowed_values(self._components, core)
        if allowed is None or len(allowed) > MOST_PLACES:
            return None
        key = (address, core, allowed.tobytes())
        places = _places.get(key)
        if places is None:
            places = _places[key] = {value: evaluate(address, {}, {core: value}) for value in allowed.tolist()}
        return places


# The same table is read again and again; these forget everything before they take much memory.
_MOST_KEPT = 50_000
_places: dict[tuple[Term, Term, bytes], dict[int, int]] = {}
_members: dict[tuple[Term, bytes, bytes], Term] = {}


def _array(values: Iterable[int]) -> Array:
    return np.array(sorted(values), dtype=np.uint64)


def _as_term(content: Value | Term, width: int) -> Term:
    return content if isinstance(content, Term) else term_of(content, width)


def member(core: Term, chosen: Array, candidates: Array) -> Term:
    """That `core` is among `chosen`, where it is known to be among `candidates` (both sorted): as few ranges as go."""
    if len(chosen) == len(candidates):
        return t.TRUE
    key = (core, chosen.tobytes(), candidates.tobytes())
    found = _members.get(key)
    if found is None:
        if len(_members) > _MOST_KEPT:
            _members.clear()
            _places.clear()
        found = _members[key] = _ranges(core, chosen, candidates)
    return found


def _ranges(core: Term, chosen: Array, candidates: Array) -> Term:
    inside = np.isin(candidates, chosen, assume_unique=True)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(np.int8)))
    parts = []
    for first, behind in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        low, high = int(candidates[first]), int(candidates[behind - 1])
        bounds = []
        if low == high:
            bounds.append(t.eq(core, t.const(low, core.width)))
        else:
            if first:
                bounds.append(t.uge(core, t.const(low, core.width)))
            if behind < len(candidates):
                bounds.append(t.ule(core, t.const(high, core.width)))
        parts.append(t.conj(*bounds))
    return t.disj(*parts)


_cores: dict[Term, Term] = {}


def narrow_core(term: Term) -> Term:
    """The narrowest sub-term through which everything symbolic in `term` passes: the index behind an address."""
    found = _cores.get(term)
    if found is None:
        found = _cores[term] = _search_core(term)
    return found


def _search_core(term: Term) -> Term:
    nodes: dict[Term, None] = {}
    stack = [term]
    while stack and len(nodes) < _CORE_NODES:
        node = stack.pop()
        if node in nodes or node.op == "const":
            continue
        nodes[node] = None
        stack.extend(a for a in node.args if a.__class__ is Term)
    order = {node: i for i, node in enumerate(nodes)}
    for candidate in sorted(nodes, key=lambda n: (n.width, order[n])):
        is_narrower = 0 < candidate.width < term.width
        if is_narrower and candidate.variables == term.variables and depends_only_on(term, candidate):
            return candidate
    return term
