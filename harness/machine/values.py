"""What a register or a temporary holds: an int, or a term beside the value that it has in this run."""

from __future__ import annotations

from soft.solve import terms as t
from soft.solve.terms import Term


class Sym:
    """A value that depends on the inputs: its term, and what it is worth under this run's input."""

    __slots__ = ("term", "value")

    def __init__(self, term: Term, value: int) -> None:
        self.term = term
        self.value = value

    def __repr__(self) -> str:
        return f"Sym({self.term!r} = {self.value:#x})"


Value = int | Sym


def make(term: Term, value: int) -> Value:
    """A pair, or a plain integer where the term turned out to be constant."""
    if term.op == "const":
        return int(term.args[0])
    return Sym(term, value)


def term_of(value: Value, width: int) -> Term:
    """The value as a term of `width` bits."""
    if value.__class__ is int:
        return t.const(value, width)
    assert isinstance(value, Sym)
    term = value.term
    if term.width == width:
        return term
    return t.zero_extend(width - term.width, term) if term.width < width else t.extract(width - 1, 0, term)


def concrete(value: Value) -> int:
    """What the value is worth in this run."""
    return value if isinstance(value, int) else value.value


def low_bits(value: Value, shift: int, width: int) -> Value:
    """`width` bits of a register, from bit `shift` up."""
    if isinstance(value, int):
        return value >> shift & ((1 << width) - 1)
    return make(t.extract(shift + width - 1, shift, value.term), value.value >> shift & ((1 << width) - 1))


def insert_bits(old: Value, shift: int, width: int, new: Value) -> Value:
    """A 64-bit register after `width` bits from bit `shift` up were replaced."""
    mask = ((1 << width) - 1) << shift
    value = concrete(old) & ~mask | concrete(new) << shift
    base = term_of(old, 64)
    parts = [term_of(new, width)]
    if shift + width < 64:
        parts.insert(0, t.extract(63, shift + width, base))
    if shift:
        parts.append(t.extract(shift - 1, 0, base))
    return make(t.concat(*parts), value)


def join(high: Value, low: Value, width: int = 64) -> Value:
    """Two values of `width` bits side by side."""
    if isinstance(high, int) and isinstance(low, int):
        return high << width | low
    return make(t.concat(term_of(high, width), term_of(low, width)), concrete(high) << width | concrete(low))


def choose(condition: Value, yes: Value, no: Value, width: int) -> Value:
    """VEX's if-then-else over a one-bit condition."""
    if isinstance(condition, int):
        return yes if condition else no
    truth = t.eq(term_of(condition, 1), t.const(1, 1))
    term = t.ite(truth, term_of(yes, width), term_of(no, width))
    return make(term, concrete(yes) if condition.value else concrete(no))
