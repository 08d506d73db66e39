"""Functions that are found in a frozen process."""

from __future__ import annotations

from harness.symbols import imported_functions, vdso_functions
from tests.harness.kernel import lab


def test_the_vdso_has_the_clocks() -> None:
    snapshot = lab.snapshot("times")
    found = vdso_functions(snapshot)
    assert {"clock_gettime", "gettimeofday", "time"} <= set(found)
    for address in found.values():
        region = snapshot.region_at(address)
        assert region is not None
        assert region.name == "[vdso]"


def test_what_calls_to_libc_resolved_to() -> None:
    snapshot = lab.snapshot("symbolic")
    found = imported_functions(snapshot, frozenset({"memcpy", "poll", "nothing_like_it"}))
    assert set(found.values()) == {"memcpy", "poll"}
    for address in found:
        region = snapshot.region_at(address)
        assert region is not None
        assert "x" in region.permissions
        assert "libc" in region.name
