"""The memory of a run: pages of the snapshot, copied when written, and beside them the bytes that are terms.

The accessors are closures over a few dictionaries, because the compiled blocks call them for every load and store.
Each first tries what nearly every access is, an integer at an integer address, in a page without symbolic bytes or at
least none at this place, and leaves whatever that attempt trips over (a page not seen yet, a page boundary, a symbolic
address or value) to the general way. There too an address is reduced to 64 bits: blocks compute `rbp - 8` and do not
care whether it is below zero.
A byte that is symbolic also has its concrete value in the page. So has one that was never written: it is a variable of
its own once it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.machine.ends import Fault
from harness.machine.values import Sym, Value, make
from harness.marks import unwritten_byte
from soft.solve import terms as t
from soft.solve.terms import Term

PAGE = 4096
_MASK64 = (1 << 64) - 1
# Permissions of a page that is mapped but may not be accessed; the empty string stands for "not mapped".
NO_ACCESS = "-"

# What the map of a page says of a byte that is not just an integer.
_TERM, _UNWRITTEN = 1, 2

# About what Python takes for one byte that is a term.
_SYMBOL_SIZE = 100

# A page of the snapshot with its permissions ("r", "w", "x" as in /proc/PID/maps), or None where nothing is mapped.
PageSource = Callable[[int], tuple[bytes, str] | None]


@dataclass(frozen=True, slots=True)
class MemoryState:
    """All that a run has changed in its memory, at one moment."""

    mapped: dict[int, str]
    written: dict[int, bytes]
    symbols: dict[int, tuple[Term, int]]
    symbolic_pages: dict[int, bytes]
    unwritten: range
    has_read_unwritten: bool

    def parts(self) -> Iterator[tuple[int, int]]:
        """The identity of each part that other states may share, and how many bytes it takes, about."""
        for page in (*self.written.values(), *self.symbolic_pages.values()):
            yield id(page), PAGE
        yield id(self.symbols), _SYMBOL_SIZE * len(self.symbols)


class Memory:
    """`reset()` starts a new run; the accessors stay the same objects, so that compiled blocks may hold them."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._cache: dict[int, tuple[bytes, str] | None] = {}
        self.mapped: dict[int, str] = {}  # pages that this run mapped, with permissions; "" if it unmapped them
        self.written: dict[int, bytearray] = {}  # this run's own copies
        self.symbols: dict[int, tuple[Term, int]] = {}  # address → (term, index of the byte from the least significant)
        self.symbolic_pages: dict[int, bytearray] = {}  # page → for each of its bytes, 0 if it is an integer
        # Pages seen to be readable, and writable; of those, the ones without symbolic bytes, and the ones with them
        # together with the map of these.
        self._readable: dict[int, bytes | bytearray] = {}
        self._writable: dict[int, bytearray] = {}
        self._plain: dict[int, bytes | bytearray] = {}
        self._plain_writable: dict[int, bytearray] = {}
        self._mixed: dict[int, tuple[bytearray, bytes | bytearray]] = {}
        self._mixed_writable: dict[int, tuple[bytearray, bytearray]] = {}
        self.unwritten = range(0)
        self.has_read_unwritten = False
        """Whether this run has looked at a byte that was never written."""
        self.on_symbolic_address: Callable[[Sym, int, bool], Value] | None = None
        self.on_symbolic_store: Callable[[Sym, int], None] | None = None
        self.on_code_change: Callable[[], None] | None = None
        self._make_accessors()

    def reset(self, unwritten: range = range(0)) -> None:
        """Everything as it was frozen; the bytes at these addresses count as never written."""
        self.mapped.clear()
        self.written.clear()
        self.symbols.clear()
        self.symbolic_pages.clear()
        for seen in self._seen():
            seen.clear()
        self.unwritten = unwritten
        self.has_read_unwritten = False
        for page in range(unwritten.start >> 12, (unwritten.stop + PAGE - 1) >> 12) if unwritten else ():
            first, behind = (min(max(at - page * PAGE, 0), PAGE) for at in (unwritten.start, unwritten.stop))
            shadow = self.symbolic_pages[page] = bytearray(PAGE)
            shadow[first:behind] = bytes([_UNWRITTEN]) * (behind - first)

    def save(self, earlier: MemoryState | None) -> MemoryState:
        """What this run has changed so far; it shares with an earlier state what has stayed the same since."""
        symbols = self.symbols
        if earlier is not None and earlier.symbols == symbols:
            symbols = earlier.symbols
        else:
            symbols = dict(symbols)
        return MemoryState(
            dict(self.mapped),
            _kept(self.written, earlier.written if earlier is not None else {}),
            symbols,
            _kept(self.symbolic_pages, earlier.symbolic_pages if earlier is not None else {}),
            self.unwritten,
            self.has_read_unwritten,
        )

    def restore(self, state: MemoryState, change: Callable[[Term], int | None]) -> None:
        """Everything as it was then; `change` gives what a term is worth now, or None if that is the same as then."""
        if any("x" in self._frozen_permissions(page) for page in state.mapped) and self.on_code_change is not None:
            self.on_code_change()
        self.reset()
        self.mapped.update(state.mapped)
        self.written.update((page, bytearray(content)) for page, content in state.written.items())
        self.symbols.update(state.symbols)
        self.symbolic_pages.update((page, bytearray(shadow)) for page, shadow in state.symbolic_pages.items())
        self.unwritten, self.has_read_unwritten = state.unwritten, state.has_read_unwritten
        for address, (term, index) in state.symbols.items():
            value = change(term)
            if value is not None:
                self.written[address >> 12][address & 4095] = value >> 8 * index & 0xFF

    def _frozen_permissions(self, page: int) -> str:
        base = self._base(page)
        return base[1] if base is not None else ""

    def _seen(self) -> tuple[dict[int, Any], ...]:
        return (
            self._readable,
            self._writable,
            self._plain,
            self._plain_writable,
            self._mixed,
            self._mixed_writable,
        )

    # ---------------------------------------------------------------------------------------------- pages

    def permissions(self, page: int) -> str | None:
        """How a page may be accessed in this run; None if nothing is mapped there."""
        own = self.mapped.get(page)
        if own is not None:
            return own or None
        base = self._base(page)
        return base[1] if base is not None else None

    def is_original(self, page: int) -> bool:
        """Does the page still hold what the snapshot has there?"""
        return page not in self.mapped and page not in self.written

    def _base(self, page: int) -> tuple[bytes, str] | None:
        if page in self._cache:
            return self._cache[page]
        found = self._cache[page] = self._source(page)
        return found

    def _content(self, page: int) -> bytes | bytearray:
        """What stands in a mapped page."""
        own = self.written.get(page)
        if own is not None:
            return own
        if page in self.mapped:
            return self.written.setdefault(page, bytearray(PAGE))
        base = self._base(page)
        assert base is not None
        return base[0]

    def _read_page(self, page: int, address: int) -> bytes | bytearray:
        """The page for a read of `address`, which is in it."""
        found = self._readable.get(page)
        if found is not None:
            return found
        permissions = self.permissions(page)
        if permissions is None or "r" not in permissions:
            raise Fault(address, "read")
        content = self._readable[page] = self._content(page)
        shadow = self.symbolic_pages.get(page)
        if shadow is None:
            self._plain[page] = content
        else:
            self._mixed[page] = shadow, content
        return content

    def _write_page(self, page: int, address: int) -> bytearray:
        """This run's own copy of the page, for a write to `address`, which is in it."""
        found = self._writable.get(page)
        if found is not None:
            return found
        permissions = self.permissions(page)
        if permissions is None or "w" not in permissions:
            raise Fault(address, "write")
        own = self.written.get(page)
        if own is None:
            own = self.written[page] = bytearray(self._content(page))
        # On this processor what may be written may be read.
        self._readable[page] = self._writable[page] = own
        shadow = self.symbolic_pages.get(page)
        if shadow is None:
            self._plain[page] = self._plain_writable[page] = own
        else:
            self._mixed[page] = self._mixed_writable[page] = shadow, own
        return own

    def _taint(self, page: int) -> bytearray:
        """The map of symbolic bytes of a page, which from now on is not plain."""
        shadow = self.symbolic_pages.get(page)
        if shadow is None:
            shadow = self.symbolic_pages[page] = bytearray(PAGE)
            if self._plain.pop(page, None) is not None:
                self._mixed[page] = shadow, self._readable[page]
            if self._plain_writable.pop(page, None) is not None:
                self._mixed_writable[page] = shadow, self._writable[page]
        return shadow

    def _change(self, page: int) -> None:
        """Before a page's mapping or permissions change: what was seen of it no longer holds."""
        if self.on_code_change is not None and "x" in (self.permissions(page) or ""):
            self.on_code_change()
        for seen in self._seen():
            seen.pop(page, None)

    def map(self, first: int, count: int, permissions: str) -> None:
        """Fresh zero pages."""
        self.unmap(first, count)
        for page in range(first, first + count):
            self.mapped[page] = permissions or NO_ACCESS

    def unmap(self, first: int, count: int) -> None:
        for page in range(first, first + count):
            self._change(page)
            self.mapped[page] = ""
            self.written.pop(page, None)
            if self.symbolic_pages.pop(page, None) is not None:
                for address in range(page * PAGE, page * PAGE + PAGE):
                    self.symbols.pop(address, None)

    def protect(self, first: int, count: int, permissions: str) -> None:
        """mprotect: keeps the content; a page that is not mapped stays so."""
        for page in range(first, first + count):
            if self.permissions(page) is None:
                continue
            self._change(page)
            if page not in self.mapped and page not in self.written:
                self.written[page] = bytearray(self._content(page))
            self.mapped[page] = permissions or NO_ACCESS

    # ---------------------------------------------------------------------------------------------- accessors

    def _make_accessors(self) -> None:
        symbolic_pages = self.symbolic_pages
        get_plain, get_plain_writable = self._plain.get, self._plain_writable.get
        get_mixed, get_mixed_writable = self._mixed.get, self._mixed_writable.get
        read_page, write_page = self._read_page, self._write_page
        from_bytes, oops = int.from_bytes, struct.error
        unpack2, unpack4, unpack8 = (struct.Struct(f).unpack_from for f in ("<H", "<I", "<Q"))
        pack2, pack4, pack8 = (struct.Struct(f).pack_into for f in ("<H", "<I", "<Q"))

        def load(address: Any, size: int) -> Any:
            if address.__class__ is not int:
                return self._indirect(address, size)
            address &= _MASK64
            page, offset = address >> 12, address & 4095
            if offset + size <= PAGE:
                value = from_bytes(read_page(page, address)[offset : offset + size], "little")
                shadow = symbolic_pages.get(page)
                if shadow is None or not any(shadow[offset : offset + size]):
                    return value
            else:
                first = PAGE - offset
                low, high = read_page(page, address), read_page(page + 1, address + first)
                value = from_bytes(low[offset:] + high[: size - first], "little")
                if page not in symbolic_pages and page + 1 not in symbolic_pages:
                    return value
                if not any(map(self._is_symbolic, range(address, address + size))):
                    return value
            return self._assemble(address, size, value)

        def load1(address: Any) -> Any:
            try:
                content = get_plain(address >> 12)
                if content is not None:
                    return content[address & 4095]
                mixed = get_mixed(address >> 12)
                if mixed is not None and not mixed[0][address & 4095]:
                    return mixed[1][address & 4095]
            except TypeError:
                pass
            return load(address, 1)

        def fixed_load(size: int, unpack: Callable[..., tuple[Any, ...]]) -> Callable[[Any], Any]:
            def load_fixed(address: Any) -> Any:
                try:
                    content = get_plain(address >> 12)
                    if content is not None:
                        return unpack(content, address & 4095)[0]
                    mixed = get_mixed(address >> 12)
                    if mixed is not None and not unpack(mixed[0], address & 4095)[0]:
                        return unpack(mixed[1], address & 4095)[0]
                except (TypeError, oops):
                    pass
                return load(address, size)

            return load_fixed

        def store(address: Any, value: Any, size: int) -> None:
            if address.__class__ is not int:
                self._store_indirect(address, value, size)
                return
            address &= _MASK64
            data = (value if value.__class__ is int else value.value).to_bytes(size, "little")
            page, offset = address >> 12, address & 4095
            first = PAGE - offset
            if size <= first:
                write_page(page, address)[offset : offset + size] = data
                shadow = symbolic_pages.get(page)
                touched = shadow is not None and any(shadow[offset : offset + size])
            else:
                low, high = write_page(page, address), write_page(page + 1, address + first)
                low[offset:] = data[:first]
                high[: size - first] = data[first:]
                touched = page in symbolic_pages or page + 1 in symbolic_pages
            if value.__class__ is not int:
                self.mark(address, value, size)
            elif touched:
                self._unmark(address, size)

        def store1(address: Any, value: Any) -> None:
            try:
                content = get_plain_writable(address >> 12)
                if content is not None:
                    content[address & 4095] = value
                    return
                mixed = get_mixed_writable(address >> 12)
                if mixed is not None and not mixed[0][address & 4095]:
                    mixed[1][address & 4095] = value
                    return
            except TypeError:
                pass
            store(address, value, 1)

        def fixed_store(
            size: int, pack: Callable[..., None], unpack: Callable[..., tuple[Any, ...]]
        ) -> Callable[[Any, Any], None]:
            def store_fixed(address: Any, value: Any) -> None:
                try:
                    content = get_plain_writable(address >> 12)
                    if content is not None:
                        pack(content, address & 4095, value)
                        return
                    mixed = get_mixed_writable(address >> 12)
                    if mixed is not None and not unpack(mixed[0], address & 4095)[0]:
                        pack(mixed[1], address & 4095, value)
                        return
                except (TypeError, oops):
                    pass
                store(address, value, size)

            return store_fixed

        self.load: Callable[[Value, int], Value] = load
        self.load1: Callable[[Value], Value] = load1
        self.load2: Callable[[Value], Value] = fixed_load(2, unpack2)
        self.load4: Callable[[Value], Value] = fixed_load(4, unpack4)
        self.load8: Callable[[Value], Value] = fixed_load(8, unpack8)
        self.store: Callable[[Value, Value, int], None] = store
        self.store1: Callable[[Value, Value], None] = store1
        self.store2: Callable[[Value, Value], None] = fixed_store(2, pack2, unpack2)
        self.store4: Callable[[Value, Value], None] = fixed_store(4, pack4, unpack4)
        self.store8: Callable[[Value, Value], None] = fixed_store(8, pack8, unpack8)

    def mark(self, address: int, value: Sym, size: int) -> None:
        """Note that `size` bytes from `address` are those of a term, least significant first."""
        term = value.term
        if term.width < 8 * size:
            term = t.zero_extend(8 * size - term.width, term)
        parts = _runs(term)
        for index in range(size):
            piece, byte = parts(index)
            self._set(address + index, None if piece.op == "const" else (piece, byte))

    def _set(self, address: int, symbol: tuple[Term, int] | None) -> None:
        page = address >> 12
        if symbol is not None:
            self.symbols[address] = symbol
            self._taint(page)[address & 4095] = _TERM
        elif page in self.symbolic_pages:
            self.symbols.pop(address, None)
            self.symbolic_pages[page][address & 4095] = 0

    def rewrite(self, which: Callable[[Term], bool], change: Callable[[Term], Term]) -> None:
        """Put other terms in place of some; their values in this run are the same."""
        for address, (term, byte) in [(a, found) for a, found in self.symbols.items() if which(found[0])]:
            changed = change(term)
            self._set(address, None if changed.op == "const" else (changed, byte))

    def _unmark(self, address: int, size: int) -> None:
        while size:
            page, offset = address >> 12, address & 4095
            count = min(PAGE - offset, size)
            shadow = self.symbolic_pages.get(page)
            if shadow is not None:
                at = shadow.find(_TERM, offset, offset + count)
                while at >= 0:
                    self.symbols.pop(page * PAGE + at, None)
                    at = shadow.find(_TERM, at + 1, offset + count)
                shadow[offset : offset + count] = bytes(count)
            address, size = address + count, size - count

    def _is_symbolic(self, address: int) -> bool:
        shadow = self.symbolic_pages.get(address >> 12)
        return shadow is not None and shadow[address & 4095] != 0

    def _symbol(self, address: int) -> tuple[Term, int] | None:
        """The term in which a byte stands, and where; None if it is an integer."""
        found = self.symbols.get(address)
        if found is None and address in self.unwritten and self.symbolic_pages[address >> 12][address & 4095]:
            self.has_read_unwritten = True
            return unwritten_byte(address - self.unwritten.start), 0
        return found

    def _assemble(self, address: int, size: int, value: int) -> Value:
        symbol = self._symbol
        if size == 1:
            found = symbol(address)
            assert found is not None
            term, byte = found
            return make(t.extract(8 * byte + 7, 8 * byte, term), value)
        parts: list[Term] = []
        index = size - 1
        while index >= 0:
            found = symbol(address + index)
            if found is None:
                parts.append(t.const(value >> 8 * index, 8))
                index -= 1
                continue
            term, high = found
            low = high
            index -= 1
            while index >= 0 and low > 0 and symbol(address + index) == (term, low - 1):
                low -= 1
                index -= 1
            parts.append(t.extract(8 * high + 7, 8 * low, term))
        return make(t.concat(*parts), value)

    def _indirect(self, address: Value, size: int) -> Value:
        assert isinstance(address, Sym)
        assert self.on_symbolic_address is not None
        return self.on_symbolic_address(address, size, False)

    def _store_indirect(self, address: Value, value: Value, size: int) -> None:
        assert isinstance(address, Sym)
        assert self.on_symbolic_address is not None
        where = self.on_symbolic_address(address, size, True)
        self.store(where, value, size)
        if self.on_symbolic_store is not None:
            self.on_symbolic_store(address, size)

    # ---------------------------------------------------------------------------------------------- blocks of bytes

    def read(self, address: int, size: int) -> bytes:
        """The concrete bytes."""
        out = bytearray()
        while len(out) < size:
            page, offset = (address + len(out)) >> 12, (address + len(out)) & 4095
            content = self._read_page(page, address + len(out))
            out += content[offset : offset + size - len(out)]
        return bytes(out[:size])

    def read_values(self, address: int, size: int) -> list[Value]:
        """The bytes, each an integer or a symbolic pair."""
        data = self.read(address, size)
        if not self._touches_symbols(address, size):
            return list(data)
        out: list[Value] = []
        for index, byte in enumerate(data):
            found = self._symbol(address + index)
            if found is None:
                out.append(byte)
            else:
                out.append(make(t.extract(8 * found[1] + 7, 8 * found[1], found[0]), byte))
        return out

    def write(self, address: int, data: bytes) -> None:
        position = 0
        while position < len(data):
            page, offset = (address + position) >> 12, (address + position) & 4095
            count = min(PAGE - offset, len(data) - position)
            content = self._write_page(page, address + position)
            content[offset : offset + count] = data[position : position + count]
            if page in self.symbolic_pages:
                self._unmark(address + position, count)
            position += count

    def write_values(self, address: int, values: Iterable[Value]) -> None:
        values = list(values)
        self.write(address, bytes(v if isinstance(v, int) else v.value for v in values))
        for index, value in enumerate(values):
            if isinstance(value, Sym):
                self.mark(address + index, value, 1)

    def copy(self, target: int, source: int, size: int) -> None:
        """memmove, keeping the terms that stand in the bytes."""
        data = self.read(source, size)
        marks = (
            [(i, found) for i in range(size) if (found := self._symbol(source + i)) is not None]
            if self._touches_symbols(source, size)
            else []
        )
        self.write(target, data)
        for index, found in marks:
            self._set(target + index, found)

    def _touches_symbols(self, address: int, size: int) -> bool:
        return any(page in self.symbolic_pages for page in range(address >> 12, (address + size - 1 >> 12) + 1))


def _kept(pages: dict[int, bytearray], earlier: dict[int, bytes]) -> dict[int, bytes]:
    """The pages as they are; those that have not changed are the earlier objects."""
    kept = {}
    for page, content in pages.items():
        same = earlier.get(page)
        kept[page] = same if same is not None and same == content else bytes(content)
    return kept


def _runs(term: Term) -> Callable[[int], tuple[Term, int]]:
    """Where byte `index` of a term is found: inside a byte-aligned piece if the term is a concat of such, else itself.

    Loads of a part of a store then give that piece, and not an extract of a concat.
    """
    if term.op != "concat" or any(part.width % 8 for part in term.args):
        return lambda index: (term, index)
    table: list[tuple[Term, int]] = []
    for part in reversed(term.args):
        table.extend((part, i) for i in range(part.width // 8))
    return table.__getitem__


__all__ = ["NO_ACCESS", "PAGE", "Fault", "Memory", "MemoryState", "PageSource"]
