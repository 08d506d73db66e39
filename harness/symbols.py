"""Where functions stand in a frozen process: the vDSO's entry points, and what calls to libc resolved to."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from harness.frozen import Region, Snapshot

_ET_EXEC, _PT_DYNAMIC = 2, 2
_DT_PLTRELSZ, _DT_STRTAB, _DT_SYMTAB, _DT_RELA, _DT_RELASZ, _DT_STRSZ, _DT_JMPREL = 2, 5, 6, 7, 8, 10, 23
_DT_RELACOUNT = 0x6FFFFFF9
_KINDS = (6, 7)  # GLOB_DAT, JUMP_SLOT
# Where it is, its kind with the number of its symbol, and something to add, which these kinds do not have.
_RELOCATION = struct.Struct("<QQ8x")
_SYMBOL = 24


def vdso_functions(snapshot: Snapshot) -> dict[str, int]:
    """The vDSO's functions by name, without their prefix: clock_gettime, gettimeofday, time, getcpu."""
    for region in snapshot.regions:
        if region.name == "[vdso]" and region.content is not None:
            section = ELFFile(io.BytesIO(region.content)).get_section_by_name(".dynsym")
            if isinstance(section, SymbolTableSection):
                return {
                    symbol.name.removeprefix("__vdso_"): region.start + symbol["st_value"]
                    for symbol in section.iter_symbols()
                    if symbol.name.startswith("__vdso_")
                }
    return {}


def imported_functions(snapshot: Snapshot, names: frozenset[str]) -> dict[int, str]:
    """Address → name of imported functions, as the dynamic linker has resolved them in every loaded object.

    The slots of the global offset table are read from the frozen memory, so that an indirect function (glibc's memcpy)
    is found where it really is.
    """
    found: dict[int, str] = {}
    for base in _images(snapshot):
        for name, slot in _slots(snapshot, base, names):
            data = snapshot.read(slot, 8)
            address = int.from_bytes(data, "little") if data else 0
            region = snapshot.region_at(address)
            if region is not None and "x" in region.permissions:
                found[address] = name
    return found


def _images(snapshot: Snapshot) -> Iterator[Region]:
    for region in snapshot.regions:
        if region.content is not None and region.offset == 0 and region.content.startswith(b"\x7fELF"):
            yield region


def _slots(snapshot: Snapshot, image: Region, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    """(name, address) of the slots that the dynamic linker filled in for functions of these names."""
    assert image.content is not None
    base = 0 if _number(image.content, 16, 2) == _ET_EXEC else image.start
    headers, size, count = (_number(image.content, *at) for at in ((32, 8), (54, 2), (56, 2)))
    places = [headers + size * index for index in range(count)]
    dynamic = next((at for at in places if _number(image.content, at, 4) == _PT_DYNAMIC), None)
    if dynamic is None:
        return
    tags: dict[int, int] = {}
    address = base + _number(image.content, dynamic + 16, 8)
    while True:
        pair = snapshot.read(address, 16)
        if pair is None or not any(pair[:8]):
            break
        tags[int.from_bytes(pair[:8], "little")] = int.from_bytes(pair[8:], "little")
        address += 16
    symbols = snapshot.region_at(_at(tags, _DT_SYMTAB, base))
    strings = snapshot.read(_at(tags, _DT_STRTAB, base), tags.get(_DT_STRSZ, 0))
    if symbols is None or symbols.content is None or not strings:
        return
    wanted = {offset: name for name in names for offset in _offsets(strings, name)}
    first = _at(tags, _DT_SYMTAB, base) - symbols.start
    last = len(symbols.content) - _SYMBOL
    # Those without a symbol come first, and are many.
    skipped = _RELOCATION.size * tags.get(_DT_RELACOUNT, 0)
    for place, size in (
        (_at(tags, _DT_JMPREL, base), tags.get(_DT_PLTRELSZ, 0)),
        (_at(tags, _DT_RELA, base) + skipped, tags.get(_DT_RELASZ, 0) - skipped),
    ):
        size -= size % _RELOCATION.size
        table = snapshot.read(place, size) if place and size > 0 else None
        for slot, info in _RELOCATION.iter_unpack(table or b""):
            at = first + _SYMBOL * (info >> 32)
            if info & 0xFFFFFFFF in _KINDS and info >> 32 and at <= last:
                name = wanted.get(_number(symbols.content, at, 4))
                if name is not None:
                    yield name, base + slot


def _offsets(strings: bytes, name: str) -> Iterator[int]:
    """Where a name is in a table of strings; it may be the end of another one."""
    text = name.encode() + b"\0"
    offset = strings.find(text)
    while offset >= 0:
        yield offset
        offset = strings.find(text, offset + 1)


def _number(content: bytes, offset: int, size: int) -> int:
    return int.from_bytes(content[offset : offset + size], "little")


def _at(tags: dict[int, int], tag: int, base: int) -> int:
    """An address from the dynamic section; glibc relocates these in place, others do not."""
    value = tags.get(tag, 0)
    return value if value >= base or not value else base + value
