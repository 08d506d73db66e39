"""Pages, permissions, and bytes that are terms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.memory import PAGE, Fault, Memory
from harness.machine.values import Sym, Value, concrete
from soft.solve import terms as t
from soft.solve.evaluate import evaluate

CONTENT = bytes(i % 251 for i in range(PAGE))
FIRST = 16


def memory() -> Memory:
    """Pages 16 and 17 are data, 18 is read-only, 19 is code; nothing else is there."""
    permissions = {FIRST: "rw-", FIRST + 1: "rw-", FIRST + 2: "r--", FIRST + 3: "r-x"}
    return Memory(lambda page: (CONTENT, permissions[page]) if page in permissions else None)


def accessors(m: Memory) -> tuple[dict[int, Any], dict[int, Any]]:
    loads: dict[int, Any] = {1: m.load1, 2: m.load2, 4: m.load4, 8: m.load8, 16: lambda a: m.load(a, 16)}
    stores: dict[int, Any] = {1: m.store1, 2: m.store2, 4: m.store4, 8: m.store8}
    stores[16] = lambda a, v: m.store(a, v, 16)
    return loads, stores


sizes = st.sampled_from([1, 2, 4, 8, 16])
# Near the boundary of the two pages, so that accesses overlap each other and it.
places = st.integers(FIRST * PAGE + PAGE - 24, FIRST * PAGE + PAGE + 8)
kinds = st.sampled_from(["load", "store", "symbol", "copy"])
actions = st.tuples(kinds, places, places, sizes, st.integers(0, 2**128 - 1))


# Where nobody has written yet: nowhere, or about the boundary.
unwritten = st.sampled_from([range(0), range(FIRST * PAGE + PAGE - 10, FIRST * PAGE + PAGE + 5)])


@given(st.lists(actions, max_size=30), unwritten)
def test_bytes_go_where_they_belong(steps: list[tuple[str, int, int, int, int]], never: range) -> None:
    """Against a plain dictionary of bytes, of which each may be a term."""
    m = memory()
    m.reset(never)
    loads, stores = accessors(m)
    expected: dict[int, int] = {}
    values: dict[str, int] = {f"?{number}": CONTENT[place % PAGE] for number, place in enumerate(never)}

    def bytes_at(where: int, size: int) -> int:
        return sum(expected.get(where + i, CONTENT[(where + i) % PAGE]) << 8 * i for i in range(size))

    for number, (what, where, other, size, value) in enumerate(steps):
        value &= (1 << 8 * size) - 1
        if what == "load":
            found = loads[size](where)
            assert concrete(found) == bytes_at(where, size)
            if isinstance(found, Sym):
                assert found.term.width == 8 * size
                assert evaluate(found.term, values) == found.value
            continue
        new: Value = value
        if what == "copy":
            moved = bytes_at(other, size)
            m.copy(where, other, size)
            value = moved
        else:
            if what == "symbol":
                values[f"v{number}"] = value
                new = Sym(t.var(f"v{number}", 8 * size), value)
            stores[size](where, new)
        for i in range(size):
            expected[where + i] = value >> 8 * i & 0xFF
    for where, byte in expected.items():
        (found,) = m.read_values(where, 1)
        assert concrete(found) == byte
        if isinstance(found, Sym):
            assert evaluate(found.term, values) == byte


def play(m: Memory, steps: list[tuple[str, int, int, int, int]], name: str) -> None:
    loads, stores = accessors(m)
    for number, (what, where, other, size, value) in enumerate(steps):
        value &= (1 << 8 * size) - 1
        if what == "load":
            loads[size](where)
        elif what == "copy":
            m.copy(where, other, size)
        else:
            stores[size](where, Sym(t.var(f"{name}{number}", 8 * size), value) if what == "symbol" else value)


def everything(m: Memory) -> list[tuple[Any, int]]:
    found = m.read_values(FIRST * PAGE, 2 * PAGE)
    return [(value.term if isinstance(value, Sym) else None, concrete(value)) for value in found]


@given(*[st.lists(actions, max_size=10)] * 3, unwritten)
def test_what_was_saved_comes_back(
    before: list[tuple[str, int, int, int, int]],
    between: list[tuple[str, int, int, int, int]],
    behind: list[tuple[str, int, int, int, int]],
    never: range,
) -> None:
    m = memory()
    m.reset(never)
    play(m, before, "a")
    first, there_first = m.save(None), everything(m)
    play(m, between, "b")
    second, there_second = m.save(first), everything(m)
    play(m, behind, "c")
    m.map(40, 1, "rw-")
    for state, there in ((first, there_first), (second, there_second), (first, there_first)):
        m.restore(state, lambda term: None)
        assert everything(m) == there
        assert m.permissions(40) is None


def test_what_comes_back_has_the_values_of_another_input() -> None:
    m = memory()
    x = t.var("x", 32)
    where = FIRST * PAGE + PAGE - 2
    m.store4(where, Sym(x, 0x01020304))
    m.store1(where + 1, 9)
    state = m.save(None)
    m.restore(state, lambda term: evaluate(term, {"x": 0x0A0B0C0D}))
    assert [concrete(value) for value in m.read_values(where, 4)] == [0x0D, 9, 0x0B, 0x0A]
    assert state.symbols  # what was saved has not changed
    m.restore(state, lambda term: None)
    assert [concrete(value) for value in m.read_values(where, 4)] == [0x04, 9, 0x02, 0x01]


def test_states_share_what_has_not_changed() -> None:
    m = memory()
    m.store1(FIRST * PAGE, 1)
    m.store1(FIRST * PAGE + PAGE, 1)
    first = m.save(None)
    m.store1(FIRST * PAGE, 2)
    second = m.save(first)
    assert second.written[FIRST + 1] is first.written[FIRST + 1]
    assert dict(second.parts()).keys() - dict(first.parts()).keys() == {id(second.written[FIRST])}


def test_a_symbol_stays_whole_through_memory() -> None:
    m = memory()
    x = t.var("x", 32)
    where = FIRST * PAGE + PAGE - 2
    m.store4(where, Sym(x, 5))
    found = m.load4(where)
    assert isinstance(found, Sym)
    assert found.term is x
    m.store1(where + 1, 0)
    (low, gone) = m.read_values(where, 2)
    assert isinstance(low, Sym)
    assert gone == 0


@pytest.mark.parametrize(
    ("page", "write"), [(15, False), (20, False), (15, True), (18, True), (19, True), ((1 << 52) - 1, False)]
)
def test_accesses_outside_or_against_permissions_fault(page: int, write: bool) -> None:
    for size in (1, 2, 4, 8, 16):
        loads, stores = accessors(memory())
        with pytest.raises(Fault) as fault:
            stores[size](page * PAGE + 8, 0) if write else loads[size](page * PAGE + 8)
        assert fault.value.address == page * PAGE + 8


def test_addresses_are_reduced_to_64_bits() -> None:
    m = memory()
    assert m.load4(FIRST * PAGE + (1 << 64)) == m.load4(FIRST * PAGE)
    with pytest.raises(Fault) as fault:
        m.store4(-8, 1)
    assert fault.value.address == (1 << 64) - 8


def test_an_access_across_the_end_faults_and_changes_nothing() -> None:
    m = memory()
    end = (FIRST + 2) * PAGE
    with pytest.raises(Fault):
        m.store8(end - 4, 0)
    assert m.read(end - 4, 4) == CONTENT[-4:]
    with pytest.raises(Fault):
        m.load8((FIRST + 4) * PAGE - 4)


def test_protection_takes_effect_and_content_stays() -> None:
    m = memory()
    m.store8(FIRST * PAGE, 7)
    m.protect(FIRST, 2, "r--")
    with pytest.raises(Fault):
        m.store8(FIRST * PAGE, 8)
    assert m.load8(FIRST * PAGE) == 7
    m.protect(FIRST, 2, "")
    with pytest.raises(Fault):
        m.load8(FIRST * PAGE)
    assert m.permissions(FIRST) is not None
    m.protect(FIRST, 2, "rw-")
    assert m.load8(FIRST * PAGE) == 7
    assert m.read((FIRST + 1) * PAGE, PAGE) == CONTENT
    m.protect(99, 1, "rw-")
    assert m.permissions(99) is None


def test_mapping_gives_zeros_and_unmapping_takes_them() -> None:
    m = memory()
    m.store8(FIRST * PAGE, Sym(t.var("x", 64), 7))
    m.map(FIRST, 1, "rw-")
    assert m.load8(FIRST * PAGE) == 0
    m.unmap(FIRST, 1)
    with pytest.raises(Fault):
        m.load1(FIRST * PAGE)
    with pytest.raises(Fault):
        m.store1(FIRST * PAGE, 1)
    m.reset()
    assert m.read(FIRST * PAGE, PAGE) == CONTENT


def test_reset_forgets_writes_and_symbols() -> None:
    m = memory()
    m.store8(FIRST * PAGE, Sym(t.var("x", 64), 7))
    m.reset()
    assert m.load8(FIRST * PAGE) == int.from_bytes(CONTENT[:8], "little")
    assert m.is_original(FIRST)


def test_a_byte_is_unwritten_until_it_is_written() -> None:
    m = memory()
    place = FIRST * PAGE + 8
    m.reset(range(place, place + 4))
    m.store1(place + 1, 0xAA)
    assert not m.has_read_unwritten
    found = m.load4(place)
    assert m.has_read_unwritten
    assert isinstance(found, Sym)
    assert found.term.variables == {"?0", "?2", "?3"}
    assert found.value == int.from_bytes(bytes([CONTENT[8], 0xAA, *CONTENT[10:12]]), "little")
    m.copy(place + 100, place, 4)
    assert [isinstance(byte, Sym) for byte in m.read_values(place + 100, 4)] == [True, False, True, True]
    m.write(place, bytes(4))
    assert m.load4(place) == 0


def test_a_symbolic_address_is_asked_about() -> None:
    m = memory()
    asked: list[tuple[int, int, bool]] = []

    def answer(address: Sym, size: int, for_write: bool) -> Value:
        asked.append((address.value, size, for_write))
        return address.value if for_write else 42

    m.on_symbolic_address = answer
    where = Sym(t.var("p", 64), FIRST * PAGE)
    loads, stores = accessors(m)
    for size in (1, 2, 4, 8, 16):
        assert loads[size](where) == 42
        stores[size](where, 3)
    assert asked == [(FIRST * PAGE, size, w) for size in (1, 2, 4, 8, 16) for w in (False, True)]
    assert m.load1(FIRST * PAGE) == 3


def test_changing_code_is_told() -> None:
    m = memory()
    told: list[int] = []
    m.on_code_change = lambda: told.append(1)
    m.unmap(FIRST, 1)
    assert not told
    m.protect(FIRST + 3, 1, "rw-")
    assert told
