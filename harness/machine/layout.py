"""How VEX lays out the processor: registers, and which helpers and jumps it uses."""

from __future__ import annotations

import struct
from typing import Any

import archinfo

from harness.machine.operations import WIDTHS

ARCH = archinfo.ArchAMD64()
# Registers are a list of 64-bit slots, in the order of VEX's guest state.
REGISTERS: dict[str, int] = {name: offset // 8 for name, (offset, size) in ARCH.registers.items()}
REGISTER_SLOTS = max(offset + size for offset, size in ARCH.registers.values()) // 8 + 2
RIP = ARCH.registers["rip"][0]

# Jump kinds that are jumps. Flushing a cache and yielding to another thread do nothing to be seen.
PLAIN_JUMPS = ("Ijk_Boring", "Ijk_Call", "Ijk_Ret", "Ijk_Yield", "Ijk_FlushDCache", "Ijk_InvalICache")
# VEX's helper functions for condition codes, and ours.
CONDITION_CALLS = {
    "amd64g_calculate_condition": "calculate_condition",
    "amd64g_calculate_rflags_c": "calculate_carry",
    "amd64g_calculate_rflags_all": "calculate_all",
}


def constant(con: Any) -> int:
    """The bits of a VEX constant."""
    value, width = con.value, WIDTHS[con.type]
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d" if width == 64 else "<f", value), "little")
    if con.type in ("Ity_V128", "Ity_V256"):
        # VEX writes a vector constant as a mask with one bit for each byte.
        return sum(0xFF << 8 * i for i in range(width // 8) if value >> i & 1)
    return int(value) & (1 << width) - 1
