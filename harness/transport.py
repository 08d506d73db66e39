"""Jobs and outcomes between our own processes: every term is sent once over a connection, and by number after that."""

from __future__ import annotations

import io
import pickle
from multiprocessing.connection import Connection
from typing import Any

from soft.solve import terms
from soft.solve.terms import Term
from soft.solve.walk import post_order


class Channel:
    """One end of a connection between a coordinator and a worker that it has forked. Both are this program."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._numbers: dict[Term, int] = {}
        self._received: list[Term] = []

    def send(self, value: Any) -> None:
        fresh: list[tuple[str, tuple[Any, ...], int]] = []
        body = io.BytesIO()
        _Pickler(body, self._numbers, fresh).dump(value)
        self.connection.send_bytes(pickle.dumps((fresh, body.getvalue()), pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Any:
        """The next value; EOFError if the other end is gone."""
        fresh, body = pickle.loads(self.connection.recv_bytes())
        for op, args, width in fresh:
            parts = tuple(self._received[a.number] if a.__class__ is _Reference else a for a in args)
            self._received.append(terms.rebuild(op, parts, width))
        return _Unpickler(io.BytesIO(body), self._received).load()


class _Reference:
    """A term by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return _Reference, (self.number,)


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, numbers: dict[Term, int], fresh: list[Any]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers
        self._fresh = fresh

    def persistent_id(self, value: Any) -> int | None:
        if value.__class__ is not Term:
            return None
        numbers = self._numbers
        if value not in numbers:
            for term in post_order((value,), numbers):
                args = tuple(_Reference(numbers[a]) if a.__class__ is Term else a for a in term.args)
                self._fresh.append((term.op, args, term.width))
                numbers[term] = len(numbers)
        return numbers[value]


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, received: list[Term]) -> None:
        super().__init__(stream)
        self._received = received

    def persistent_load(self, number: Any) -> Term:
        return self._received[int(number)]
