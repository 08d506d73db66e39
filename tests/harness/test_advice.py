"""Where a hash costs paths, the user is told what to write; what has no model is told with its place."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.explorer import Limits
from harness.kernel.table import CALLS
from soft.cli import soft
from tests.foreign.lab import FLOWS, HERE, PACKETS, binary, explore, scenario, target

_NO_STUB = ('stub = ["jenkins=0"]', "")
# The hash as macros and compilers like it: no function, but two multiplications.
_INLINED = """
static inline __attribute__((always_inline)) uint32_t jenkins(const uint8_t *key, size_t length)
{
    uint32_t hash;
    memcpy(&hash, key, 4);
    hash ^= hash >> 16; hash *= 0x85ebca6b; hash ^= key[4]; hash *= 0xc2b2ae35; hash ^= hash >> 16;
    return hash;
}
"""


@pytest.fixture
def stripped(tmp_path: Path) -> Path:
    place = tmp_path / "selectd"
    subprocess.run(["strip", "-o", place, binary("selectd")], check=True)
    return place


def test_a_function_with_a_name() -> None:
    _, _, progress = explore(target("selectd", _NO_STUB), scenario(FLOWS), Limits(paths=30))
    assert list(progress.stubs) == ["jenkins=0"]
    assert progress.stubs["jenkins=0"] > 5


def test_a_function_in_a_stripped_program(stripped: Path) -> None:
    agent = replace(target("selectd", _NO_STUB), binary=stripped)
    _, _, progress = explore(agent, scenario(FLOWS), Limits(paths=30))
    (stub,) = progress.stubs
    symbols = subprocess.run(["nm", binary("selectd")], capture_output=True, text=True, check=True).stdout
    (jenkins,) = (int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" jenkins"))
    assert stub == f"{jenkins:#x}=0"


def test_a_hash_that_was_inlined(tmp_path: Path) -> None:
    source = (HERE / "selectd.c").read_text()
    start, stop = source.index("uint32_t jenkins("), source.index("static struct flow **find")
    (tmp_path / "inlined.c").write_text(source[:start] + _INLINED + source[stop:])
    subprocess.run(["gcc", "-O2", "-w", "-o", tmp_path / "inlined", tmp_path / "inlined.c"], check=True)
    agent = replace(target("selectd", _NO_STUB), binary=tmp_path / "inlined")
    _, _, progress = explore(agent, scenario(FLOWS), Limits(paths=40))
    assert list(progress.stubs) == ["imul:0xc2b2ae35"]
    stubbed = replace(agent, profile=target("selectd", ("jenkins=0", "imul:0xc2b2ae35")).profile)
    _, manifest, _ = explore(stubbed, scenario(FLOWS))
    assert manifest.complete


def test_nothing_is_said_where_nothing_is_to_say() -> None:
    _, manifest, progress = explore(target("selectd"), scenario(FLOWS))
    assert manifest.complete
    assert not progress.stubs
    assert not progress.hints


def test_what_has_no_model_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CALLS, 44)
    _, manifest, progress = explore(target("alarmd"), scenario(PACKETS))
    (hint,) = progress.hints
    assert hint.startswith("the system call sendto, at libc.so.6+0x")
    assert hint.endswith(" in transmit")
    assert ", called from alarmd+0x" in hint
    # The bundle says what, and not where.
    assert not any("transmit" in reason or "+0x" in reason for reason in manifest.reasons)
    assert any("the system call sendto" in reason for reason in manifest.reasons)


def test_auto_stub_adds_the_line_and_starts_again(tmp_path: Path) -> None:
    (tmp_path / "flows.toml").write_text(FLOWS)
    profile = tmp_path / "selectd.toml"
    profile.write_text((HERE / "selectd.toml").read_text().replace(*_NO_STUB))
    command = ["explore", str(binary("selectd")), "--profile", str(profile), "--test", str(tmp_path / "flows.toml")]
    command += ["-o", str(tmp_path / "bundle")]
    advised = CliRunner().invoke(soft, [*command, "--max-paths", "30"], catch_exceptions=False)
    assert 'write into the profile: stub = ["jenkins=0"]' in advised.stderr
    done = CliRunner().invoke(soft, [*command, "--replace", "--auto-stub"], catch_exceptions=False)
    assert 'Starting again with stub = ["jenkins=0"].' in done.stderr
    assert "8 paths" in done.stdout
    assert "jenkins" not in (tmp_path / "bundle" / "manifest.json").read_text()
