"""Explorations of our own switches: what the bundles claim is proved, and holds for the live agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from soft.bundle.audit import audit, leaks
from soft.bundle.check import check
from soft.bundle.export import export_path
from soft.bundle.model import Bundle
from soft.crosscheck.crosscheck import crosscheck
from soft.replay.runner import run
from soft.solve.solver import Solver
from soft.trace import evaluate_trace
from tests.agents.lab import BUILD
from tests.end_to_end.lab import explored, target
from tests.harness.toy import paths
from tests.soft.bundle.test_export import ask_bitwuzla, ask_cvc5, ask_z3

SMALL = [
    ("reference", "queue_config"),
    ("reference", "set_config"),
    ("reference", "short_symb"),
    ("reference", "packet_crashes"),
    ("vswitch", "set_config"),
    ("vswitch", "short_symb"),
]


@pytest.mark.parametrize(("agent", "scenario"), SMALL)
def test_the_paths_are_a_partition(agent: str, scenario: str) -> None:
    verdict = check(explored(agent, scenario), partition=True, solver=Solver("bitwuzla"))
    assert verdict.sound
    assert (verdict.witnesses, verdict.disjoint, verdict.covered) == (True, True, True)


@pytest.mark.parametrize(("agent", "scenario"), SMALL)
def test_witnesses_do_natively_what_their_paths_say(agent: str, scenario: str) -> None:
    bundle = explored(agent, scenario)
    for path in list(bundle.paths)[:: 1 + len(bundle.paths) // 20]:
        native = run(target(agent), bundle.scenario, path.witness).trace
        assert native == evaluate_trace(bundle.traces[path.trace], path.witness)


def test_the_crashes_of_the_reference_switch_are_found_with_their_bytes() -> None:
    queue = explored("reference", "queue_config")
    ((_, path, crash),) = queue.crashes()
    assert (crash.step, crash.reason) == (0, "SIGSEGV")
    assert sent(queue, path.witness)[8:10] == b"\0\0"

    packets = explored("reference", "packet_crashes")
    crashing = {sent(packets, path.witness)[16:22] for _, path, crash in packets.crashes() if crash.reason == "SIGABRT"}
    types = {action[:2] for action in crashing}
    assert types == {b"\0\0", b"\0\1", b"\0\2"}  # output, set_vlan_vid, set_vlan_pcp
    assert {action[4:6] for action in crashing if action[:2] == b"\0\0"} == {b"\xff\xfd"}  # OFPP_CONTROLLER


def sent(bundle: Bundle, witness: Mapping[str, int]) -> bytes:
    step = bundle.scenario.bind(witness)[0]
    data = step.payload.concrete()  # type: ignore[union-attr]
    assert data is not None
    return data


def test_a_stripped_build_gives_the_same_bundle() -> None:
    for scenario in ("queue_config", "set_config", "short_symb"):
        assert paths(explored("variants/reference-stripped", scenario)) == paths(explored("reference", scenario))
    assert paths(explored("variants/vswitch-stripped", "set_config")) == paths(explored("vswitch", "set_config"))


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_another_optimisation_gives_the_same_outputs(level: str) -> None:
    for scenario in ("queue_config", "set_config", "short_symb"):
        other = explored(f"variants/reference-{level}", scenario)
        findings = crosscheck([explored("reference", scenario), other])
        assert findings.verdict == "agree"


def test_another_solver_finds_the_same_paths() -> None:
    assert paths(explored("reference", "set_config", solver="bitwuzla")) == paths(explored("reference", "set_config"))


@pytest.mark.parametrize(("agent", "scenario"), SMALL)
def test_nothing_of_the_binary_leaves_the_house(agent: str, scenario: str) -> None:
    bundle = explored(agent, scenario)
    assert leaks(bundle.source, BUILD / agent) == []
    assert audit(bundle.source).addresses == ()


@pytest.mark.parametrize("ask", [ask_z3, ask_bitwuzla, ask_cvc5])
def test_three_solvers_take_an_exported_path_and_its_witness(ask: Callable[[Path], str], tmp_path: Path) -> None:
    bundle = explored("reference", "short_symb")
    for number in range(0, len(bundle.paths), 6):
        for witness in (False, True):
            file = tmp_path / "path.smt2"
            file.write_text("".join(export_path(bundle, number, witness=witness)))
            assert ask(file) == "sat"
