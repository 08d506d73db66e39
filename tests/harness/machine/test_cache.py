"""The cache of what was made of code: what it keeps, and what it does with files that are not as it left them."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.machine import cache, compiler, merge
from harness.machine.cache import Cache, program_cache
from harness.machine.compiler import REGISTER_SLOTS, REGISTERS
from harness.machine.machine import Machine
from harness.machine.memory import PAGE
from harness.machine.values import Sym, Value, concrete, term_of
from soft.solve import terms as t
from soft.solve.terms import Term
from tests.harness.machine.lab import CODE, Recorder

GENERATION = b"one"
# test edi, edi; je +8; movzx eax, byte [rsi]; imul eax, edi; syscall; sub eax, 3; syscall: a branch to two ends.
PARTED = "85 ff 74 08 0f b6 06 0f af c7 0f 05 83 e8 03 0f 05"
# xor eax, eax; test edi, edi; je +5; mov eax, 7; syscall: a branch that is merged.
MERGED = "31 c0 85 ff 74 05 b8 07 00 00 00 0f 05"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "soft" / "blocks-1.sqlite"


def never() -> Any:
    raise AssertionError("it is made again")


def kept(file: Path, code: bytes = b"code", generation: bytes = GENERATION) -> object:
    """What the cache in a file has for some code; None if nothing."""
    return Cache(file, generation).get("kind", 1, code, lambda: None)


def filled(file: Path, **entries: object) -> None:
    made = Cache(file, GENERATION)
    for code, value in entries.items():
        made.get("kind", 1, code.encode(), lambda value=value: value)  # type: ignore[misc]
    made.save()


def database(file: Path) -> Any:
    return closing(sqlite3.connect(file, isolation_level=None))


def machine(code: str, file: Path) -> Machine:
    """Code at CODE, with a page of data at 0x10000 that rsi points to, and rdi an input."""
    pages = {CODE >> 12: (bytes.fromhex(code).ljust(PAGE, b"\xcc"), "r-x"), 0x10: (b"\x02" * PAGE, "rw-")}
    made = Machine(pages.get, Cache(file, GENERATION))
    registers: list[Value] = [0] * REGISTER_SLOTS
    registers[REGISTERS["rsi"]], registers[REGISTERS["d"]] = 0x10000, 1
    made.reset(registers)
    return made


def result(made: Machine, value: int) -> tuple[Term, int, list[Term]]:
    """What is in rax where the code ends in a system call, and the conditions on the way, for an input in rdi."""
    made.registers[REGISTERS["rdi"]] = Sym(t.var("rdi", 64), value)
    made.decisions = recorder = Recorder(made, {"rdi": value})
    ip: Any = CODE
    while ip.__class__ is int:
        ip = made.follow(ip, lambda address, kind: 0)
    assert ip[1].startswith("Ijk_Sys")
    rax = made.registers[REGISTERS["rax"]]
    return term_of(rax, 64), concrete(rax), recorder.conditions


@pytest.fixture
def no_lifting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on nothing can be lifted."""

    def forbid() -> None:
        for module in (compiler, merge):
            monkeypatch.setattr(module, "lift", lambda code, address: never())

    return forbid


# ---------------------------------------------------------------------------------------------- machines


@pytest.mark.parametrize("code", [PARTED, MERGED])
def test_a_second_machine_does_not_lift_and_gives_the_same(
    code: str, file: Path, no_lifting: Callable[[], None]
) -> None:
    first = machine(code, file)
    expected = [result(first, value) for value in (0, 1)]
    first.keep()
    no_lifting()
    second = machine(code, file)
    assert [result(second, value) for value in (0, 1)] == expected
    assert second.covered() == first.covered() != {}


def test_code_that_vex_does_not_know_is_kept_too(file: Path, no_lifting: Callable[[], None]) -> None:
    # swapgs
    first = machine("0f 01 f8", file)
    assert first.step(CODE) == (CODE, "Ijk_NoDecode")
    first.keep()
    no_lifting()
    second = machine("0f 01 f8", file)
    assert second.step(CODE) == (CODE, "Ijk_NoDecode")
    assert second.covered() == {CODE: 0}


def test_other_code_at_the_same_address_is_another_entry(file: Path) -> None:
    for code, expected in (("b8 01 00 00 00 0f 05", 1), ("b8 02 00 00 00 0f 05", 2)) * 2:
        made = machine(code, file)
        made.step(CODE)
        assert made.registers[REGISTERS["rax"]] == expected
        made.keep()


def test_the_same_code_at_another_address_is_another_entry(file: Path) -> None:
    jump = "e9 00 00 00 00"
    made = machine(jump + jump, file)
    assert [made.step(CODE), made.step(CODE + 5)] == [CODE + 5, CODE + 10]


# ---------------------------------------------------------------------------------------------- entries


@pytest.mark.parametrize("value", [7, None, (1, "text", b"bytes"), frozenset({1, 2})])
def test_what_was_made_is_kept(value: object, file: Path) -> None:
    filled(file, code=value)
    assert Cache(file, GENERATION).get("kind", 1, b"code", never) == value


def test_what_marshal_does_not_know_is_made_each_time(file: Path) -> None:
    made = Cache(file, GENERATION)
    assert isinstance(made.get("kind", 1, b"code", Path), Path)
    made.save()
    assert not file.exists()


@pytest.mark.parametrize(("kind", "address", "code"), [("kind", 2, b"code"), ("other", 1, b"code"), ("kind", 1, b"x")])
def test_everything_that_it_follows_from_is_in_the_key(kind: str, address: int, code: bytes, file: Path) -> None:
    filled(file, code=7)
    assert Cache(file, GENERATION).get(kind, address, code, lambda: 8) == 8


def test_another_generation_finds_nothing(file: Path) -> None:
    filled(file, code=7)
    assert kept(file, generation=b"two") is None
    assert kept(file) == 7


def test_a_generation_is_the_text_of_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = cache._generation()
    (tmp_path / "cache.py").write_text("")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    cache._generation.cache_clear()
    other = cache._generation()
    (tmp_path / "cache.py").unlink()
    cache._generation.cache_clear()
    without = cache._generation()
    monkeypatch.undo()
    cache._generation.cache_clear()
    assert cache._generation() == now
    assert None not in (now, other)
    assert other != now
    assert without is None


@pytest.mark.parametrize("at", [0, 16, -1])
def test_a_damaged_entry_is_made_anew(at: int, file: Path) -> None:
    filled(file, code=7, other=8)
    with database(file) as opened:
        for key, value in opened.execute("SELECT key, value FROM entries").fetchall():
            changed = bytearray(value)
            changed[at] ^= 1
            opened.execute("UPDATE entries SET value = ? WHERE key = ?", (bytes(changed), key))
    assert kept(file) is None
    filled(file, code=7)
    assert kept(file) == 7


def test_an_entry_under_another_key_is_made_anew(file: Path) -> None:
    filled(file, code=7, other=8)
    with database(file) as opened:
        (one, _), (_, value) = opened.execute("SELECT key, value FROM entries").fetchall()
        opened.execute("UPDATE entries SET value = ? WHERE key = ?", (value, one))
    assert {kept(file, b"code"), kept(file, b"other")} in ({None, 8}, {7, None})


def test_entries_of_another_type_are_made_anew(file: Path) -> None:
    filled(file, code=7)
    with database(file) as opened:
        opened.execute("UPDATE entries SET value = 5")
    assert kept(file) is None


# ---------------------------------------------------------------------------------------------- files


def test_a_damaged_file_is_begun_anew(file: Path) -> None:
    filled(file, code=7)
    file.write_bytes(b"no database" * 1000)
    assert kept(file) is None
    filled(file, code=7)
    assert kept(file) == 7


@pytest.mark.parametrize("size", [0, 10, 100, 5000])
def test_a_torn_file_is_no_obstacle(size: int, file: Path) -> None:
    filled(file, **{f"code{number}": bytes(1000) for number in range(20)})
    os.truncate(file, size)
    for _ in range(2):  # the first may be what finds the damage
        made = Cache(file, GENERATION)
        assert made.get("kind", 1, b"new", lambda: 8) == 8
        made.save()
    assert kept(file, b"new") == 8


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_read(mode: int, file: Path) -> None:
    filled(file, code=7)
    file.chmod(mode)
    before = file.read_bytes()
    made = Cache(file, GENERATION)
    assert made.get("kind", 1, b"code", lambda: None) is None
    made.save()
    assert file.read_bytes() == before


def test_a_directory_that_others_may_write_is_not_used(file: Path) -> None:
    filled(file, code=7)
    file.parent.chmod(0o777)
    assert kept(file) is None


def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    filled(file, code=7)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert kept(file) is None


def test_somebody_else_s_file_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file, code=7)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept(file) is None


def test_files_are_the_user_s_alone(file: Path) -> None:
    before = os.umask(0)
    try:
        filled(file, code=7)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]


def test_where_nothing_can_be_written_it_goes_on_without(file: Path) -> None:
    file.parent.write_text("not a directory")
    made = Cache(file, GENERATION)
    for _ in range(2):
        assert made.get("kind", 1, b"code", lambda: 7) == 7
        made.save()


def test_a_full_disk_is_no_obstacle(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file, code=7)
    made = Cache(file, GENERATION)
    connect = cache._connect

    def full(path: Path) -> sqlite3.Connection:
        database = connect(path)
        database.execute("PRAGMA max_page_count = 3")
        return database

    monkeypatch.setattr(cache, "_connect", full)
    made.get("kind", 1, b"large", lambda: bytes(100_000))
    made.save()
    assert made.get("kind", 1, b"code", never) == 7
    assert kept(file) == 7


def test_a_locked_file_is_not_waited_for(file: Path) -> None:
    filled(file, code=7)
    with database(file) as other:
        other.execute("BEGIN EXCLUSIVE")
        begin = time.monotonic()
        made = Cache(file, GENERATION)
        for code in (b"code", b"other"):
            assert made.get("kind", 1, code, lambda: 8) == 8
            made.save()
        assert time.monotonic() - begin < 2
    assert kept(file) == 7


def test_an_interrupted_writer_leaves_what_was_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file, code=7)
    made = Cache(file, GENERATION)
    made.get("kind", 1, b"other", lambda: 8)

    def interrupt(directory: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_check", interrupt)
        with pytest.raises(KeyboardInterrupt):
            made.save()
    made.save()
    assert (kept(file), kept(file, b"other")) == (7, 8)


def write(file: Path, first: int) -> None:
    for start in range(first, first + 100, 10):
        filled(file, **{f"code{number}": number for number in range(start, start + 10)})


def test_two_processes_write_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_PATIENCE", 60)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write, args=(file, first)) for first in (0, 50)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [kept(file, f"code{number}".encode()) for number in range(150)] == list(range(150))


def test_files_that_were_not_used_for_long_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "soft" / f"blocks-{number}.sqlite" for number in range(3)]
    for age, file in enumerate(files):
        filled(file, code=bytes(100_000))
        os.utime(file, (age, age))
    assert kept(files[0]) is not None  # and so it is in use
    monkeypatch.setattr(cache, "MOST_BYTES", 350_000)
    filled(files[2], other=bytes(100_000))
    assert [file.exists() for file in files] == [True, False, True]
    monkeypatch.setattr(cache, "MOST_BYTES", 50_000)
    filled(files[2], third=b"")
    assert not any(file.exists() for file in files)


# ---------------------------------------------------------------------------------------------- programs


def test_a_program_is_known_by_its_code() -> None:
    one, same, other = (program_cache([part])._file for part in (b"one", b"one", b"other"))
    assert one == same != other


@pytest.mark.parametrize("variables", [{"SOFT_CACHE": "off"}, {"XDG_CACHE_HOME": "", "HOME": ""}])
def test_without_a_cache_nothing_is_kept(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = program_cache([b"one"])
    assert made.get("kind", 1, b"code", lambda: 7) == 7
    assert made.get("kind", 1, b"code", lambda: 8) == 8
    made.save()
