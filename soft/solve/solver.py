"""The solver that the rest of SOFT uses: one incremental context, over z3 or bitwuzla."""

import time
from collections.abc import Iterable, Sequence
from enum import Enum
from importlib import import_module
from typing import Protocol

from soft.errors import SoftError
from soft.solve.terms import TRUE, Term

# Name of each solver, and where its back end is; a back end is imported when a solver is made, not before.
BACKENDS = {"z3": "soft.solve.z3_solver", "bitwuzla": "soft.solve.bitwuzla_solver"}


class Answer(Enum):
    """What a solver said about the conjunction of everything that was added."""

    SAT = "there is an input that satisfies all conditions; the model is one"
    UNSAT = "no input satisfies all conditions"
    UNKNOWN = "the solver gave up: nothing follows"


class Backend(Protocol):
    """One solver library. `model` may be asked only right after a check that answered SAT."""

    def push(self) -> None: ...
    def pop(self) -> None: ...
    def add(self, condition: Term) -> None: ...
    def check(self, assumptions: Sequence[Term]) -> Answer: ...
    def model(self, variables: Iterable[Term]) -> dict[str, int]: ...


class Solver:
    """A stack of conditions. `timeout` bounds each check, in seconds; past it the answer is UNKNOWN.

    Each solver has a context of its own, so two of them share nothing and may live in two threads.
    """

    def __init__(self, name: str = "z3", timeout: float | None = None) -> None:
        if name not in BACKENDS:
            raise SoftError(f"There is no solver called {name!r}; choose one of: {', '.join(BACKENDS)}.")
        try:
            module = import_module(BACKENDS[name])
        except ImportError as error:
            raise SoftError(f"The solver {name} is not installed ({error}).") from error
        self.name = name
        self.queries = 0
        self.seconds = 0.0
        self._backend: Backend = module.connect(None if timeout is None else max(1, round(timeout * 1000)))
        self._depth = 0
        self._satisfied = False

    def push(self) -> None:
        self._satisfied = False
        self._depth += 1
        self._backend.push()

    def pop(self) -> None:
        if not self._depth:
            raise ValueError("pop without push")
        self._satisfied = False
        self._depth -= 1
        self._backend.pop()

    def add(self, condition: Term) -> None:
        """Assert a Bool term until the matching pop."""
        if condition.width:
            raise ValueError("a condition must be a Bool term")
        self._satisfied = False
        if condition is not TRUE:
            self._backend.add(condition)

    def check(self, assumptions: Iterable[Term] = ()) -> Answer:
        """Is everything that was added satisfiable, together with the assumptions (for this check only)?"""
        start = time.perf_counter()
        answer = self._backend.check(tuple(assumptions))
        self.seconds += time.perf_counter() - start
        self.queries += 1
        self._satisfied = answer is Answer.SAT
        return answer

    def model(self, variables: Iterable[Term]) -> dict[str, int]:
        """Values of the given variables in the model of the last check; a variable nobody constrained gets one too."""
        if not self._satisfied:
            raise ValueError("a model is there only after a check that answered SAT")
        return self._backend.model(variables)
