"""Mapping memory: fresh pages, given back pages, and the heap's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.kernel.errno import EINVAL, ENOMEM
from harness.kernel.table import syscall
from harness.machine.ends import Unsupported
from harness.machine.memory import PAGE

if TYPE_CHECKING:
    from harness.kernel.kernel import Kernel

_PROT = ((1, "r"), (2, "w"), (4, "x"))
_MAP_FIXED, _MAP_ANONYMOUS = 0x10, 0x20
_MREMAP_MAYMOVE = 1
_MADV_DONTNEED = 4
# More than an agent maps to answer a message; past it the agent is told that there is no memory.
_MOST = 1 << 28


def _pages(size: int) -> int:
    return -(-size // PAGE)


def _permissions(protection: int) -> str:
    return "".join(letter for bit, letter in _PROT if protection & bit)


def _place(kernel: Kernel, size: int) -> int:
    """An address for a new mapping, with a gap behind it that nothing ever fills."""
    address = kernel.next_mapping
    kernel.next_mapping += (_pages(size) + 1) * PAGE
    return address


@syscall(9, 6)
def mmap(kernel: Kernel, address: int, size: int, protection: int, flags: int, number: int, offset: int) -> int:
    if not size:
        return EINVAL
    if size > _MOST:
        return ENOMEM
    if not flags & _MAP_ANONYMOUS:
        raise Unsupported("mapping a file during the run")
    where = address if flags & _MAP_FIXED else _place(kernel, size)
    kernel.memory.map(where // PAGE, _pages(size), _permissions(protection) or "-")
    return where


@syscall(11, 2)
def munmap(kernel: Kernel, address: int, size: int) -> int:
    if address % PAGE or not size:
        return EINVAL
    kernel.memory.unmap(address // PAGE, _pages(size))
    return 0


@syscall(10, 3)
def mprotect(kernel: Kernel, address: int, size: int, protection: int) -> int:
    kernel.memory.protect(address // PAGE, _pages(size), _permissions(protection) or "-")
    return 0


@syscall(25, 5)
def mremap(kernel: Kernel, old: int, old_size: int, new_size: int, flags: int, fixed: int) -> int:
    if new_size <= old_size:
        kernel.memory.unmap(old // PAGE + _pages(new_size), _pages(old_size) - _pages(new_size))
        return old
    if not flags & _MREMAP_MAYMOVE or new_size > _MOST:
        return ENOMEM
    where = _place(kernel, new_size)
    kernel.memory.map(where // PAGE, _pages(new_size), "rw")
    kernel.memory.copy(where, old, old_size)
    kernel.memory.unmap(old // PAGE, _pages(old_size))
    return where


@syscall(12, 1)
def brk(kernel: Kernel, wanted: int) -> int:
    now = kernel.brk
    if wanted == 0 or wanted > now + _MOST:
        return now
    first, last = _pages(now), _pages(wanted)
    if last > first:
        kernel.memory.map(first, last - first, "rw")
    elif last < first:
        kernel.memory.unmap(last, first - last)
    kernel.brk = wanted
    return wanted


@syscall(28, 3)
def madvise(kernel: Kernel, address: int, size: int, advice: int) -> int:
    """Pages that are not needed read as zeros from now on; all other advice changes nothing to be seen."""
    if address % PAGE:
        return EINVAL
    if advice == _MADV_DONTNEED:
        for page in range(address // PAGE, address // PAGE + _pages(size)):
            permissions = kernel.memory.permissions(page)
            if permissions is None:
                return ENOMEM
            if not kernel.is_anonymous(page):
                raise Unsupported("giving back pages of a file")
            kernel.memory.map(page, 1, permissions)
    return 0
