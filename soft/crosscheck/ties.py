"""What a region may say about two variables at once: that they are equal, unequal, or bounded by each other.

Variables are those of the compared scenario (see soft.crosscheck.slices), so that one of them may be a field of a match
with its wildcard bit above it. `relation` says the same of the scenario's own fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from soft.crosscheck.model import Relation
from soft.crosscheck.slices import Slices
from soft.crosscheck.values import EMPTY, Intervals
from soft.solve import terms
from soft.solve.terms import Term


@dataclass(frozen=True, slots=True, order=True)
class Tie:
    """`left` has this relation to `factor` times `right` plus `offset`, in numbers that have no largest one.

    With `bits`, `left` is a field of that many bits with its wildcard above, and `wild` says whether the tie holds
    where it is wildcarded.
    """

    left: str
    operator: Literal["=", "≠", "≥", "≤"]
    right: str
    factor: int = 1
    offset: int = 0
    bits: int | None = None
    wild: bool = False

    @property
    def plain(self) -> bool:
        """Whether it just says that two fields are equal, or that they are not."""
        return (self.factor, self.offset, self.bits) == (1, 0, None) and self.operator in ("=", "≠")

    def holds(self, values: Mapping[str, int]) -> bool:
        left, right = values[self.left], self.factor * values[self.right] + self.offset
        if self.operator == "≥":
            return left >= right
        if self.operator == "≤":
            return left <= right
        if self.bits is not None and left >> self.bits:
            return self.wild
        return (left == right) == (self.operator == "=")

    def beyond(self, low: int, high: int, most: int) -> Intervals:
        """For a bound: the values of `right` up to `most` with which `left` has no value from `low` to `high`."""
        if self.operator == "≥":
            above, limit = self.factor > 0, high - self.offset
        else:
            above, limit = self.factor < 0, low - self.offset
        start, end = (limit // self.factor + 1, most) if above else (0, -(-limit // self.factor) - 1)
        return ((max(start, 0), end),) if max(start, 0) <= end else EMPTY

    def term(self, widths: Mapping[str, int]) -> Term:
        left, right = (terms.var(name, widths[name]) for name in (self.left, self.right))
        if self.bits is not None:
            wild = terms.eq(terms.extract(self.bits, self.bits, left), terms.const(1, 1))
            same = terms.eq(terms.extract(self.bits - 1, 0, left), right)
            same = same if self.operator == "=" else terms.negate(same)
            return terms.disj(wild, same) if self.wild else terms.conj(terms.negate(wild), same)
        if self.plain:
            return terms.eq(left, right) if self.operator == "=" else terms.ne(left, right)
        # As wide as the numbers get, and no wider: agents that compute in as many bits say it with the same term.
        product = abs(self.factor) * ((1 << right.width) - 1)
        least = (1 << left.width) + max(0, -self.offset) + (product if self.factor < 0 else 0)
        most = max(least, (product if self.factor > 0 else 0) + abs(self.offset))
        width = max(left.width, right.width, (most - 1).bit_length())
        left, right = (terms.zero_extend(width - side.width, side) for side in (left, right))
        right = terms.mul(right, terms.const(abs(self.factor), width))
        if self.factor < 0:
            left, right = terms.add(left, right), terms.const(0, width)
        if self.offset > 0:
            right = terms.add(right, terms.const(self.offset, width))
        elif self.offset < 0:
            left = terms.add(left, terms.const(-self.offset, width))
        return terms.uge(left, right) if self.operator == "≥" else terms.ule(left, right)

    def relation(self, slices: Slices) -> Relation:
        """The same, of the scenario's fields."""
        if self.bits is None:
            return Relation(self.left, self.operator, self.right, self.factor, self.offset)
        head, field = slices.parts[self.left]
        return Relation(field.field, self.operator, self.right, head=head.field, wild=self.wild)
