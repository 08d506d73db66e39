"""verification.md: what `soft verify` said about each bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from results.markdown import machine, seconds, table

_INTRO = """\
# Verification

Written by `make results` with `soft verify`: the witness of a path is sent to the live agent, unpatched, and what it
does is compared with the path's prediction. Of large bundles a sample is sent, evenly chosen.

{agreed} of {sent} predictions held.
"""


def page(verified: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[str]:
    """The lines of verification.md. `verified` has the JSON of `soft verify` by agent and scenario."""
    total = sum(each["witnesses"] for each in verified.values())
    agreed = sum(each["agreed"] for each in verified.values())
    yield _INTRO.format(agreed=agreed, sent=total)
    rows = []
    for (agent, scenario), each in verified.items():
        row = [agent, scenario, each["paths"], each["witnesses"], each["agreed"], each["disagreed"], each["skipped"]]
        rows.append([*row, seconds(each["seconds"]), f"{each['rate']:.0f}"])
    head = ["agent", "scenario", "paths", "sent", "agreed", "disagreed", "skipped", "time", "a second"]
    yield from table(head, rows, left=2)
    yield ""
    yield "Skipped are paths that hold for waits of a few milliseconds only, which real time cannot be held to."
    yield ""
    yield f"Measured on {machine()}, with other work beside it."
