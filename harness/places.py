"""Places in an agent's code, for the person who explores it: never for a bundle, which must not tell them."""

from __future__ import annotations

import bisect
import functools
import io
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from harness.frozen import Region, Snapshot
from harness.machine.ends import Fault, Unsupported
from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import concrete

# Of the stack, this much is searched for a return address.
_MOST_SLOTS = 256
_CALL, _CALL_INDIRECT = 0xE8, 0xFF
_FUNCTIONS = ("STT_FUNC", "STT_LOOS", "STT_GNU_IFUNC")


def describe(snapshot: Snapshot, address: int) -> str:
    """An address as people and tools name it: switchd+0x1234, with the function's name if there is one."""
    image = _image(snapshot, address)
    if image is None:
        return f"{address:#x}"
    text = f"{Path(image.name).name}+{address - image.start:#x}"
    name = function_at(snapshot, address)
    return f"{text} in {name}" if name is not None else text


def function_at(snapshot: Snapshot, address: int) -> str | None:
    """The name of the function around an address, from the symbols of the file that is mapped there."""
    image = _image(snapshot, address)
    if image is None:
        return None
    starts, names, ends, is_fixed = _symbols(image.name)
    offset = address if is_fixed else address - image.start
    index = bisect.bisect_right(starts, offset) - 1
    return names[index] if index >= 0 and offset < max(ends[index], starts[index] + 1) else None


def own_address(snapshot: Snapshot, address: int) -> int | None:
    """An address as the program's own file has it; None for one in a library."""
    image = _image(snapshot, address)
    if image is None or image.name != snapshot.executable:
        return None
    return address if _symbols(image.name)[3] else address - image.start


def _image(snapshot: Snapshot, address: int) -> Region | None:
    """The first mapping of the file that is mapped at an address."""
    region = snapshot.region_at(address)
    if region is None or not region.name.startswith("/"):
        return None
    return next(each for each in snapshot.regions if each.name == region.name)


@functools.cache
def _symbols(path: str) -> tuple[list[int], list[str], list[int], bool]:
    """Where the functions of a file start, their names, where they end; and whether it has a fixed place in memory."""
    found: dict[int, tuple[str, int]] = {}
    is_fixed = False
    try:
        elf = ELFFile(io.BytesIO(Path(path).read_bytes()))
        is_fixed = elf["e_type"] == "ET_EXEC"
        for kind in (".dynsym", ".symtab"):
            section = elf.get_section_by_name(kind)
            for symbol in section.iter_symbols() if section is not None else ():
                if symbol["st_info"]["type"] in _FUNCTIONS and symbol["st_value"]:
                    found[symbol["st_value"]] = symbol.name.partition("@")[0], symbol["st_size"]
    except (OSError, ELFError):
        pass  # frozen on another machine: addresses have to do
    starts = sorted(found)
    return starts, [found[s][0] for s in starts], [s + found[s][1] for s in starts], is_fixed


def explain(snapshot: Snapshot, error: Unsupported, machine: Machine) -> str:
    """What had no model, with everything that is known: which file, where in the code, and who called it."""
    text = str(error) + (f" ({error.detail})" if error.detail else "")
    address = _address_of(error)
    if address is None:
        return text
    text += f", at {describe(snapshot, address)}"
    caller = _caller(snapshot, machine) if own_address(snapshot, address) is None else None
    return text if caller is None else f"{text}, called from {describe(snapshot, caller)}"


def _caller(snapshot: Snapshot, machine: Machine) -> int | None:
    """The nearest return address into the program itself that the stack seems to hold."""
    stack = concrete(machine.registers[REGISTERS["rsp"]])
    for slot in range(_MOST_SLOTS):
        try:
            word = machine.memory.load8(stack + 8 * slot)
        except Fault:
            return None
        if isinstance(word, int) and own_address(snapshot, word) is not None:
            before = snapshot.read(word - 5, 5)
            if before is not None and (before[0] == _CALL or before[-2] == _CALL_INDIRECT):
                return word
    return None


def _address_of(error: BaseException) -> int | None:
    """Where the agent was: the block that was executed, or the place behind a system call."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        name = frame.f_code.co_filename
        if name.startswith("block 0x"):
            found = int(name.split()[1], 16)
        elif frame.f_code.co_name == "_call" and isinstance(frame.f_locals.get("address"), int):
            found = frame.f_locals["address"]
        trace = trace.tb_next
    return found
