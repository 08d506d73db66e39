"""The memory of a run: pages of the snapshot, copied when written, and beside them the bytes that are terms.

The accessors are closures over a few dictionaries, because the compiled blocks call them for every load and store.
A byte that is symbolic also has its concrete value in the page, so that the integer path never looks further.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from harness.machine.values import Sym, Value, make
from soft.solve import terms as t
from soft.solve.terms import Term

PAGE = 4096


class Fault(Exception):
    """An access outside the mappings, or against their permissions: SIGSEGV."""

    def __init__(self, address: int, action: str) -> None:
        super().__init__(f"{action} of {address:#x}")
        self.address = address
        self.action = action


# A page of the snapshot with its permissions ("r", "w", "x" as in /proc/PID/maps), or None where nothing is mapped.
PageSource = Callable[[int], tuple[bytes, str] | None]


class Memory:
    """`reset()` starts a new run; the accessors stay the same objects, so that compiled blocks may hold them."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self.readable: dict[int, bytes | bytearray] = {}
        self.written: dict[int, bytearray] = {}
        self.symbols: dict[int, tuple[Term, int]] = {}  # address → (term, index of the byte from the least significant)
        self.symbolic_pages: set[int] = set()
        self.mapped: dict[int, str] = {}  # pages that this run mapped, with permissions; "" if it unmapped them
        self.on_symbolic_address: Callable[[Sym, int, bool], Value] | None = None
        self._cache: dict[int, tuple[bytes, str] | None] = {}
        self._make_accessors()

    def reset(self) -> None:
        self.readable.clear()
        self.written.clear()
        self.symbols.clear()
        self.symbolic_pages.clear()
        self.mapped.clear()

    # ---------------------------------------------------------------------------------------------- pages

    def permissions(self, page: int) -> str | None:
        """How a page may be accessed in this run; None if nothing is mapped there."""
        own = self.mapped.get(page)
        if own is not None:
            return own or None
        base = self._base(page)
        return base[1] if base is not None else None

    def _base(self, page: int) -> tuple[bytes, str] | None:
        if page in self._cache:
            return self._cache[page]
        found = self._cache[page] = self._source(page)
        return found

    def _read_page(self, page: int) -> bytes | bytearray:
        permissions = self.permissions(page)
        if permissions is None or "r" not in permissions:
            raise Fault(page * PAGE, "read")
        if page in self.mapped:
            content: bytes | bytearray = self.written.setdefault(page, bytearray(PAGE))
        else:
            base = self._base(page)
            assert base is not None
            content = base[0]
        self.readable[page] = content
        return content

    def _write_page(self, page: int) -> bytearray:
        permissions = self.permissions(page)
        if permissions is None or "w" not in permissions:
            raise Fault(page * PAGE, "write")
        own = self.written.get(page)
        if own is None:
            own = self.written[page] = bytearray(self._read_page(page))
        self.readable[page] = own
        return own

    def map(self, first: int, count: int, permissions: str) -> None:
        """Fresh zero pages."""
        for page in range(first, first + count):
            self.unmap(page, 1)
            self.mapped[page] = permissions

    def unmap(self, first: int, count: int) -> None:
        for page in range(first, first + count):
            self.mapped[page] = ""
            self.readable.pop(page, None)
            self.written.pop(page, None)
            if page in self.symbolic_pages:
                self.symbolic_pages.discard(page)
                for address in range(page * PAGE, page * PAGE + PAGE):
                    self.symbols.pop(address, None)

    def protect(self, first: int, count: int, permissions: str) -> None:
        """mprotect: keeps the content of pages that have one."""
        for page in range(first, first + count):
            content = self.readable.get(page)
            if content is None and self.permissions(page) is not None:
                base = self._base(page) if page not in self.mapped else None
                content = base[0] if base is not None else b"\0" * PAGE
            self.readable.pop(page, None)
            if content is not None:
                self.written[page] = bytearray(content)
            self.mapped[page] = permissions

    # ---------------------------------------------------------------------------------------------- accessors

    def _make_accessors(self) -> None:
        readable, written = self.readable, self.written
        symbols, symbolic_pages = self.symbols, self.symbolic_pages
        read_page, write_page = self._read_page, self._write_page
        from_bytes = int.from_bytes
        unpack4, unpack8 = struct.Struct("<I").unpack_from, struct.Struct("<Q").unpack_from
        pack2, pack4, pack8 = (struct.Struct(f).pack_into for f in ("<H", "<I", "<Q"))
        get_page = readable.get
        get_written = written.get

        def load(address: Value, size: int) -> Value:
            if address.__class__ is not int:
                return self._indirect(address, size)
            page, offset = address >> 12, address & 4095
            if offset + size <= PAGE:
                content = get_page(page) or read_page(page)
                if page not in symbolic_pages:
                    return from_bytes(content[offset : offset + size], "little")
                value = from_bytes(content[offset : offset + size], "little")
            else:
                first = PAGE - offset
                content = get_page(page) or read_page(page)
                value = from_bytes(content[offset:], "little")
                content = get_page(page + 1) or read_page(page + 1)
                value |= from_bytes(content[: size - first], "little") << 8 * first
                if page not in symbolic_pages and page + 1 not in symbolic_pages:
                    return value
            for byte in range(address, address + size):
                if byte in symbols:
                    return self._assemble(address, size, value)
            return value

        def load1(address: Value) -> Value:
            if address.__class__ is not int:
                return self._indirect(address, 1)
            page = address >> 12
            content = get_page(page) or read_page(page)
            if page in symbolic_pages and address in symbols:
                term, index = symbols[address]
                return make(t.extract(8 * index + 7, 8 * index, term), content[address & 4095])
            return content[address & 4095]

        def load4(address: Value) -> Value:
            if address.__class__ is int:
                page, offset = address >> 12, address & 4095
                if offset <= 4092 and page not in symbolic_pages:
                    return unpack4(get_page(page) or read_page(page), offset)[0]
            return load(address, 4)

        def load8(address: Value) -> Value:
            if address.__class__ is int:
                page, offset = address >> 12, address & 4095
                if offset <= 4088 and page not in symbolic_pages:
                    return unpack8(get_page(page) or read_page(page), offset)[0]
            return load(address, 8)

        def store(address: Value, value: Value, size: int) -> None:
            if address.__class__ is not int:
                self._store_indirect(address, value, size)
                return
            number = value if value.__class__ is int else value.value
            page, offset = address >> 12, address & 4095
            if offset + size <= PAGE:
                content = get_written(page)
                if content is None:
                    content = write_page(page)
                content[offset : offset + size] = number.to_bytes(size, "little")
                touched = page in symbolic_pages
            else:
                first = PAGE - offset
                data = number.to_bytes(size, "little")
                low, high = get_written(page) or write_page(page), get_written(page + 1) or write_page(page + 1)
                low[offset:] = data[:first]
                high[: size - first] = data[first:]
                touched = page in symbolic_pages or page + 1 in symbolic_pages
            if value.__class__ is int:
                if touched:
                    for byte in range(address, address + size):
                        symbols.pop(byte, None)
                return
            self.mark(address, value, size)

        def store1(address: Value, value: Value) -> None:
            if address.__class__ is int and value.__class__ is int:
                page = address >> 12
                content = get_written(page)
                if content is None:
                    content = write_page(page)
                content[address & 4095] = value
                if page in symbolic_pages:
                    symbols.pop(address, None)
            else:
                store(address, value, 1)

        def fixed_store(size: int, pack: Callable[..., None]) -> Callable[[Value, Value], None]:
            last = PAGE - size

            def store_fixed(address: Value, value: Value) -> None:
                if address.__class__ is int and value.__class__ is int:
                    page, offset = address >> 12, address & 4095
                    if offset <= last and page not in symbolic_pages:
                        content = get_written(page)
                        if content is None:
                            content = write_page(page)
                        pack(content, offset, value)
                        return
                store(address, value, size)

            return store_fixed

        self.load, self.load1, self.load4, self.load8 = load, load1, load4, load8
        self.load2: Callable[[Value], Value] = lambda address: load(address, 2)
        self.store, self.store1 = store, store1
        self.store2, self.store4, self.store8 = fixed_store(2, pack2), fixed_store(4, pack4), fixed_store(8, pack8)

    def mark(self, address: int, value: Sym, size: int) -> None:
        """Note that `size` bytes from `address` are those of a term, least significant first."""
        term = value.term
        if term.width < 8 * size:
            term = t.zero_extend(8 * size - term.width, term)
        parts = _runs(term)
        for index in range(size):
            piece, byte = parts(index)
            if piece.op == "const":
                self.symbols.pop(address + index, None)
            else:
                self.symbols[address + index] = (piece, byte)
        self.symbolic_pages.add(address >> 12)
        self.symbolic_pages.add((address + size - 1) >> 12)

    def _assemble(self, address: int, size: int, value: int) -> Value:
        symbols = self.symbols
        parts: list[Term] = []
        index = size - 1
        while index >= 0:
            found = symbols.get(address + index)
            if found is None:
                parts.append(t.const(value >> 8 * index, 8))
                index -= 1
                continue
            term, high = found
            low = high
            index -= 1
            while index >= 0 and low > 0 and symbols.get(address + index) == (term, low - 1):
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

    # ---------------------------------------------------------------------------------------------- blocks of bytes

    def read(self, address: int, size: int) -> bytes:
        """The concrete bytes."""
        out = bytearray()
        while len(out) < size:
            page, offset = (address + len(out)) >> 12, (address + len(out)) & 4095
            content = self.readable.get(page) or self._read_page(page)
            out += content[offset : offset + size - len(out)]
        return bytes(out[:size])

    def read_values(self, address: int, size: int) -> list[Value]:
        """The bytes, each an integer or a symbolic pair."""
        data = self.read(address, size)
        if not self._touches_symbols(address, size):
            return list(data)
        out: list[Value] = []
        for index, byte in enumerate(data):
            found = self.symbols.get(address + index)
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
            content = self.written.get(page)
            if content is None:
                content = self._write_page(page)
            content[offset : offset + count] = data[position : position + count]
            if page in self.symbolic_pages:
                for byte in range(address + position, address + position + count):
                    self.symbols.pop(byte, None)
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
            [(i, self.symbols[source + i]) for i in range(size) if source + i in self.symbols]
            if self._touches_symbols(source, size)
            else []
        )
        self.write(target, data)
        for index, found in marks:
            self.symbols[target + index] = found
            self.symbolic_pages.add((target + index) >> 12)

    def _touches_symbols(self, address: int, size: int) -> bool:
        return any(page in self.symbolic_pages for page in range(address >> 12, (address + size - 1 >> 12) + 1))


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
