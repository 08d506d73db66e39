"""Cut the control byte stream, which an agent writes in pieces of its own choice, into OpenFlow messages.

Cutting looks at the header's length field only, so it serves every version. Natively all bytes are known; under the
model some are terms, and where the place of a cut depends on the inputs somebody has to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from soft.errors import SoftError
from soft.openflow.layout import HEADER_SIZE
from soft.solve.terms import Term
from soft.trace import Message, Payload

Choose = Callable[[Term], int]
"""Decides the value of a 16-bit term; a run under the model then records that the term has this value."""

# Where the header has its length field. With these four bytes there, the size of a message is known.
_LENGTH_AT, _LENGTH_END = 2, 4
_EMPTY = Payload(())


def cut(writes: Sequence[Payload], choose: Choose | None = None) -> tuple[list[Payload], Payload]:
    """The messages of a stream, given as the agent wrote it, and what is left over: the start of one more.

    A write of symbolic length that completes a message whose header has the very same length is that message, whatever
    its length. Any other length that is a term is put to `choose`; without it that is an error. A header whose length
    is less than its own size ends the cutting: all the rest is one last message, because garbage is an output too.
    """
    cutter = _Cutter(choose)
    messages = [message for write in writes for message in cutter.take(write)]
    messages += cutter.flush()
    return messages, cutter.rest


def cut_steps(writes: Iterable[tuple[int, Payload]], choose: Choose | None = None) -> list[Message]:
    """The messages of a whole run, given as (step, write). A message belongs to the step that brought its last byte.

    What is left over at the end is a message as well: the agent did send it.
    """
    cutter = _Cutter(choose)
    events: list[Message] = []
    last = 0
    for step, write in writes:
        if step != last:
            events += [Message(last, payload) for payload in cutter.flush()]
            last = step
        events += [Message(step, payload) for payload in cutter.take(write)]
    events += [Message(last, payload) for payload in cutter.flush()]
    if cutter.rest.size:
        events.append(Message(last, cutter.rest))
    return events


class _Cutter:
    """Takes write after write. `rest` begins at a message's first byte and has a fixed size."""

    def __init__(self, choose: Choose | None) -> None:
        self._choose = choose
        self._lost = False
        """A header was garbage: from there on nothing says where a message begins."""
        self.rest = _EMPTY

    def take(self, write: Payload) -> list[Payload]:
        """The messages that are complete with this write. A length that is a term stays open until `flush`."""
        if write.length is None:
            self.rest = Payload.join((self.rest, write))
            return [] if self._lost else self._cut(decide=False)
        messages = [] if self._lost else self._cut(decide=True, behind=write)
        if not self._lost and _is_message(whole := Payload.join((self.rest, write))):
            self.rest = _EMPTY
            return [*messages, whole]
        size = self._decide(write.length)
        if size > write.size:
            raise SoftError(f"A write of {size} bytes was decided where the agent wrote at most {write.size}.")
        self.rest = Payload.join((self.rest, Payload(write.pieces).slice(0, size)))
        return messages + ([] if self._lost else self._cut(decide=False))

    def flush(self) -> list[Payload]:
        """The messages that are complete if nothing follows: lengths that are terms are decided now."""
        messages = [] if self._lost else self._cut(decide=True)
        if self._lost and self.rest.size:
            messages.append(self.rest)
            self.rest = _EMPTY
        return messages

    def _cut(self, decide: bool, behind: Payload | None = None) -> list[Payload]:
        messages: list[Payload] = []
        at = 0
        while self.rest.size >= at + _LENGTH_END:
            field = self.rest.field(at + _LENGTH_AT, at + _LENGTH_END)
            if isinstance(field, Term):
                if not decide or (behind is not None and self._ends_in(behind, at)):
                    break
                length = self._decide(field)
            else:
                length = int.from_bytes(field, "big")
            if length < HEADER_SIZE:
                self._lost = True
                break
            if self.rest.size < at + length:
                break
            messages.append(self.rest.slice(at, at + length))
            at += length
        self.rest = self.rest.slice(at, self.rest.size)
        return messages

    def _ends_in(self, write: Payload, at: int) -> bool:
        return _is_message(Payload.join((self.rest.slice(at, self.rest.size), write)))

    def _decide(self, term: Term) -> int:
        if self._choose is None:
            raise SoftError(f"Where a message ends depends on the inputs: its length is {term}.")
        return self._choose(term)


def _is_message(payload: Payload) -> bool:
    """Whether a payload of symbolic length is one message, as its own header says."""
    return payload.size >= HEADER_SIZE and payload.field(_LENGTH_AT, _LENGTH_END) is payload.length
