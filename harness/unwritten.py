"""The part of a frozen thread's stack that it has not written: what stands there is left over from earlier calls.

An agent that reads such a byte reads whatever was there, and a path that depends on it says so. While a run is
followed each of these bytes is a variable of its own (harness.marks), so that what would be the same with other bytes
needs no second look. So is each random number that the agent takes from the system.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.frozen import Snapshot
from harness.kernel.descriptions import random_bytes
from harness.marks import RANDOM_BYTES, UNWRITTEN_BYTES, unwritten_byte, unwritten_in
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
        content = snapshot.read(low, top - low) or b""
        self.place = range(low, low + len(content))
        self.others = bytes(byte ^ 0x5A for byte in content)
        self._these = _Bytes(content, random_bytes(0, RANDOM_BYTES))
        self._those = _Bytes(self.others, random_bytes(1, RANDOM_BYTES))

    def known(self, term: Term) -> Term:
        """The term with these bytes as they are; the same object if it does not depend on any."""
        names = unwritten_in(term)
        return self._these.put_into(term, names) if names else term

    def matters(self, term: Term) -> bool:
        """Whether a term would be another one if these bytes were others."""
        names = unwritten_in(term)
        return bool(names) and self._these.put_into(term, names) is not self._those.put_into(term, names)


class _Bytes:
    """One content of all of these bytes."""

    def __init__(self, stack: bytes, random: bytes) -> None:
        self._stack = stack
        self._random = random
        self._memo: dict[Term, Term] = {}

    def put_into(self, term: Term, names: Iterable[str]) -> Term:
        if len(self._memo) > _MOST_KEPT:
            self._memo.clear()
        for name in names:
            number = int(name[1:])
            byte = self._stack[number] if number < UNWRITTEN_BYTES else self._random[number - UNWRITTEN_BYTES]
            self._memo.setdefault(unwritten_byte(number), t.const(byte, 8))
        return rebuilt(term, self._memo)
