"""glibc's mutexes, locked and unlocked in one step: a production switch does that 1,000 times for one message.

Only what is over at once is done here, on the same fields as in glibc, so that both ways can be mixed: a mutex that
somebody else holds, of a kind that is not plain, or that an input was written over, is left to glibc's own code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from harness.frozen import Snapshot
from harness.machine.layout import REGISTERS
from harness.machine.machine import Machine
from harness.machine.values import Sym, Value
from harness.symbols import imported_functions

RDI, FS = REGISTERS["rdi"], REGISTERS["fs"]
# struct __pthread_mutex_s: lock, count, owner, users, kind.
_FIELDS = struct.Struct("<5I")
_NORMAL, _RECURSIVE, _ERROR_CHECKING, _ADAPTIVE = range(4)
_EPERM, _EDEADLK = 1, 35
_MOST_COUNT = 0xFFFFFFFF
# Where a thread's descriptor has its number, in glibc from 2.4 to at least 2.41.
_TID = 0x2D0


def install(machine: Machine, snapshot: Snapshot) -> None:
    """Put shortcuts before the mutex functions that this process uses, if it has the glibc that we know."""
    tid = snapshot.read(snapshot.thread.registers["fs_base"] + _TID, 4)
    if tid is None or int.from_bytes(tid, "little") != snapshot.main:
        return
    functions = {"pthread_mutex_lock": _lock, "pthread_mutex_unlock": _unlock}
    for address, name in imported_functions(snapshot, frozenset(functions)).items():
        machine.shortcut(address, functions[name](machine))


def _own_tid(machine: Machine) -> int:
    """The number of the thread that runs."""
    return machine.pin(machine.memory.load4(machine.pin(machine.registers[FS]) + _TID))


def _plain(machine: Machine, place: Value) -> tuple[int, int, int, int, int] | None:
    """The fields of a mutex, if they are numbers and its kind is one of the simple ones."""
    if isinstance(place, Sym):
        return None
    words = machine.memory.load(place, _FIELDS.size)
    if isinstance(words, Sym):
        return None
    lock, count, owner, users, kind = _FIELDS.unpack(words.to_bytes(_FIELDS.size, "little"))
    return (lock, count, owner, users, kind) if kind <= _ADAPTIVE else None


def _lock(machine: Machine) -> Callable[[], Value | None]:
    def lock() -> Value | None:
        place = machine.registers[RDI]
        fields = _plain(machine, place)
        if fields is None:
            return None
        tid = _own_tid(machine)
        held, count, owner, users, kind = fields
        if kind == _RECURSIVE and owner == tid:
            if count == _MOST_COUNT:
                return None
            machine.memory.store(place, _packed(held, count + 1, owner, users, kind), _FIELDS.size)
            return 0
        if kind == _ERROR_CHECKING and owner == tid:
            return _EDEADLK
        if held:
            return None
        count = 1 if kind == _RECURSIVE else count
        machine.memory.store(place, _packed(1, count, tid, users + 1, kind), _FIELDS.size)
        return 0

    return lock


def _unlock(machine: Machine) -> Callable[[], Value | None]:
    def unlock() -> Value | None:
        place = machine.registers[RDI]
        fields = _plain(machine, place)
        if fields is None:
            return None
        tid = _own_tid(machine)
        held, count, owner, users, kind = fields
        if kind in (_RECURSIVE, _ERROR_CHECKING) and owner != tid:
            return _EPERM
        if kind == _RECURSIVE and count != 1:
            machine.memory.store(place, _packed(held, count - 1, owner, users, kind), _FIELDS.size)
            return 0
        if held != 1:
            return None  # somebody waits, or nobody had it
        count = 0 if kind == _RECURSIVE else count
        machine.memory.store(place, _packed(0, count, 0, users - 1, kind), _FIELDS.size)
        return 0

    return unlock


def _packed(*fields: int) -> int:
    return int.from_bytes(_FIELDS.pack(*(field & 0xFFFFFFFF for field in fields)), "little")
