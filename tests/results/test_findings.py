from __future__ import annotations

import pytest

from results import deviations, findings
from results.exploration import Explored
from results.plan import DEVIATIONS, Crosscheck
from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Findings
from soft.solve import terms as t
from tests.results.test_exploration import manifest
from tests.soft.crosscheck.agents import PORT, SILENT, If, bundle, forward, number


@pytest.fixture(scope="module")
def found() -> Findings:
    """Two imagined agents that differ on one port."""
    picky = If(t.eq(PORT, number(3)), SILENT, forward(1))
    return crosscheck([bundle(picky, "reference"), bundle(forward(1), "modified-04")])


def test_the_page_counts_findings_and_lists_clusters(found: Findings) -> None:
    done = {Crosscheck(("reference", "vswitch"), "packet_out"): found}
    text = "\n".join(findings.page(done, [Crosscheck(("reference", "vswitch"), "flow_mod")]))
    assert "| packet_out | differ | 2 | 1 | 1 | 1 | 1 | – |" in text
    assert "| 6, 10 | 14 | 26 s |" in text
    assert f"- **forwarding**: {found.clusters[0].heading}" in text
    assert "- reference, vswitch: flow_mod" in text


def test_pairs_are_counted_by_verdict(found: Findings) -> None:
    agents = ("reference", "modified-04")
    done = {
        Crosscheck(agents, "packet_out", all_with_all=True): found,
        Crosscheck(("reference", "reference"), "packet_out"): found,
        Crosscheck(("vswitch", "vswitch"), "packet_out"): crosscheck([bundle(SILENT, "a"), bundle(SILENT, "b")]),
    }
    text = "\n".join(findings.page(done))
    assert "| packet_out | reference, modified-04 | 1 | 0 | 0 | 1 | – |" in text
    assert "1 of 2 agree, proved; 1 differ.\n- reference, packet_out: differ." in text


def test_a_deviation_that_was_found_says_how(found: Findings) -> None:
    scenario = DEVIATIONS["modified-04"]
    explored = {(agent, scenario): Explored(manifest(3), 1.0, 1) for agent in ("reference", "modified-04")}
    text = "\n".join(deviations.page(deviations.read_descriptions(), explored, {"modified-04": found}))
    assert "Found: 1 of 12." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| modified-04 ")]
    assert found.clusters[0].heading in row
    assert row.endswith("| 1 | 1 | – | 4.0 s |")
    assert text.count("not compared") == 11
