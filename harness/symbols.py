"""Where functions stand in a frozen process: the vDSO's entry points, and what calls to libc resolved to."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from harness.frozen import Region, Snapshot

_MOST_STRING = 256
_ET_EXEC, _PT_DYNAMIC = 2, 2


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
        for name, slot in _slots(snapshot, base):
            if name in names:
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


def _slots(snapshot: Snapshot, image: Region) -> Iterator[tuple[str, int]]:
    """(name, address) of the slots that the dynamic linker filled in."""
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
    strings, symbols = _at(tags, 5, base), _at(tags, 6, base)  # DT_STRTAB, DT_SYMTAB
    # DT_JMPREL with DT_PLTRELSZ, and DT_RELA with DT_RELASZ.
    for place, size in ((_at(tags, 23, base), tags.get(2, 0)), (_at(tags, 7, base), tags.get(8, 0))):
        table = snapshot.read(place, size) if place and size else None
        for offset in range(0, len(table or b""), 24):
            assert table is not None
            slot, info = (int.from_bytes(table[offset + i : offset + i + 8], "little") for i in (0, 8))
            kind, index = info & 0xFFFFFFFF, info >> 32
            if kind not in (6, 7) or not index:  # GLOB_DAT, JUMP_SLOT
                continue
            entry = snapshot.read(symbols + 24 * index, 4)
            if entry is not None:
                yield _string(snapshot, strings + int.from_bytes(entry, "little")), base + slot


def _number(content: bytes, offset: int, size: int) -> int:
    return int.from_bytes(content[offset : offset + size], "little")


def _at(tags: dict[int, int], tag: int, base: int) -> int:
    """An address from the dynamic section; glibc relocates these in place, others do not."""
    value = tags.get(tag, 0)
    return value if value >= base or not value else base + value


def _string(snapshot: Snapshot, address: int) -> str:
    data: Any = snapshot.read(address, _MOST_STRING)
    return data.split(b"\0")[0].decode("ascii", "replace") if data else ""
