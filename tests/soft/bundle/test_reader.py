"""Bundles of strangers: each fault is one sentence that says where it is."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from soft.bundle import files
from soft.bundle.reader import read
from soft.errors import SoftError
from tests.soft.bundle.example import write

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("bundle") / "original")


@pytest.fixture
def bundle(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "bundle")
    return tmp_path / "bundle"


def replace(name: str, old: str, new: str) -> Damage:
    def damage(bundle: Path) -> None:
        text = (bundle / name).read_text()
        assert old in text
        (bundle / name).write_text(text.replace(old, new, 1))

    return damage


def add(name: str, text: str | bytes) -> Damage:
    data = text.encode() if isinstance(text, str) else text
    return lambda bundle: (bundle / name).write_bytes((bundle / name).read_bytes() + data)


def manifest(**changes: object) -> Damage:
    def damage(bundle: Path) -> None:
        values = json.loads((bundle / files.MANIFEST).read_text())
        values.update(changes)
        (bundle / files.MANIFEST).write_text(json.dumps(values))

    return damage


def counts(**changes: int) -> Damage:
    def damage(bundle: Path) -> None:
        values = json.loads((bundle / files.MANIFEST).read_text())
        manifest(counts=values["counts"] | changes)(bundle)

    return damage


def sparse(bundle: Path) -> None:
    with (bundle / files.PATHS).open("r+b") as stream:
        stream.truncate(10 << 30)


def fifo(bundle: Path) -> None:
    (bundle / files.PATHS).unlink()
    os.mkfifo(bundle / files.PATHS)


def link(bundle: Path) -> None:
    (bundle / files.PATHS).unlink()
    (bundle / files.PATHS).symlink_to("/etc/passwd")


def deep(bundle: Path) -> None:
    lines = [f"(define-fun t{n} () (_ BitVec 16) (bvnot t{n - 1}))\n" for n in range(1, 30_000)]
    add(files.TERMS, "".join(lines))(bundle)


def wide(bundle: Path) -> None:
    lines = ["(define-fun t1 () (_ BitVec 32) (concat t0 t0))\n"]
    lines += [f"(define-fun t{n} () (_ BitVec {16 << n}) (concat t{n - 1} t{n - 1}))\n" for n in range(2, 40)]
    add(files.TERMS, "".join(lines))(bundle)


TERM_LINE = f"{files.TERMS}, line 24: "
PATH_LINE = f"{files.PATHS}, line 1: "
TRACE_LINE = f"{files.TRACES}, line 1: "


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        pytest.param(lambda b: (b / files.TERMS).unlink(), "the file terms.smt2 is missing.", id="file missing"),
        pytest.param(lambda b: (b / files.MANIFEST).unlink(), "this directory holds no bundle", id="manifest missing"),
        pytest.param(fifo, "paths.jsonl is not a plain file.", id="named pipe"),
        pytest.param(link, "paths.jsonl cannot be opened (Too many levels of symbolic links).", id="link"),
        pytest.param(sparse, "paths.jsonl is too large to be part of a bundle.", id="10 GB file"),
        pytest.param(
            counts(paths=10**10), "manifest.json counts 10000000000 paths, but there are 12.", id="10 GB claim"
        ),
        pytest.param(counts(crashes=0), "manifest.json counts 0 crashes, but there are 1.", id="wrong count"),
        pytest.param(manifest(format=2), "the bundle has format `2`; this version of soft reads 1.", id="version"),
        pytest.param(manifest(format=None), "the bundle has format `None`", id="no version"),
        pytest.param(manifest(extra=1), "Object contains unknown field `extra`", id="unknown field"),
        pytest.param(manifest(complete="yes"), "Expected `bool`, got `str`", id="wrong type"),
        pytest.param(manifest(agent="a\nb"), "The name `a?b` is not a printable line", id="label with a newline"),
        pytest.param(manifest(complete=False), "A partial bundle says why it is partial.", id="partial, no reason"),
        pytest.param(manifest(reasons=["x"]), "A complete bundle has no reasons", id="complete with reasons"),
        pytest.param(manifest(digest="0" * 64), "is not the scenario that manifest.json names", id="other scenario"),
        pytest.param(
            replace(files.SCENARIO, "[1, 100]", "[1, 99]"), "is not the scenario that manifest.json names", id="domain"
        ),
        pytest.param(
            lambda b: (b / files.MANIFEST).write_text("{"), "manifest.json: this is not what", id="cut manifest"
        ),
        pytest.param(
            lambda b: (b / files.MANIFEST).write_bytes(b"\xff"), "line 1: this is not UTF-8 text.", id="UTF-8"
        ),
        pytest.param(lambda b: (b / files.MANIFEST).write_text("[" * 10**5), "manifest.json: this is not", id="nested"),
        pytest.param(add(files.TERMS, b"; \xff\n"), "line 25: this is not ASCII text.", id="not ASCII"),
        pytest.param(add(files.TERMS, "(check-sat)"), "line 25: the file is cut off in this line.", id="torn"),
        pytest.param(add(files.TERMS, "(check-sat)\n"), "line 25: `(check-sat)` is not a command of a", id="command"),
        pytest.param(add(files.TERMS, "(pop a b c)\n"), "line 25: `pop` is not a command of a bundle.", id="command 2"),
        pytest.param(
            add(files.TERMS, "(declare-const m0.in_port (_ BitVec 16))\n"),
            "`m0.in_port` is declared twice.",
            id="twice",
        ),
        pytest.param(
            add(files.TERMS, "(declare-const evil (_ BitVec 16))\n"),
            "has no variable `evil` of 16 bits.",
            id="variable",
        ),
        pytest.param(
            replace(files.TERMS, "(declare-const m0.in_port (_ BitVec 16))", ""),
            "line 7: The name `m0.in_port` is used but not defined",
            id="not declared",
        ),
        pytest.param(
            replace(files.TERMS, "#x0064", "#x0065"), "line 7: This is not the scenario's domain.", id="other domain"
        ),
        pytest.param(
            replace(files.TERMS, "define-fun t0 ()", "define-fun c3 ()"),
            TERM_LINE + "`c3` is defined twice",
            id="defined",
        ),
        pytest.param(
            replace(files.TERMS, "define-fun t0 ()", "define-fun c99 ()"),
            TERM_LINE + "The next condition is c16",
            id="gap",
        ),
        pytest.param(
            replace(files.TERMS, "define-fun t0 ()", "define-fun m0.x ()"),
            "Definitions are called t0",
            id="foreign name",
        ),
        pytest.param(
            replace(files.TERMS, "(bvadd m0.actions.0.max_len", "(bvadd t0"),
            TERM_LINE + "The name `t0` is used but not defined before.",
            id="cyclic",
        ),
        pytest.param(
            replace(files.TERMS, "t0 () (_ BitVec 16)", "t0 () (_ BitVec 8)"),
            TERM_LINE + "t0 has (_ BitVec 16) for a sort, not (_ BitVec 8).",
            id="wrong sort",
        ),
        pytest.param(
            replace(files.TERMS, "t0 () (_ BitVec 16)", "t0 () (_ BitVec 99999999)"), "bits is not allowed", id="wide"
        ),
        pytest.param(deep, "The term nests too deep; at most 20000 levels are allowed.", id="deep through names"),
        pytest.param(
            add(files.TERMS, "(define-fun t1 () Bool " + "(not " * 30_000 + "c0" + ")" * 30_001 + "\n"),
            "line 25: The term nests too deep",
            id="deep in a line",
        ),
        pytest.param(wide, "A bit-vector of 131072 bits is not allowed", id="doubling"),
        pytest.param(
            add(files.TERMS, "(" * (5 << 20)), "line 25: the line is longer than 4194304 bytes.", id="long line"
        ),
        pytest.param(replace(files.PATHS, "[0]", "[99]"), PATH_LINE + "there is no condition 99", id="condition"),
        pytest.param(replace(files.PATHS, "[0]", "[-1]"), PATH_LINE + "there is no condition -1", id="negative"),
        pytest.param(replace(files.PATHS, '"trace":0', '"trace":77'), PATH_LINE + "there is no trace 77", id="trace"),
        pytest.param(
            replace(files.PATHS, '"trace":0', '"trace":1e9'), PATH_LINE + "this is not what a bundle holds", id="float"
        ),
        pytest.param(
            replace(files.PATHS, '"witness":[', '"witness":[1,'),
            "the witness has 5 values; the scenario has 4",
            id="more",
        ),
        pytest.param(
            replace(files.PATHS, '"witness":[0,', '"witness":[4294967296,'), "for m0.buffer_id does not fit", id="large"
        ),
        pytest.param(
            replace(files.PATHS, '"witness":[', '"witness":' + "[" * 99_999),
            PATH_LINE + "this is not",
            id="nested witness",
        ),
        pytest.param(replace(files.PATHS, "unstable", "un\\u001bstable"), "The mark `un?stable` is not", id="mark"),
        pytest.param(lambda b: (b / files.PATHS).write_text(""), "counts 12 paths, but there are 0", id="no paths"),
        pytest.param(
            replace(files.TRACES, '"step":0', '"step":9'), TRACE_LINE + "The scenario has no step 9", id="step"
        ),
        pytest.param(
            replace(files.TRACES, "m0.buffer_id", "m0.buffer"),
            TRACE_LINE + "The piece `m0.buffer` is neither",
            id="piece",
        ),
        pytest.param(replace(files.TRACES, "m0.buffer_id", "c0"), "has 0 bits, not a number of bytes", id="Bool piece"),
        pytest.param(replace(files.TRACES, "#x0101", "#x010"), "is not a string of hexadecimal bytes", id="odd bytes"),
        pytest.param(
            replace(files.TRACES, "m0.buffer_id", "#x" + "00" * 65_536),
            "A payload has more than 65535 bytes.",
            id="payload",
        ),
        pytest.param(replace(files.TRACES, '"message"', '"exec"'), TRACE_LINE + "this is not what", id="event"),
        pytest.param(
            replace(files.TRACES, '"length":"t0"', '"length":"c0"'), "is not a defined term of 16", id="length"
        ),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(bundle: Path, damage: Damage, sentence: str) -> None:
    damage(bundle)
    with pytest.raises(SoftError) as error:
        read(bundle)
    message = str(error.value)
    assert message.startswith(str(bundle))
    assert sentence in message
    assert len(message) < 400 + len(str(bundle))
    assert "\n" not in message


def test_there_is_no_such_bundle(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="there is no such bundle"):
        read(tmp_path / "nothing")


# ---------------------------------------------------------------------------------------------- one file


def test_a_bundle_in_one_file_reads_like_its_directory(original: Path, tmp_path: Path) -> None:
    files.pack(original, tmp_path / "a.soft")
    files.pack(original, tmp_path / "b.soft")
    assert (tmp_path / "a.soft").read_bytes() == (tmp_path / "b.soft").read_bytes()
    whole, packed = read(original), read(tmp_path / "a.soft")
    assert list(packed.paths) == list(whole.paths)
    assert packed.traces == whole.traces
    assert packed.conditions == whole.conditions
    assert packed.manifest == whole.manifest


def packed(file: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


@pytest.mark.parametrize("name", ["../manifest.json", "/etc/passwd", "x", "manifest.json/", "a" * 5000])
def test_foreign_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SoftError, match="a bundle has no file called"):
        read(packed(tmp_path / "x.soft", {name: b""}))


def test_a_bomb_is_stopped(tmp_path: Path) -> None:
    # 500 MB of spaces in half a megabyte.
    file = packed(tmp_path / "bomb.soft", {"manifest.json": b" " * (500 << 20)})
    with pytest.raises(SoftError, match=r"manifest\.json is too large"):
        read(file)


def test_a_bomb_in_a_table_is_stopped(original: Path, tmp_path: Path) -> None:
    members = {name: (original / name).read_bytes() for name in files.NAMES}
    members[files.TERMS] += (b";" * (3 << 20) + b"\n") * 40
    with pytest.raises(SoftError, match=r"terms\.smt2 is too large"):
        read(packed(tmp_path / "bomb.soft", members))


def test_many_empty_lines_are_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LINES", 100)
    add(files.TERMS, "\n" * 100)(bundle)
    with pytest.raises(SoftError, match=r"terms\.smt2 has more than 100 lines"):
        read(bundle)


def test_many_members_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    file = packed(tmp_path / "many.soft", {f"{n}": b"" for n in range(1000)})
    with pytest.raises(SoftError, match="the file holds more than a bundle's 5 files"):
        read(file)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.soft"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("manifest.json", "{}")
    with pytest.raises(SoftError, match=r"manifest\.json is there twice"):
        read(file)


def test_other_compression_and_encryption_are_refused(tmp_path: Path) -> None:
    file = packed(tmp_path / "x.soft", {"manifest.json": b"{}"}, zipfile.ZIP_LZMA)
    with pytest.raises(SoftError, match="compressed in a way that bundles do not use"):
        read(file)


@pytest.mark.parametrize("length", [0, 1, 21, 22, 100, -1])
def test_a_cut_file_is_refused(original: Path, tmp_path: Path, length: int) -> None:
    files.pack(original, tmp_path / "whole.soft")
    data = (tmp_path / "whole.soft").read_bytes()
    (tmp_path / "cut.soft").write_bytes(data[:length])
    with pytest.raises(SoftError, match="neither a bundle's directory nor a bundle file, or it is cut off"):
        read(tmp_path / "cut.soft")


def test_a_claim_of_ten_gigabytes_in_a_header_is_harmless(original: Path, tmp_path: Path) -> None:
    files.pack(original, tmp_path / "x.soft")
    data = bytearray((tmp_path / "x.soft").read_bytes())
    place = data.find(b"PK\1\2")
    struct.pack_into("<L", data, place + 24, 0xFFFFFFF0)
    (tmp_path / "x.soft").write_bytes(data)
    assert list(read(tmp_path / "x.soft").paths) == list(read(original).paths)
