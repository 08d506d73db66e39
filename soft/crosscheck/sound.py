"""May conclusions be drawn from a bundle? Witnesses, overlapping paths, and what the paths leave out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from soft.bundle.check import MOST_WORK
from soft.bundle.model import Bundle
from soft.bundle.partition import Gap, Overlap, PartitionCheck
from soft.crosscheck.model import Doubt
from soft.crosscheck.space import Space
from soft.crosscheck.values import Intervals, contains
from soft.crosscheck.words import example_of
from soft.errors import SoftError
from soft.solve.evaluate import evaluate
from soft.solve.solver import Solver
from soft.solve.terms import Term

# Marks that an explorer sets on paths whose output may not be what the agent really does.
_DOUBTFUL = {
    "unstable": "depend on memory that the agent never wrote, or on the processor",
    "approximate": "have outputs that hold for one input only",
}


# Marks of a stranger may be many.
_MOST_MARKS = 10


@dataclass(frozen=True, slots=True)
class Soundness:
    """What a bundle is good for. `whole`: proved that its paths cover the whole input space and exclude each other."""

    whole: bool
    doubts: tuple[Doubt, ...]


def soundness(bundle: Bundle, label: str, space: Space) -> Soundness:
    """Refuses a bundle that contradicts itself; otherwise says what it leaves open."""
    _check_witnesses(bundle, space)
    solver = space.solver
    complete = bundle.manifest.complete
    doubts = _marks(bundle, label)
    gap: Gap | None = None
    decided = True
    for defect in PartitionCheck(bundle, solver, covering=complete).defects():
        if isinstance(defect, Overlap):
            first, second = defect.paths
            raise SoftError(f"{bundle.source}: One input takes both path {first} and path {second}.")
        if isinstance(defect, Gap):
            gap = gap or defect
        else:
            decided = False
    if complete and gap is not None:
        sentence = f"{label} claims to be explored completely, but some inputs take none of its paths."
        doubts.insert(0, Doubt("unexplored", label, sentence, example_of(bundle.scenario, gap.input)))
    if not decided:
        doubts.insert(0, Doubt("undecided", label, f"The solver could not decide whether {label}'s paths are sound."))
    if not complete:
        doubts.insert(0, _unexplored(bundle, label, solver))
    return Soundness(complete and gap is None and decided, tuple(doubts))


def _check_witnesses(bundle: Bundle, space: Space) -> None:
    """Refuse a witness that does not take its path. As soft.bundle.check does, but 100,000 paths in seconds."""
    tests = [_test(condition, space) for condition in bundle.conditions]
    work = 0
    for number, path in enumerate(bundle.paths):
        witness = path.witness
        for name, allowed in space.domain.items():
            if not contains(allowed, witness[name]):
                raise SoftError(f"{bundle.source}: The witness of path {number} is outside the scenario's domain.")
        memo: dict[Term, int] = {}
        for index in path.conditions:
            field, allowed = tests[index]
            if field is not None:
                holds = contains(allowed, witness[field])
            else:
                holds = bool(evaluate(bundle.conditions[index], witness, memo))
            if not holds:
                raise SoftError(
                    f"{bundle.source}: The witness of path {number} contradicts the path's condition c{index}."
                )
        work += len(memo)
        if work > MOST_WORK:
            raise SoftError(f"{bundle.source}: the conditions are too large to check every witness.")


def _test(condition: Term, space: Space) -> tuple[str | None, Intervals]:
    """A condition on one field as the values that it allows."""
    if len(condition.variables) == 1:
        (name,) = condition.variables
        allowed = space.solutions(condition, name)
        if allowed is not None:
            return name, allowed
    return None, ()


def _unexplored(bundle: Bundle, label: str, solver: Solver) -> Doubt:
    reasons = " ".join(bundle.manifest.reasons)
    sentence = f"{label} was not explored completely. {reasons}"[:1500]
    for defect in PartitionCheck(bundle, solver, covering=True).defects():
        if isinstance(defect, Gap):
            return Doubt("unexplored", label, sentence, example_of(bundle.scenario, defect.input))
    return Doubt("unexplored", label, sentence)


def _marks(bundle: Bundle, label: str) -> list[Doubt]:
    """A doubt for each mark. `approximate: ...` is one of what `approximate` says, with its reason."""
    found: list[Doubt] = []
    counted = Counter(mark for path in bundle.paths for mark in path.marks)
    for mark, count in counted.most_common():
        kind, _, reason = mark.partition(": ")
        if kind in _DOUBTFUL and len(found) < _MOST_MARKS:
            many = "path" if count == 1 else "paths"
            meaning = f"may do something else: {reason}" if reason else _DOUBTFUL[kind]
            marked = next(path for path in bundle.paths if mark in path.marks)
            example = example_of(bundle.scenario, marked.witness)
            sentence = f"{count} {many} of {label} {meaning}."
            found.append(Doubt(kind, label, sentence, example))  # type: ignore[arg-type]
    return found
