"""Terms over many inputs at once, against evaluating them one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.vector import evaluate_vector

X = t.var("x", 64)
WORDS = st.one_of(
    st.integers(0, (1 << 64) - 1), st.integers(0, 5000), st.integers(0, 64).map(lambda n: (-1 << n) % (1 << 64))
)


@given(st.lists(WORDS, min_size=1), WORDS, st.booleans(), st.integers(64, 126), st.integers(0, 30))
def test_the_upper_half_of_a_product(words: list[int], factor: int, has_sign: bool, low: int, bits: int) -> None:
    wide = t.sign_extend(64, X) if has_sign else t.concat(t.const(0, 64), X)
    term = t.extract(min(127, low + bits), low, t.mul(wide, t.const(factor, 128)))
    found = evaluate_vector(term, {"x": np.array(words, dtype=np.uint64)})
    # What is no product any more, because the factor is a power of two, is too wide.
    if found is not None:
        assert found.tolist() == [evaluate(term, {"x": word}) for word in words]
    else:
        assert factor & (factor - 1) == 0


def test_a_division_as_compilers_write_it() -> None:
    # Signed, by 1000: the upper half of the product with 2^71 / 1000, shifted, and one more if negative.
    high = t.extract(127, 71, t.mul(t.sign_extend(64, X), t.const(0x20C49BA5E353F7CF, 128)))
    quotient = t.sub(t.sign_extend(7, high), t.ite(t.slt(X, t.const(0, 64)), t.const(-1, 64), t.const(0, 64)))
    times = [0, 1, 999, 1000, 1001, 70_000_999, -1 % (1 << 64), -1000 % (1 << 64), -70_001_000 % (1 << 64)]
    found = evaluate_vector(quotient, {"x": np.array(times, dtype=np.uint64)})
    assert found is not None
    assert [int(value) for value in found.astype(np.int64)] == [0, 0, 0, 1, 1, 70_000, 0, -1, -70_001]
