"""Walking two trees of paths: also those of strangers, whose paths share beginnings that do not tell them apart."""

from __future__ import annotations

from soft.crosscheck.crosscheck import crosscheck
from soft.crosscheck.model import Findings
from soft.solve import terms as t
from tests.soft.crosscheck.agents import CRASH, PORT, SILENT, Run, bundle_of, inputs, number, scenario

SMALL, THREE = t.ult(PORT, number(6)), t.eq(PORT, number(3))
# A partition: ports from 6 on, 3, and the other small ones. But port 3 goes both ways at the first branch below SMALL,
# where an agent would go one: the condition is one that holds for all small ports.
ALSO = t.ult(PORT, number(7))
STRANGE: list[Run] = [
    ((t.negate(SMALL),), SILENT),
    ((SMALL, ALSO, THREE), CRASH),
    ((SMALL, t.ne(PORT, number(7)), t.negate(THREE)), SILENT),
]


def compared(left: list[Run], right: list[Run]) -> Findings:
    scene = scenario()
    both = []
    for label, runs in (("left", left), ("right", right)):
        found = []
        for number_, (stem, trace) in enumerate(runs):
            port = {0: 7, 1: 3, 2: 5}[number_]
            found.append(((stem, trace), {**scene.defaults, "m0.actions.0.port": port}))
        both.append(bundle_of(found, label, scene, complete=True, skipped=False))
    return crosscheck(both)


def test_paths_that_are_told_apart_late_are_compared_like_others() -> None:
    plain: list[Run] = [((t.negate(SMALL),), SILENT), ((SMALL, THREE), SILENT), ((SMALL, t.negate(THREE)), SILENT)]
    for found in (compared(STRANGE, plain), compared(plain, STRANGE)):
        assert found.verdict == "differ"
        differing = [values for values in inputs(scenario()) if any(f.region.holds(values) for f in found.findings)]
        assert {values["m0.actions.0.port"] for values in differing} == {3}
    assert compared(STRANGE, STRANGE).verdict == "agree"
