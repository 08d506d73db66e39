"""A region as a box: values of fields, and ties between pairs of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soft.crosscheck.ties import Tie
from soft.crosscheck.values import Intervals, contains


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A region: fields that are bound to some values, and pairs of fields that are tied to each other."""

    fields: Mapping[str, Intervals]
    ties: tuple[Tie, ...] = ()

    def contains(self, values: Mapping[str, int]) -> bool:
        return all(contains(allowed, values[name]) for name, allowed in self.fields.items()) and all(
            tie.holds(values) for tie in self.ties
        )


def with_values(box: Box, name: str, allowed: Intervals, domain: Intervals) -> Box:
    """A box with other values for one field; one that may have all of its domain is free."""
    fields = {**box.fields, name: allowed}
    if allowed == domain:
        del fields[name]
    return Box(fields, box.ties)
