"""Stubs: patched in the process before its main, so that all that it computes is computed with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from harness.snapshot import freeze
from harness.stubs import applied, before_main, constant_function, immediate_multiplications, parse
from soft.errors import SoftError
from soft.launch.find import Target
from tests.harness.small_agent import MARK, build, hashes, target

INLINED = "imul:0xc2b2ae35"


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("agent"))


@pytest.fixture(scope="module")
def stripped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stripped"), "-s", "-no-pie")


def stubbed(binary: Path, *lines: str) -> Target:
    described = target(binary, "poll")
    return Target(described.label, binary, msgspec.structs.replace(described.profile, stub=lines))


def computed(binary: Path, *lines: str) -> tuple[tuple[int, int], tuple[str, ...]]:
    """The agent's two hashes, and what the manifest will say."""
    snapshot = freeze(stubbed(binary, *lines), ports=0)
    (memory,) = [r.content for r in snapshot.regions if r.content and MARK in r.content and "w" in r.permissions]
    return hashes(memory), snapshot.stubs


def address_of(binary: Path, name: str) -> str:
    for line in subprocess.run(["nm", str(binary)], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(f" {name}"):
            return f"0x{line.split()[0]}"
    raise LookupError(name)


def test_without_stubs_the_hashes_are_what_they_are(binary: Path) -> None:
    (by_function, inlined), stubs = computed(binary)
    assert (by_function, inlined) == (3 * 0x2C1B3C6D + 7 & 0xFFFFFFFF, 3 * 0xC2B2AE35 & 0xFFFFFFFF)
    assert stubs == ()
    assert before_main(target(binary, "poll").profile) is None
    assert applied(None) == ()


def test_a_function_by_name(binary: Path) -> None:
    (by_function, inlined), stubs = computed(binary, "hash_word = 0x1234")
    assert by_function == 0x1234
    assert inlined != 0
    assert stubs == ("1 function replaced by constants",)


def test_a_function_by_address(binary: Path) -> None:
    (by_function, _), _ = computed(binary, f"{address_of(binary, 'hash_word')}=-1")
    assert by_function == 0xFFFFFFFF


def test_a_constant_wherever_it_was_inlined(binary: Path, stripped: Path) -> None:
    for program in (binary, stripped):
        (by_function, inlined), stubs = computed(program, INLINED)
        assert by_function != 0
        assert inlined == 0
        assert stubs == ("1 multiplication by 0xc2b2ae35 zeroed",)


def test_a_function_of_a_library(binary: Path) -> None:
    """The binary has no strtol of its own: the C library's is patched, and the controller's TCP port is then wrong."""
    described = stubbed(binary, "strtol=1")
    profile = msgspec.structs.replace(described.profile, address="tcp")
    with pytest.raises(SoftError, match=r"^The agent ended \(exit 4\) before it came to connect"):
        freeze(Target(described.label, binary, profile), ports=0)


def test_the_file_is_left_alone(binary: Path) -> None:
    before = binary.read_bytes()
    computed(binary, "hash_word=0", INLINED)
    assert binary.read_bytes() == before


def test_what_the_manifest_says_gives_nothing_away(binary: Path) -> None:
    address = address_of(binary, "hash_word")
    _, stubs = computed(binary, f"{address}=5", INLINED)
    assert stubs == ("1 function replaced by constants", "1 multiplication by 0xc2b2ae35 zeroed")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("no_such=0", r"neither small_agent nor a library of it has such a function"),
        ("0x10=0", r"small_agent has no code at 0x10"),
        ("imul:0x12345677", r"its code has no multiplication by 0x12345677"),
        ("strlen=0", r"it is chosen among several when the agent is loaded; name the one that it chooses"),
    ],
)
def test_a_stub_that_cannot_be_applied(binary: Path, line: str, why: str) -> None:
    with pytest.raises(SoftError, match=rf"^small_agent.toml: the stub `{line}` cannot be applied: {why}\.$"):
        computed(binary, line)


def test_a_stripped_binary_needs_addresses(stripped: Path) -> None:
    with pytest.raises(SoftError, match=r"the binary is stripped, so give the function's address in its place\.$"):
        computed(stripped, "hash_word=0")


@pytest.mark.parametrize(
    "line", ["", "hash", "hash=", "=0", "hash=x", "hash=0x1ffffffffffffffff", "imul:", "imul:0", "imul:0x1ffffffff"]
)
def test_a_line_that_is_no_stub(line: str) -> None:
    with pytest.raises(SoftError, match=rf"^a.toml: the stub `{line}` is none of FUNCTION=VALUE, 0xADDRESS=VALUE and"):
        parse(line, "a.toml")


def test_no_permission_to_trace(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soft.launch.process._PTRACE_TRACEME", 0x9999)  # which the kernel refuses
    with pytest.raises(SoftError, match=r"small_agent` could not be started under our trace: it is not permitted\.$"):
        computed(binary, INLINED)


def test_constant_functions() -> None:
    assert constant_function(5) == bytes.fromhex("b805000000c3")
    assert constant_function(1 << 32) == bytes.fromhex("48b80000000001000000c3")


def test_every_form_of_operand_is_recognised(tmp_path: Path) -> None:
    """Assembled by the assembler, so that it is not our own idea of the encoding that is tested."""
    operands = [
        "%ecx", "%r9d", "(%rcx)", "(%r12)", "8(%rbp)", "(%rbp)", "8(%rsp)", "0x1234(%rbx)", "0x1234(%r12)",
        "(%rbx,%rcx,4)", "8(%rbx,%rcx,4)", "0x1234(%rbx,%rcx,4)", "0x1234(,%rcx,4)", "0x1234(%rip)", "0x1234",
    ]  # fmt: skip
    lines = [f"imul $0xc2b2ae35, {operand}, %edx" for operand in operands]
    lines += ["imul $-0x3d4d51cb, %rcx, %rdx", "mov $0xc2b2ae35, %edx", "add $0xc2b2ae35, %ecx", ".byte 0x69"]
    (tmp_path / "a.s").write_text("\n".join(lines) + "\n")
    subprocess.run(["as", "-o", tmp_path / "a.o", tmp_path / "a.s"], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", tmp_path / "a.o", tmp_path / "a.bin"], check=True)
    code = (tmp_path / "a.bin").read_bytes()
    sites = list(immediate_multiplications(code, 0xC2B2AE35))
    assert len(sites) == len(operands) + 1
    assert code.count(bytes.fromhex("35aeb2c2")) == len(operands) + 3
    assert list(immediate_multiplications(code[sites[0] :], 0xC2B2AE35)) == [site - sites[0] for site in sites[1:]]
