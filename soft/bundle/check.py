"""Is a bundle what it claims to be? Witnesses are evaluated; that the paths are a partition is proved by a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from soft.bundle.model import Bundle
from soft.bundle.partition import Gap, Overlap, PartitionCheck, Undecided
from soft.errors import SoftError
from soft.solve.evaluate import evaluate
from soft.solve.solver import Solver
from soft.solve.terms import Term

# A bundle with one fault often has thousands of the same kind; nobody reads more than these.
MOST_PROBLEMS = 20
# Nodes evaluated for the witnesses of one bundle: 100,000 paths of 100 conditions need some 50 million.
MOST_WORK = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, as a sentence; with an input that shows it, if there is one."""

    kind: str  # witness, overlap, gap or undecided
    sentence: str
    paths: tuple[int, ...] = ()
    input: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found out about a bundle. `covered` is None if nobody asked, or the bundle does not claim it."""

    problems: tuple[Problem, ...]
    witnesses: bool
    disjoint: bool | None = None
    covered: bool | None = None
    queries: int = 0

    @property
    def sound(self) -> bool:
        return not self.problems


def check(
    bundle: Bundle,
    *,
    partition: bool = False,
    solver: Solver | None = None,
    progress: Callable[[int], object] | None = None,
) -> Verdict:
    """Check every witness; with `partition`, also that paths are disjoint and, if complete, cover the input space."""
    wrong = list(islice(wrong_witnesses(bundle), MOST_PROBLEMS))
    if not partition:
        return Verdict(tuple(wrong), not wrong)
    proof = PartitionCheck(bundle, solver or Solver(), bundle.manifest.complete, progress)
    found = [_problem(defect) for defect in islice(proof.defects(), MOST_PROBLEMS)]
    kinds = {problem.kind for problem in found}
    # A walk that was cut short, or met a question too hard, proves nothing about the rest.
    proved = None if "undecided" in kinds or len(found) == MOST_PROBLEMS else True
    return Verdict(
        tuple(wrong + found),
        not wrong,
        disjoint=False if "overlap" in kinds else proved,
        covered=False if "gap" in kinds else proved if bundle.manifest.complete else None,
        queries=proof.effort.queries,
    )


def wrong_witnesses(bundle: Bundle) -> Iterator[Problem]:
    """The paths whose witness does not satisfy their conditions or the scenario's domain."""
    work = 0
    for number, path in enumerate(bundle.paths):
        memo: dict[Term, int] = {}
        for term in bundle.scenario.domain:
            if not evaluate(term, path.witness, memo):
                sentence = f"The witness of path {number} is outside the scenario's domain."
                yield Problem("witness", sentence, (number,), path.witness)
                break
        for index in path.conditions:
            if not evaluate(bundle.conditions[index], path.witness, memo):
                sentence = f"The witness of path {number} contradicts the path's condition c{index}."
                yield Problem("witness", sentence, (number,), path.witness)
                break
        work += len(memo)
        if work > MOST_WORK:
            raise SoftError(f"{bundle.source}: the conditions are too large to check every witness.")


def require_sound(bundle: Bundle, solver: Solver | None = None) -> None:
    """Refuse a bundle whose witnesses are wrong or whose paths overlap: nothing may be concluded from it."""
    for problem in wrong_witnesses(bundle):
        raise SoftError(f"{bundle.source}: {problem.sentence}")
    for defect in PartitionCheck(bundle, solver or Solver(), covering=False).defects():
        raise SoftError(f"{bundle.source}: {_problem(defect).sentence}")


def same_paths(left: Bundle, right: Bundle) -> bool:
    """Whether two bundles have the same paths with the same traces, whatever their order, numbers and witnesses."""
    return left.scenario.digest == right.scenario.digest and _paths(left) == _paths(right)


def _paths(bundle: Bundle) -> set[object]:
    # Terms are shared in a process, so equal conditions are the same objects, whichever bundle they came from.
    return {(bundle.terms_of(path), bundle.traces[path.trace]) for path in bundle.paths}


def _problem(defect: Overlap | Gap | Undecided) -> Problem:
    if isinstance(defect, Overlap):
        first, second = defect.paths
        return Problem("overlap", f"One input takes both path {first} and path {second}.", defect.paths, defect.input)
    if isinstance(defect, Gap):
        return Problem("gap", "An input of the scenario takes none of the paths.", (), defect.input)
    return Problem("undecided", "The solver could not decide whether the paths are disjoint and cover everything.")
