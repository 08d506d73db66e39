"""The part of a frozen thread's stack that it has not written: what stands there is left over from earlier calls.

An agent that reads such a byte reads whatever was there, and a path that depends on it says so. While a run is
followed each of these bytes is a variable of its own (harness.marks), so that what does not depend on any needs no
second look.
"""

from __future__ import annotations

from harness.frozen import Snapshot
from harness.marks import UNWRITTEN_BYTES, unwritten_byte, unwritten_in
from harness.pieces import rebuilt
from soft.solve import terms as t
from soft.solve.terms import Term

_RED_ZONE = 128
# Terms are replaced again and again; the memo forgets everything before it takes much memory.
_MOST_KEPT = 100_000


class Unwritten:
    """Where these bytes are, what they are, and what else they might be. Deeper calls find the stack as it is."""

    def __init__(self, snapshot: Snapshot) -> None:
        top = snapshot.thread.registers["rsp"] - _RED_ZONE
        region = snapshot.region_at(top)
        low = max(region.start if region is not None else top, top - UNWRITTEN_BYTES)
        self._content = snapshot.read(low, top - low) or b""
        self.place = range(low, low + len(self._content))
        self.others = bytes(byte ^ 0x5A for byte in self._content)
        self._memo: dict[Term, Term] = {}

    def known(self, term: Term) -> Term:
        """The term with these bytes as they are; the same object if it does not depend on any."""
        names = unwritten_in(term)
        if not names:
            return term
        if len(self._memo) > _MOST_KEPT:
            self._memo.clear()
        for name in names:
            number = int(name[1:])
            self._memo.setdefault(unwritten_byte(number), t.const(self._content[number], 8))
        return rebuilt(term, self._memo)
