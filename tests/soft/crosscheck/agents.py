"""Agents in Python: small decision trees over a scenario's fields, explored exactly, and run on inputs as an oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from soft.bundle.model import FORMAT, Bundle, Counts, Manifest, Path, crash_of
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.solver import Answer, Solver
from soft.solve.terms import Term
from soft.trace import Crash, Message, Packet, Payload, Trace, evaluate_trace

SCENARIO = """\
name = "tiny"
summary = "A packet_out with three small fields"
openflow = "1.0"

[[step]]
send = "packet_out"
xid = 1
buffer_id = "none"
in_port = { symbolic = true, range = [0, 7] }
actions = [{ type = "output", port = { symbolic = true, range = [0, 7] }, max_len = { in = [0, 1, 5, 200] } }]
data = { packet = "tcp" }
"""
IN_PORT = t.var("m0.in_port", 16)
PORT = t.var("m0.actions.0.port", 16)
MAX_LEN = t.var("m0.actions.0.max_len", 16)


_SOLVER = Solver()


@dataclass(frozen=True)
class If:
    """A branch of an agent."""

    condition: Term
    then: Tree
    otherwise: Tree


Tree = If | Trace
Run = tuple[tuple[Term, ...], Trace]


def scenario(text: str = SCENARIO) -> Scenario:
    return loader.parse(text, "agents")


def runs(tree: Tree, stem: tuple[Term, ...] = ()) -> Iterator[Run]:
    """The paths of an agent, those that no input takes too."""
    if isinstance(tree, If):
        yield from runs(tree.then, (*stem, tree.condition))
        yield from runs(tree.otherwise, (*stem, t.negate(tree.condition)))
    else:
        yield stem, tree


def leaf(tree: Tree, values: Mapping[str, int]) -> Trace:
    """The output of the path that an input takes, with terms in it."""
    while isinstance(tree, If):
        tree = tree.then if evaluate(tree.condition, values) else tree.otherwise
    return tree


def respond(tree: Tree, values: Mapping[str, int]) -> Trace:
    """What an agent does with one input, without solver or bundle."""
    return evaluate_trace(leaf(tree, values), values)


def inputs(scene: Scenario) -> Iterator[dict[str, int]]:
    """The whole input space of a small scenario."""
    choices = []
    for variable in scene.variables:
        low, high = variable.range or (0, (1 << variable.width) - 1)
        choices.append(variable.choices or range(low, high + 1))
    for values in product(*choices):
        yield dict(zip(scene.variable_names, values, strict=True))


def bundle(
    tree: Tree,
    label: str,
    scene: Scenario | None = None,
    *,
    skip: frozenset[int] | set[int] = frozenset(),
    complete: bool | None = None,
    marks: tuple[str, ...] = (),
) -> Bundle:
    """The bundle that an exploration of an agent gives; `skip` leaves out some of its paths, by number."""
    scene = scene or scenario()
    found: list[tuple[Run, dict[str, int]]] = []
    for run in runs(tree):
        if _SOLVER.check([*scene.domain, *run[0]]) is Answer.SAT:
            found.append((run, _SOLVER.model([variable.term for variable in scene.variables])))
    return bundle_of([item for n, item in enumerate(found) if n not in skip], label, scene, complete, bool(skip), marks)


def bundle_of(
    found: Sequence[tuple[Run, dict[str, int]]],
    label: str,
    scene: Scenario,
    complete: bool | None,
    skipped: bool,
    marks: tuple[str, ...] = (),
) -> Bundle:
    conditions: dict[Term, int] = {}
    traces: dict[Trace, int] = {}
    paths = []
    for (stem, trace), witness in found:
        indices = tuple(conditions.setdefault(term, len(conditions)) for term in stem)
        paths.append(Path(indices, traces.setdefault(trace, len(traces)), witness, marks))
    is_complete = not skipped if complete is None else complete
    manifest = Manifest(
        format=FORMAT,
        scenario=scene.name,
        digest=scene.digest,
        agent=label,
        tool="test",
        counts=Counts(
            paths=len(paths),
            outputs=len(traces),
            crashes=sum(crash_of(trace) is not None for (_, trace), _ in found),
            conditions=len(conditions),
        ),
        complete=is_complete,
        reasons=() if is_complete else ("The time limit was reached.",),
    )
    return Bundle(manifest, scene, list(conditions), list(traces), paths, label)


# ---------------------------------------------------------------------------------------------- outputs

SILENT: Trace = ()
CRASH: Trace = (Crash(0, "SIGSEGV"),)


def error(kind: int, code: int | Term) -> Trace:
    last = code.to_bytes(2, "big") if isinstance(code, int) else code
    return (Message(0, Payload((bytes.fromhex("0101000c00000001"), kind.to_bytes(2, "big"), last))),)


def forward(port: int, *tail: bytes | Term) -> Trace:
    return (Packet(0, port, Payload((b"\2" * 12, *tail))),)


def packet_in(size: Term) -> Trace:
    head = bytes.fromhex("010a001e00000000ffffffff000c") + b"\0\1\1\0"
    return (Message(0, Payload((head, IN_PORT, b"\7" * 10), t.add(size, t.const(18, 16)))),)


def number(value: int) -> Term:
    return t.const(value, 16)
