"""Random programs over a few inputs, run by a machine of ten lines: what the search has to enumerate is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from harness.feasible import Feasibility
from harness.machine.memory import Memory
from harness.machine.values import Sym
from harness.path import Job, Path
from harness.pieces import Pieces
from soft.scenarios.loader import parse
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term

TEXT = """
name = "program"
summary = "x"
[[step]]
send = "echo_request"
data = [
    { name = "a", bits = 8, value = { in = [0, 3, 7, 200] } },
    { name = "b", bits = 16, value = { range = [3, 6] } },
    { name = "c", bits = 32, value = { in = [1, 65537, 4294967295] } },
]
"""


def scenario() -> Scenario:
    return parse(TEXT, "program.toml")


A, B, C = (t.var(f"m0.data.{name}", width) for name, width in (("a", 8), ("b", 16), ("c", 32)))
INPUTS = [
    {A.args[0]: a, B.args[0]: b, C.args[0]: c}
    for a in (0, 3, 7, 200)
    for b in range(3, 7)
    for c in (1, 65537, 4294967295)
]


@dataclass(frozen=True)
class Branch:
    """Go one way or the other."""

    condition: Term
    yes: Program
    no: Program


@dataclass(frozen=True)
class Pin:
    """Go on in a way that depends on the number that a term is."""

    term: Term
    ways: tuple[Program, ...]


@dataclass(frozen=True)
class End:
    number: int


Program = Branch | Pin | End
Way = tuple[tuple[int, ...], int]
"""What a run did: the outcome of every node that it passed, and where it ended."""


@st.composite
def words(draw: Callable[..., Any]) -> Term:
    """A term of 16 bits over the inputs."""
    parts = [
        t.zero_extend(8, A), B, t.extract(15, 0, C), t.extract(31, 16, C), t.const(draw(st.integers(0, 12)), 16),
    ]  # fmt: skip
    for _ in range(draw(st.integers(0, 3))):
        operation = draw(st.sampled_from([t.add, t.sub, t.and_, t.or_, t.xor, t.mul]))
        parts.append(operation(draw(st.sampled_from(parts)), draw(st.sampled_from(parts))))
    return parts[-1] if draw(st.booleans()) else draw(st.sampled_from(parts))


@st.composite
def conditions(draw: Callable[..., Any]) -> Term:
    comparison = draw(st.sampled_from([t.eq, t.ult, t.ule, t.slt]))
    right = t.const(draw(st.sampled_from([0, 1, 3, 7, 12, 200, 0xFFFF])), 16)
    made: Term = comparison(draw(words()), right if draw(st.booleans()) else draw(words()))
    if draw(st.integers(0, 4)) == 0:
        made = draw(st.sampled_from([t.conj, t.disj]))(made, draw(conditions()))
    return made


@st.composite
def programs(draw: Callable[..., Any], depth: int = 3) -> Program:
    kind = draw(st.integers(0, 5)) if depth else 0
    if kind == 0:
        return End(draw(st.integers(0, 3)))
    if kind < 4:
        return Branch(draw(conditions()), draw(programs(depth=depth - 1)), draw(programs(depth=depth - 1)))
    ways = draw(st.lists(programs(depth=depth - 1), min_size=1, max_size=3))
    return Pin(draw(words()), tuple(ways))


def way(program: Program, values: Mapping[str, int]) -> Way:
    """Run a program on an input, without any search."""
    outcomes = []
    while not isinstance(program, End):
        if isinstance(program, Branch):
            outcome = evaluate(program.condition, values)
            program = program.yes if outcome else program.no
        else:
            outcome = evaluate(program.term, values)
            program = program.ways[outcome % len(program.ways)]
        outcomes.append(outcome)
    return tuple(outcomes), program.number


@dataclass(frozen=True)
class Found:
    """What one run of the search found."""

    way: Way
    conditions: tuple[Term, ...]
    witness: dict[str, int]
    alternatives: tuple[Job, ...]


class Search:
    """Runs jobs of a program, as harness.run does for an agent."""

    def __init__(self, program: Program) -> None:
        self.scenario = scenario()
        self.pieces = Pieces(self.scenario)
        self.feasibility = Feasibility(self.pieces.widths, map(self.pieces.inside, self.scenario.domain))
        self._program = program

    def run(self, job: Job) -> Found:
        values = self.pieces.split(job.values)
        path = Path(
            self.feasibility, Job(values, job.bound, job.taken, job.fork), Memory(lambda page: None),
            self.pieces.outside,
        )  # fmt: skip
        outcomes = []
        program = self._program
        while not isinstance(program, End):
            if isinstance(program, Branch):
                condition = self.pieces.inside(program.condition)
                outcome = evaluate(condition, values)
                path.branch(condition, bool(outcome))
                program = program.yes if outcome else program.no
            else:
                term = self.pieces.inside(program.term)
                value = Sym(term, evaluate(term, values))
                outcome = value.value if term.op == "const" else path.pin(value)
                program = program.ways[outcome % len(program.ways)]
            outcomes.append(outcome)
        alternatives = tuple(path.alternatives())
        conditions = tuple(map(self.pieces.outside, path.conditions()))
        assert not path.given_up
        return Found((tuple(outcomes), program.number), conditions, self.pieces.join(values), alternatives)

    def all(self, start: Iterator[Job] | None = None) -> list[Found]:
        """Everything that is found from some jobs on, or from the beginning."""
        stack = [Job(self.scenario.defaults)] if start is None else list(start)
        found = []
        while stack:
            found.append(self.run(stack.pop()))
            stack.extend(found[-1].alternatives)
            assert len(found) <= len(INPUTS)
        return found
