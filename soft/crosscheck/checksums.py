"""Checksums of the same words are equal: shown by arithmetic, because a solver takes minutes for it, or gives up.

An Internet checksum adds words, and adds what is carried over to the sum. That is the sum modulo 65535, from 1 to 65535
unless all words are zero. Agents add in any order, in either byte order, and carry over when they like, and what they
compute looks nothing alike. But each step of it is a function of one sum, and such a function can be computed for every
value that the sum may have. If all of these are what is left modulo 65535, it is a checksum, whatever it looks like.
What is not found out in this way is left to the solver.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from soft.crosscheck.substitute import build
from soft.solve import terms
from soft.solve.terms import TRUE, Term
from soft.solve.walk import post_order

_MODULUS = 65535
# Values that one function is computed for, all its steps together: one of three words has some 40 steps.
_MOST_VALUES = 1 << 24
# The same for a whole crosscheck, at some 100 million a second: a stranger's terms may be many. To look which byte of a
# checksum a function is costs as much as so many values.
_MOST_WORK = 1 << 32
_SEARCH = 1 << 18
# Nodes of a byte that is looked at: a packet's whole header, summed up, has some hundreds.
_MOST_NODES = 2000
# Sums with which it is tried first where a byte may be one of a checksum.
_PROBES = 64

Array = NDArray[np.uint64]
# A sum of terms, each times a number, and of a number.
Parts = Mapping[Term, int]
# Bytes of variables (or terms of which nothing is known) with their factors, a number, and whether it is inverted: two
# bytes of which this is the same are equal.
Key = tuple[frozenset[tuple[object, int]], int, bool]


@dataclass(frozen=True, slots=True)
class _Sum:
    """Of terms times numbers. `width`: how many of its bits are meant, 0 for all."""

    parts: Parts
    constant: int
    width: int

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        parts = dict(self.parts)
        for term, count in other.parts.items():
            parts[term] = parts.get(term, 0) + factor * count
        total = _Sum(parts, self.constant + factor * other.constant, self.width)
        return total.reduced(self.width) if self.width else total

    def reduced(self, width: int) -> _Sum:
        size = 1 << width
        parts = {term: count % size for term, count in self.parts.items() if count % size}
        return _Sum(parts, self.constant % size, width)


class _NotOne(Exception):
    """This is no function of one sum."""


class Checksums:
    """What is known of the checksums in a comparison's terms."""

    def __init__(self) -> None:
        self._residues: dict[Term, _Sum | None] = {}
        """Words that are a sum modulo 65535: which. None if that was tried in vain."""
        self._ranges: dict[Term, tuple[int, int]] = {}
        """The least and the most that they are: a checksum is not zero."""
        self._keys: dict[Term, Key | None] = {}
        self._settled: dict[Term, Term] = {}
        self._concerned: dict[Term, bool] = {}
        self._linear: dict[Term, _Sum] = {}
        self._work = 0

    def concerns(self, condition: Term) -> bool:
        """Whether a condition compares what may be checksums."""
        known = self._concerned.get(condition)
        if known is None:
            known = self._concerned[condition] = any(
                term.op == "=" and term.args[0].width in (8, 16) and not _is_plain(*term.args)
                for term in post_order((condition,))
            )
        return known

    def settled(self, condition: Term) -> Term:
        """A condition in which bytes of the same checksums are equal."""
        known = self._settled.get(condition)
        if known is None:
            known = self._settled[condition] = self._replaced(condition)
        return known

    def _replaced(self, condition: Term) -> Term:
        done: dict[Term, Term] = {}
        for term in post_order((condition,)):
            if term.op == "=" and term.args[0].width in (8, 16) and self._same(*term.args):
                done[term] = TRUE
            elif any(arg.__class__ is Term and done[arg] is not arg for arg in term.args):
                done[term] = build(term, [done[arg] if arg.__class__ is Term else arg for arg in term.args])
            else:
                done[term] = term
        return done[condition]

    def _same(self, left: Term, right: Term) -> bool:
        if _is_plain(left, right):
            return False
        if left.width == 16:
            halves = [(terms.extract(hi, hi - 7, left), terms.extract(hi, hi - 7, right)) for hi in (7, 15)]
            return all(self._same(*half) for half in halves)
        key = self._key(left)
        return key is not None and key == self._key(right)

    def _key(self, byte: Term) -> Key | None:
        if byte not in self._keys:
            self._keys[byte] = None
            with contextlib.suppress(_NotOne, RecursionError):
                self._keys[byte] = self._found_key(byte)
        return self._keys[byte]

    def spend(self, values: int) -> None:
        """Do so much work, if there is not too much of it."""
        if values > _MOST_VALUES or self._work + values > _MOST_WORK:
            raise _NotOne
        self._work += values

    def _found_key(self, byte: Term) -> Key | None:
        nodes = []
        for node in post_order((byte,)):
            nodes.append(node)
            if len(nodes) > _MOST_NODES:
                return None
        if not any(node.op == "bvadd" for node in nodes):
            return None
        self.spend(_SEARCH)
        for node in nodes:
            for word in node.args if node.op == "concat" else ():
                if word.width == 16 and word.op == "bvadd" and word not in self._residues:
                    self._residues[word] = None
                    with contextlib.suppress(_NotOne):
                        self._residues[word] = self._residue(word)
        function = _Function(self, byte)
        found = _byte_of_checksum(function.values, function.sums)
        if found is None:
            return None
        constant, is_high, is_inverted = found
        total = self._words(_Sum(function.sum, constant, 0))
        factor = 256 if is_high else 1  # the bytes of a checksum are swapped where those of all words are
        counts = {part: count * factor % _MODULUS for part, count in total.parts.items()}
        parts = frozenset((part, count) for part, count in counts.items() if count)
        return parts, total.constant * factor % _MODULUS, is_inverted

    def _residue(self, word: Term) -> _Sum | None:
        """The sum that a word is modulo 65535."""
        function = _Function(self, word)
        rest = (function.values.astype(np.int64) - function.sums) % _MODULUS
        self._ranges[word] = int(function.values.min()), int(function.values.max())
        return self._words(_Sum(function.sum, int(rest[0]), 0)) if (rest == rest[0]).all() else None

    def _words(self, total: _Sum) -> _Sum:
        """A sum modulo 65535 by bytes of variables, so that it does not matter how these are put together."""
        counts: dict[Any, int] = {}
        constant = total.constant
        for term, count in total.parts.items():
            residue = self._residues.get(term)
            if residue is not None:
                constant += count * residue.constant
            pieces = _bytes_of(term) if residue is None else residue.parts.items()
            for part, factor in pieces:
                counts[part] = counts.get(part, 0) + count * factor
        return _Sum({part: count % _MODULUS for part, count in counts.items()}, constant % _MODULUS, 0)

    # ---------------------------------------------------------------------------------------------- sums

    def residue(self, term: Term) -> _Sum | None:
        return self._residues.get(term)

    def cuts(self) -> Iterator[Term]:
        """Words that are checksums by themselves, what they are made of before them."""
        return (word for word, residue in self._residues.items() if residue is not None)

    def range(self, word: Term) -> tuple[int, int]:
        return self._ranges.get(word, (0, word.most))

    def linear(self, term: Term) -> _Sum:
        """A term as a sum, in as many bits as it has."""
        found = self._linear.get(term)
        if found is None:
            found = self._linear[term] = self._as_sum(term).reduced(term.width)
        return found

    def _as_sum(self, term: Term) -> _Sum:
        op, args, width = term.op, term.args, term.width
        nothing = _Sum({}, 0, width)
        if op == "const":
            return _Sum({}, args[0], width)
        if op == "bvadd":
            return self.linear(args[0]).plus(self.linear(args[1]))
        if op == "bvsub":
            return self.linear(args[0]).plus(self.linear(args[1]), -1)
        if op == "bvneg":
            return nothing.plus(self.linear(args[0]), -1)
        if op == "bvnot":
            return _Sum({}, -1, width).plus(self.linear(args[0]), -1)
        if op == "extract" and not args[1] and self.linear(args[2]).parts.keys() != {args[2]}:
            return self.linear(args[2]).reduced(width)
        if op == "concat":
            return self._joined(term)
        return _Sum({term: 1}, 0, width)

    def _joined(self, term: Term) -> _Sum:
        total, offset = _Sum({}, 0, term.width), term.width
        for number, part in enumerate(term.args):
            offset -= part.width
            # What a part but the first would carry over is lost.
            value = self.exact(part) if number else self.linear(part)
            total = total.plus(value, 1 << offset)
        return total

    def exact(self, term: Term) -> _Sum:
        """A term as a sum that never wraps around."""
        op, args = term.op, term.args
        if op == "const":
            return _Sum({}, args[0], 0)
        if op == "bvadd" and not args[0].most + args[1].most >> term.width:
            return self.exact(args[0]).plus(self.exact(args[1]))
        if op == "bvnot":
            return _Sum({}, (1 << term.width) - 1, 0).plus(self.exact(args[0]), -1)
        if op == "extract" and not args[1] and not args[2].most >> term.width:
            return self.exact(args[2])
        if op == "concat":
            total, offset = _Sum({}, 0, 0), term.width
            for part in args:
                offset -= part.width
                total = total.plus(self.exact(part), 1 << offset)
            return total
        return _Sum({term: 1}, 0, 0)


class _Function:
    """A term as a function of one sum of words: `values` has one for each of `sums`, which are all that there may be.

    Raises _NotOne if it depends on the words in another way.
    """

    def __init__(self, known: Checksums, term: Term) -> None:
        self._known = known
        self._root = term
        self._forms: dict[Term, _Sum] = {}
        self._collect(term)
        self.sum = self._one_sum()
        ends = [sorted(count * end for end in known.range(word)) for word, count in self.sum.items()]
        first, last = (sum(end) for end in zip(*ends, strict=True))
        self._unit = math.gcd(*self.sum.values())
        known.spend((last - first) // self._unit * len(self._forms))
        self.sums = np.arange(first, last + 1, self._unit)
        self._done: dict[Term, Array] = {}
        self.values = self._value(term)

    def _is_step(self, term: Term) -> bool:
        """Whether a term is computed from a sum; otherwise it is a word."""
        if term is not self._root and self._known.residue(term) is not None:
            return False
        inner = _inner(term)
        return self._known.linear(inner).parts.keys() != {inner}

    def _collect(self, term: Term) -> None:
        pending = [_inner(term)]
        while pending:
            each = pending.pop()
            if each not in self._forms:
                form = self._forms[each] = self._form(each)
                if form.width > 64:
                    raise _NotOne
                pending += [_inner(part) for part in form.parts if self._is_step(part)]

    def _form(self, term: Term) -> _Sum:
        """A term as a sum of words and steps. Where the sum behind another checksum is part of it, that one is."""
        form = self._known.linear(term)
        for cut in reversed(list(self._known.cuts())):
            if cut is self._root or form.width > cut.width or cut in form.parts:
                continue
            inside, size = self._known.linear(cut).reduced(form.width), 1 << form.width
            # A word may be in the sum besides, or be taken away from it again.
            steps = {part: count for part, count in inside.parts.items() if self._is_step(part)}
            times = next((form.parts.get(step, 0) for step, count in steps.items() if count == 1), 0)
            if times and all(form.parts.get(step, 0) == times * count % size for step, count in steps.items()):
                form = form.plus(inside, -times).plus(_Sum({cut: times}, 0, form.width))
        return form

    def _one_sum(self) -> dict[Term, int]:
        """The sum of which all are functions: the one with the most bits, and of these with the most words."""
        best: tuple[int, int] = (0, 0)
        found: dict[Term, int] = {}
        for form in self._forms.values():
            words = self._words(form)
            if words and (form.width, len(words)) > best:
                best = form.width, len(words)
                half = 1 << form.width - 1
                found = {word: count - 2 * half if count >= half else count for word, count in words.items()}
        if not any(abs(count) == math.gcd(*found.values()) for count in found.values()):
            raise _NotOne
        return found

    def _words(self, form: _Sum) -> dict[Term, int]:
        return {part: count for part, count in form.parts.items() if not self._is_step(part)}

    def _value(self, term: Term) -> Array:
        inner = _inner(term)
        found = self._done.get(inner)
        if found is None:
            form = self._forms[inner]
            found = self._times(form) * (self.sums // self._unit).astype(np.uint64) + np.uint64(form.constant)
            for part, count in form.parts.items():
                if self._is_step(part):
                    found = found + np.uint64(count) * self._value(part)
            found = self._done[inner] = found & np.uint64((1 << form.width) - 1)
        if inner is not term:
            high, low, _ = term.args
            found = found >> np.uint64(low) & np.uint64((1 << high - low + 1) - 1)
        return found

    def _times(self, form: _Sum) -> np.uint64:
        """How often the sum is in a form, in units."""
        words, size = self._words(form), 1 << form.width
        one = next(word for word, count in self.sum.items() if abs(count) == self._unit)
        times = words.get(one, 0) * self.sum[one] // self._unit
        if any((words.get(word, 0) - times * (count // self._unit)) % size for word, count in self.sum.items()):
            raise _NotOne
        if not words.keys() <= self.sum.keys():
            raise _NotOne
        return np.uint64(times % size)


def _is_plain(*sides: Term) -> bool:
    """Whether one of two terms is too simple for a checksum."""
    return any(side.op in ("const", "var") or (side.op == "extract" and side.args[2].op == "var") for side in sides)


def _inner(term: Term) -> Term:
    """What a term takes its upper bits from; the term itself if it is no such part."""
    if term.op == "extract" and term.args[1] and term.width <= 64 and term.args[2].width <= 64:
        inner: Term = term.args[2]
        return inner
    return term


def _bytes_of(term: Term) -> Iterator[tuple[object, int]]:
    """A word by bytes of the variable that it is part of, with the factor of each; or as it is."""
    high, low, whole = term.args if term.op == "extract" else (term.width - 1, 0, term)
    if whole.op != "var" or low % 8 or (high + 1) % 8:
        yield term, 1
        return
    for place in range(low, high, 8):
        yield (whole, place), pow(2, place - low, _MODULUS)


def _byte_of_checksum(values: Array, sums: NDArray[np.int64]) -> tuple[int, bool, bool] | None:
    """For bytes, one for each of some sums: the number that is added to the sum, whether they are the upper bytes of
    checksums, and whether they are inverted. None if they are nothing of the kind."""
    numbers = np.arange(_MODULUS)
    checksums = np.where(numbers == 0, _MODULUS, numbers)
    places = np.unique(np.linspace(0, len(values) - 1, _PROBES).astype(np.int64))
    for is_inverted in (False, True):
        wanted = values.astype(np.int64) ^ (0xFF if is_inverted else 0)
        for is_high in (False, True):
            table = checksums >> 8 if is_high else checksums & 0xFF
            constants = numbers
            for place in places:
                constants = constants[table[(constants + sums[place]) % _MODULUS] == wanted[place]]
            for constant in constants:
                if (table[(sums + constant) % _MODULUS] == wanted).all():
                    return int(constant), is_high, is_inverted
    return None


__all__ = ["Checksums"]
