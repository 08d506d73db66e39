"""Replace hash functions by constants in an agent's process, before its main: the `stub` lines of a launch profile.

    hash_bytes=0        the function of this name returns 0, in the binary or else in one of its libraries
    0x4123=0            so does the function at this address, as `nm` and `objdump` show it for the binary
    imul:0xc2b2ae35     every multiplication by this constant gives 0 (imul with an immediate), wherever it was inlined

A hash cannot be inverted, so the solver would be lost in it. Patched from the start, the tables that the agent builds
natively and the lookups that are explored agree. Only the process is patched, never a file, and only to be frozen.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.ptrace import run_to
from soft.errors import SoftError
from soft.launch.profile import Profile

_AT_ENTRY = 9
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
# The compiler's private copies of a function, made for some of its callers, compute the same.
_COPY = re.compile(r"(\.(constprop|isra)\.\d+)+")
_IFUNC = ("STT_GNU_IFUNC", "STT_LOOS")


@dataclass(frozen=True, slots=True)
class Stub:
    """One line of a profile's `stub`: a function by name or by address, or a constant that is multiplied by."""

    line: str
    name: str | None = None
    address: int | None = None
    value: int = 0
    factor: int | None = None


class Stubs:
    """The stubs of a profile. Call it with a process that stands at its first instruction; then see `applied`."""

    def __init__(self, source: str, stubs: tuple[Stub, ...]) -> None:
        self._source = source
        self._stubs = stubs
        self._functions: set[int] = set()
        self._multiplications: Counter[int] = Counter()

    def __call__(self, pid: int) -> None:
        # The libraries are mapped, and nothing of the agent's own has run, when the dynamic linker is done.
        run_to(pid, _entry(pid))
        images = list(_images(pid))
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            for stub in self._stubs:
                try:
                    self._apply(stub, images, memory.fileno())
                except _CannotApply as error:
                    raise SoftError(f"{self._source}: the stub `{stub.line}` cannot be applied: {error}.") from None

    def _apply(self, stub: Stub, images: list[_Image], memory: int) -> None:
        if stub.factor is not None:
            # An immediate of zero keeps the instruction, its length and its flags' meaning.
            sites = [site for image in images for site in image.multiplications(stub.factor)]
            if not sites:
                raise _CannotApply(f"its code has no multiplication by {stub.factor:#x}")
            for site in sites:
                os.pwrite(memory, bytes(4), site)
            self._multiplications[stub.factor] += len(sites)
            return
        code = constant_function(stub.value)
        for address in _places(stub, images, len(code)):
            # A function that begins with a landing pad for indirect calls keeps it.
            skip = len(_ENDBR64) if os.pread(memory, len(_ENDBR64), address) == _ENDBR64 else 0
            os.pwrite(memory, code, address + skip)
            self._functions.add(address)

    @property
    def applied(self) -> tuple[str, ...]:
        """What was patched, for a bundle's manifest: no symbol of the agent, and no address."""
        words = []
        if count := len(self._functions):
            words.append(f"{count} function{'s' * (count > 1)} replaced by constants")
        for factor, count in self._multiplications.items():
            words.append(f"{count} multiplication{'s' * (count > 1)} by {factor:#x} zeroed")
        return tuple(words)


def before_main(profile: Profile) -> Stubs | None:
    """What to hand to `start(..., before_main=...)` for a profile; None if it has no stubs."""
    stubs = tuple(parse(line, profile.source) for line in profile.stub)
    return Stubs(profile.source, stubs) if stubs else None


def applied(stubs: Callable[[int], None] | None) -> tuple[str, ...]:
    """Short descriptions of what `before_main` did, without symbols and addresses."""
    return stubs.applied if isinstance(stubs, Stubs) else ()


def parse(line: str, source: str) -> Stub:
    text = line.replace(" ", "")
    with contextlib.suppress(ValueError):
        if text.startswith("imul:"):
            factor = int(text.removeprefix("imul:"), 0)
            if 0 < factor < 1 << 32:
                return Stub(line, factor=factor)
        what, equals, number = text.partition("=")
        value = int(number, 0)
        if equals and what and -(1 << 63) <= value < 1 << 64:
            value &= (1 << 64) - 1
            if what[0].isdigit():
                return Stub(line, address=int(what, 0), value=value)
            return Stub(line, name=what, value=value)
    raise SoftError(
        f"{source}: the stub `{line}` is none of FUNCTION=VALUE, 0xADDRESS=VALUE and imul:CONSTANT, such as "
        f"hash_bytes=0 or imul:0xc2b2ae35."
    )


def constant_function(value: int) -> bytes:
    """x86-64 code that returns a constant: mov $value, %eax (or %rax); ret."""
    if value < 1 << 32:
        return b"\xb8" + struct.pack("<I", value) + b"\xc3"
    return b"\x48\xb8" + struct.pack("<Q", value) + b"\xc3"


def immediate_multiplications(code: bytes, factor: int) -> Iterator[int]:
    """Offsets of the immediates of all `imul $factor, r/m, r` (69 /r id) in the code."""
    wanted = struct.pack("<I", factor)
    at = code.find(wanted)
    while at >= 0:
        if any(at > size and code[at - size - 1] == 0x69 and _operand_size(code, at - size) == size
               for size in (1, 2, 3, 5, 6)):  # fmt: skip
            yield at
        at = code.find(wanted, at + 1)


def _operand_size(code: bytes, at: int) -> int:
    """The bytes of a ModRM operand: ModRM itself, an index byte, a displacement."""
    mode, base = code[at] >> 6, code[at] & 7
    if mode == 3:
        return 1
    size = 1
    if base == 4:
        size, base = 2, code[at + 1] & 7
    return size + (1 if mode == 1 else 4 if mode == 2 or base == 5 else 0)


# ---------------------------------------------------------------------------------------------- where things are


class _CannotApply(Exception):
    """The reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class _Function:
    address: int
    size: int
    chosen_at_load: bool


class _Image:
    """An ELF file that is mapped into the process."""

    def __init__(self, path: str, base: int, elf: Any) -> None:
        self.path = path
        self._base = base
        self._elf = elf
        self._code = [
            (segment["p_vaddr"], segment.data())
            for segment in elf.iter_segments("PT_LOAD")
            if segment["p_flags"] & 1  # PF_X
        ]

    def functions(self, name: str) -> list[_Function]:
        """All functions of a name, the compiler's copies of them included."""
        found: dict[int, _Function] = {}
        for kind in (".symtab", ".dynsym"):
            section = self._elf.get_section_by_name(kind)
            for symbol in section.iter_symbols() if section is not None else ():
                plain = symbol.name.partition("@")[0]
                if plain != name and not (plain.startswith(name) and _COPY.fullmatch(plain[len(name) :])):
                    continue
                type_of = symbol["st_info"]["type"]
                if symbol["st_shndx"] != "SHN_UNDEF" and type_of in ("STT_FUNC", "STT_NOTYPE", *_IFUNC):
                    address = self._base + symbol["st_value"]
                    found[address] = _Function(address, symbol["st_size"], type_of in _IFUNC)
        return list(found.values())

    @property
    def has_symbols(self) -> bool:
        return self._elf.get_section_by_name(".symtab") is not None

    def at(self, address: int) -> int | None:
        """Where an address of the file is in the process, if there is code."""
        if any(start <= address < start + len(code) for start, code in self._code):
            return self._base + address
        return None

    def multiplications(self, factor: int) -> Iterator[int]:
        for start, code in self._code:
            for offset in immediate_multiplications(code, factor):
                yield self._base + start + offset


def _places(stub: Stub, images: list[_Image], size: int) -> list[int]:
    own = images[0]
    if stub.address is not None:
        place = own.at(stub.address)
        if place is None:
            raise _CannotApply(f"{Path(own.path).name} has no code at {stub.address:#x}")
        return [place]
    assert stub.name is not None
    for image in images:
        if not (functions := image.functions(stub.name)):
            continue
        if any(function.chosen_at_load for function in functions):
            raise _CannotApply("it is chosen among several when the agent is loaded; name the one that it chooses")
        if any(0 < function.size < size for function in functions):
            raise _CannotApply(f"the function has less than {size} bytes")
        return [function.address for function in functions]
    hint = "" if own.has_symbols else "; the binary is stripped, so give the function's address in its place"
    raise _CannotApply(f"neither {Path(own.path).name} nor a library of it has such a function{hint}")


def _images(pid: int) -> Iterator[_Image]:
    """The program first, then its libraries; the dynamic linker has done its work and is left alone."""
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise SoftError("Stubs need pyelftools, which comes with `pip install soft-openflow[explore]`.") from None

    program = os.readlink(f"/proc/{pid}/exe")
    bases: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        match = re.match(r"([0-9a-f]+)-\S+ \S+ 0+ \S+ \d+\s+(/.*)", line)
        if match and not Path(match[2]).name.startswith("ld-linux"):
            bases.setdefault(match[2], int(match[1], 16))
    for path in sorted(bases, key=lambda path: path != program):
        try:
            elf = ELFFile(io.BytesIO(Path(path).read_bytes()))
            first = min(segment["p_vaddr"] - segment["p_offset"] for segment in elf.iter_segments("PT_LOAD"))
        except (OSError, ELFError, ValueError):
            continue  # Not a program or library: a locale archive, a database.
        yield _Image(path, bases[path] - first, elf)


def _entry(pid: int) -> int:
    """Where the agent's own code begins, from the auxiliary vector."""
    vector = Path(f"/proc/{pid}/auxv").read_bytes()
    pairs = dict(struct.iter_unpack("<QQ", vector[: len(vector) & ~15]))
    if _AT_ENTRY not in pairs:
        raise SoftError("The kernel does not tell where the agent's code begins; stubs cannot be applied.")
    return int(pairs[_AT_ENTRY])
