"""What stands in the part of the stack that nobody has written, and how it is put into terms."""

from __future__ import annotations

import pytest

from harness.frozen import Snapshot
from harness.kernel.descriptions import random_bytes
from harness.marks import random_byte, unwritten_byte, unwritten_in
from harness.unwritten import Unwritten
from soft.solve import terms as t
from tests.harness.kernel import lab

X = t.var("x", 8)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return lab.snapshot("stack")


def test_it_ends_below_the_red_zone_of_the_frozen_thread(snapshot: Snapshot) -> None:
    place = Unwritten(snapshot).place
    assert place.stop == snapshot.thread.registers["rsp"] - 128
    assert 0 < len(place) <= 1 << 16


def test_every_byte_might_be_another(snapshot: Snapshot) -> None:
    unwritten = Unwritten(snapshot)
    there = snapshot.read(unwritten.place.start, len(unwritten.place))
    assert there is not None
    assert all(one != other for one, other in zip(there, unwritten.others, strict=True))


def test_a_term_gets_the_bytes_that_are_there(snapshot: Snapshot) -> None:
    unwritten = Unwritten(snapshot)
    there = snapshot.read(unwritten.place.start + 5, 1)
    assert there is not None
    assert unwritten.known(t.add(X, unwritten_byte(5))) is t.add(X, t.const(there[0], 8))
    assert unwritten.known(X) is X


def test_a_term_that_is_the_same_with_other_bytes_does_not_matter(snapshot: Snapshot) -> None:
    unwritten = Unwritten(snapshot)
    there = snapshot.read(unwritten.place.start, 1)
    assert there is not None
    neither = next(byte for byte in range(256) if byte not in (there[0], unwritten.others[0]))
    byte = unwritten_byte(0)
    assert unwritten.matters(byte)
    assert unwritten.matters(t.eq(byte, t.const(there[0], 8)))
    assert not unwritten.matters(t.eq(byte, t.const(neither, 8)))
    assert unwritten.matters(t.add(X, byte))
    assert not unwritten.matters(X)


def test_random_numbers_are_such_bytes(snapshot: Snapshot) -> None:
    unwritten = Unwritten(snapshot)
    seed = t.concat(*(random_byte(number) for number in range(8)))
    assert unwritten.known(seed) is t.const(int.from_bytes(random_bytes(0, 8), "big"), 64)
    assert unwritten.matters(seed)
    assert not unwritten.matters(t.eq(seed, t.const(0, 64)))


def test_the_bytes_in_a_term_are_found() -> None:
    assert unwritten_in(t.concat(unwritten_byte(1), X, unwritten_byte(7))) == {"?1", "?7"}
    assert not unwritten_in(X)
