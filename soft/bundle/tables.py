"""Sequences that hold 100,000 paths in little memory: numbers in arrays, witnesses as text, objects only on demand."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

from soft.bundle.model import Path
from soft.bundle.wire import decode_witness


class PathTable(Sequence[Path]):
    """All paths of a bundle; a Path is made when it is asked for."""

    def __init__(self, variables: Sequence[str]) -> None:
        self._variables = tuple(variables)
        self._ends = array("Q", [0])
        self._conditions = array("I")
        self._traces = array("I")
        self._witnesses: list[bytes] = []
        self._marks: dict[int, tuple[str, ...]] = {}  # few paths have any

    def append(self, conditions: Sequence[int], trace: int, witness: bytes, marks: tuple[str, ...]) -> None:
        if marks:
            self._marks[len(self._traces)] = marks
        self._conditions.extend(conditions)
        self._ends.append(len(self._conditions))
        self._traces.append(trace)
        self._witnesses.append(witness)

    def __len__(self) -> int:
        return len(self._traces)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> list[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | list[Path]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        values = decode_witness(self._witnesses[index])
        witness = dict(zip(self._variables, values, strict=True))
        return Path(tuple(self.conditions(index)), self._traces[index], witness, self._marks.get(index, ()))

    def __iter__(self) -> Iterator[Path]:
        for index in range(len(self)):
            yield self[index]

    def conditions(self, index: int) -> array[int]:
        """The conditions of a path, without making the whole path."""
        return self._conditions[self._ends[index] : self._ends[index + 1]]

    def trace(self, index: int) -> int:
        return self._traces[index]
