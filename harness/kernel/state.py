"""All that a kernel holds at one moment: kept, and put back for another input.

Everything that is reachable from the kernel and belongs to it is found by itself, so that a new kind of descriptor
needs nothing here. Objects keep their identity, because functions that wait for something refer to them.
"""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from harness.kernel.outside import Plan
from harness.machine.values import Sym

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_CONTAINERS = (list, dict, set, deque)
_OURS = __name__.rpartition(".")[0] + "."


class KernelState:
    """What a kernel holds now; `restore` gives the same kernel that back."""

    def __init__(self, kernel: Kernel) -> None:
        self._objects: list[tuple[Any, dict[str, Any]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._random: list[tuple[random.Random, Any]] = []
        seen: set[int] = set()
        pending: list[Any] = [kernel]
        while pending:
            each = pending.pop()
            if each.__class__ is int or id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, _CONTAINERS):
                self._containers.append((each, each.copy()))
                pending.extend(_elements(each))
            elif isinstance(each, tuple):
                pending.extend(each)
            elif isinstance(each, random.Random):
                self._random.append((each, each.getstate()))
            elif _is_state(each):
                fields = _fields(each)
                self._objects.append((each, fields))
                pending.extend(fields.values())

    def restore(self, change: Callable[[Sym], Any]) -> None:
        """Put everything back, with what `change` makes of each value that depends on the input."""
        for each, fields in self._objects:
            for name, value in fields.items():
                setattr(each, name, _changed(value, change))
        for container, content in self._containers:
            container.clear()
            if isinstance(container, dict):
                container.update((key, _changed(value, change)) for key, value in content.items())
            elif isinstance(container, set):
                container.update(content)
            else:
                container.extend([_changed(value, change) for value in content])
        for source, state in self._random:
            source.setstate(state)


def _elements(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _is_state(value: Any) -> bool:
    """Whether something is an object of this package that may change."""
    kind = type(value)
    if not kind.__module__.startswith(_OURS) or isinstance(value, Plan | type) or callable(value):
        return False
    return not (dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _fields(value: Any) -> dict[str, Any]:
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    return {name: getattr(value, name) for name in type(value).__slots__}


def _changed(value: Any, change: Callable[[Sym], Any]) -> Any:
    kind = value.__class__
    if kind is int:
        return value
    if kind is Sym:
        return change(value)
    if kind is tuple:
        return tuple([_changed(each, change) for each in value])
    if dataclasses.is_dataclass(kind) and kind.__module__.startswith(_OURS):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: _changed(each, change) for name, each in fields.items()})
    return value


__all__ = ["KernelState"]
