"""The machine's loop: where runs go and how they stop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.machine.compiler import REGISTER_SLOTS, REGISTERS
from harness.machine.machine import BlockLimit, Fault, Machine, Trap, Unsupported
from harness.machine.memory import PAGE
from harness.machine.values import Sym, Value
from soft.solve import terms as t
from soft.solve.terms import Term
from tests.benchmarks.bench_machine import Workload
from tests.harness.machine.lab import CODE, Recorder

DATA, STACK = 0x10000, 0x20000


class Called(Exception):
    """A system call was made."""


def no_call(address: int, kind: str) -> int:
    raise Called(kind)


def machine(code: str, at: int = CODE, permissions: str = "r-x") -> Machine:
    """Code at CODE (hexadecimal), a page of data and a page of stack."""
    text = bytes.fromhex(code)
    pages: dict[int, tuple[bytes, str]] = {DATA >> 12: (bytes(PAGE), "rw-"), STACK >> 12: (bytes(PAGE), "rw-")}
    for page in range(at >> 12, (at + len(text) - 1 >> 12) + 1):
        content = bytearray(b"\xcc" * PAGE)
        for i, byte in enumerate(text):
            if at + i >> 12 == page:
                content[at + i & 4095] = byte
        pages[page] = bytes(content), permissions
    result = Machine(pages.get)
    registers: list[Value] = [0] * REGISTER_SLOTS
    registers[REGISTERS["rsp"]] = STACK + 0x800
    registers[REGISTERS["d"]] = 1
    result.reset(registers)
    return result


def run(m: Machine, special: Callable[[int, str], int] = no_call, at: int = CODE, most: int = 100) -> None:
    m.run(at, special, most)


def register(m: Machine, name: str) -> Value:
    return m.registers[REGISTERS[name]]


def symbol(m: Machine, name: str, value: int) -> Recorder:
    """Make a register symbolic, under its own name."""
    m.registers[REGISTERS[name]] = Sym(t.var(name, 64), value)
    recorder = Recorder(m, {name: value})
    m.decisions = recorder
    return recorder


# ---------------------------------------------------------------------------------------------- the way a run ends


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        ("0f 0b", "SIGILL"),  # ud2
        ("31 c0 0f 0b", "SIGILL"),  # xor eax, eax; ud2
        ("cc", "SIGTRAP"),  # int3
        ("f4", "SIGSEGV"),  # hlt
        ("31 c9 f7 f1", "SIGFPE"),  # xor ecx, ecx; div ecx
        ("b9 01 00 00 00 ba 01 00 00 00 f7 f1", "SIGFPE"),  # 2**32 / 1 does not fit 32 bits
        ("b8 00 00 00 80 99 83 c9 ff f7 f9", "SIGFPE"),  # -2**31 / -1 does not either
        ("48 c7 c0 08 00 01 00 0f 28 00", "SIGSEGV"),  # movaps from an address that is not aligned
    ],
)
def test_the_processor_stops_the_agent(code: str, signal: str) -> None:
    with pytest.raises(Trap) as trap:
        run(machine(code))
    assert trap.value.signal == signal


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("62 f1 fe 48 6f 06", "vmovdqu64"),
        ("0f 01 f8", "swapgs"),
        ("0f a2", "amd64g_dirtyhelper_CPUID"),
        ("d9 e8", "PutI|GetI"),  # fld1
        ("48 0f c7 0e", "compare-and-swap of two words|cmpxchg16b"),
        ("66 0f 38 dc c1", "AES"),
        ("c1 d0 03", "RCL"),  # rcl eax, 3
    ],
)
def test_what_has_no_model_ends_the_run_by_name(code: str, name: str) -> None:
    m = machine(code + " c3")
    m.registers[REGISTERS["rsi"]] = DATA
    with pytest.raises(Unsupported, match=name):
        run(m)


def test_a_system_call_is_left_to_the_kernel() -> None:
    seen: list[tuple[int, str]] = []

    def special(address: int, kind: str) -> int:
        seen.append((address, kind))
        return CODE + 3

    with pytest.raises(Trap, match="SIGILL"):
        run(machine("0f 05 cc 0f 0b"), special)
    assert seen == [(CODE + 2, "Ijk_Sys_syscall")]


def test_an_endless_loop_ends() -> None:
    m = machine("eb fe")
    with pytest.raises(BlockLimit):
        run(m, most=50)
    assert m.executed in (49, 50)


def test_a_jump_to_nowhere_faults() -> None:
    with pytest.raises(Fault, match="execution of 0x0"):
        run(machine("31 c0 ff e0"))  # xor eax, eax; jmp rax
    with pytest.raises(Fault, match=f"execution of {DATA:#x}"):
        run(machine(""), at=DATA)


def test_an_unmapped_access_faults_at_its_address() -> None:
    m = machine("48 8b 40 10")  # mov rax, [rax+16]
    with pytest.raises(Fault) as fault:
        run(m)
    assert fault.value.address == 16


# ---------------------------------------------------------------------------------------------- code


def test_a_block_may_cross_a_page() -> None:
    at = CODE + PAGE - 3
    m = machine("b8 05 00 00 00 0f 05", at)  # mov eax, 5; syscall
    with pytest.raises(Called):
        run(m, at=at)
    assert register(m, "rax") == 5


def test_an_instruction_cut_off_by_the_end_of_the_mapping_faults() -> None:
    at = CODE + PAGE - 2
    m = machine("b8 05", at)
    with pytest.raises((Fault, Unsupported)):
        run(m, at=at)


def test_writable_code_is_refused() -> None:
    with pytest.raises(Unsupported, match="writable"):
        run(machine("90", permissions="rwx"))


def test_code_made_at_run_time_is_refused_and_unmapped_code_is_forgotten() -> None:
    m = machine("0f 05")
    with pytest.raises(Called):
        run(m)
    m.memory.unmap(CODE >> 12, 1)
    with pytest.raises(Fault):
        run(m)
    m.memory.map(CODE >> 12, 1, "r-x")
    with pytest.raises(Unsupported, match="made at run time"):
        run(m)
    m.reset([0] * REGISTER_SLOTS)
    with pytest.raises(Called):
        run(m)


def test_coverage_is_the_blocks_that_ran() -> None:
    m = machine("85 ff 74 02 0f 05 0f 0b")  # test edi, edi; je +2; syscall; ud2
    with pytest.raises(Trap):
        run(m)
    assert m.covered() == {CODE: 4, CODE + 6: 2}
    m.registers[REGISTERS["rdi"]] = 1
    with pytest.raises(Called):
        run(m)
    assert m.covered() == {CODE: 4, CODE + 4: 2, CODE + 6: 2}


def test_a_hook_runs_in_place_of_a_function() -> None:
    m = machine("e8 01 00 00 00 cc 0f 05")  # call +1; int3; (the function)
    m.hook(CODE + 6, lambda: 42)
    with pytest.raises(Trap, match="SIGTRAP"):
        run(m)
    assert register(m, "rax") == 42
    assert register(m, "rsp") == STACK + 0x800
    m.memory.unmap(CODE >> 12, 1)
    m.reset(list(m.registers))
    with pytest.raises(Trap, match="SIGTRAP"):
        run(m)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_a_whole_run_computes_what_the_processor_does(level: str, tmp_path: Path) -> None:
    workload = Workload(level)
    library = tmp_path / "workload.so"
    library.write_bytes(workload.image)
    native = ctypes.CDLL(str(library)).work
    native.restype, native.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_uint32]
    for rounds in (1, 3):
        expected = native(ctypes.create_string_buffer(PAGE), rounds)
        assert workload.run(Machine(workload.source()), rounds) == expected


# ---------------------------------------------------------------------------------------------- inputs


def test_a_branch_on_an_input_is_recorded() -> None:
    m = machine("83 ff 05 77 02 0f 05 0f 0b")  # cmp edi, 5; ja +2; syscall; ud2
    recorder = symbol(m, "rdi", 9)
    with pytest.raises(Trap):
        run(m)
    low = t.extract(31, 0, t.var("rdi", 64))
    assert recorder.conditions == [t.ult(t.const(5, 32), low)]


def test_a_jump_to_an_input_is_pinned() -> None:
    m = machine("ff e7 0f 0b")  # jmp rdi
    recorder = symbol(m, "rdi", CODE + 2)
    with pytest.raises(Trap):
        run(m)
    assert recorder.conditions == [t.eq(t.var("rdi", 64), t.const(CODE + 2, 64))]


@pytest.mark.parametrize(("divisor", "conditions"), [(0, 1), (3, 1)])
def test_dividing_by_an_input_asks_whether_it_is_zero(divisor: int, conditions: int) -> None:
    m = machine("b8 0a 00 00 00 31 d2 f7 f7 0f 05")  # mov eax, 10; xor edx, edx; div edi; syscall
    recorder = symbol(m, "rdi", divisor)
    with pytest.raises(Called if divisor else Trap):
        run(m)
    assert len(recorder.conditions) == conditions


def test_a_quotient_of_inputs_that_does_not_fit_is_a_path_of_its_own() -> None:
    for high, ending in ((0, Called), (7, Trap)):
        m = machine("b9 05 00 00 00 f7 f1 0f 05")  # mov ecx, 5; div ecx; syscall
        recorder = symbol(m, "rdx", high)
        with pytest.raises(ending):
            run(m)
        overflow: Term = t.ule(t.const(5, 32), t.extract(31, 0, t.var("rdx", 64)))
        assert recorder.conditions == [overflow if high else t.negate(overflow)]


@pytest.mark.parametrize("current", [0, 1])
def test_compare_and_swap_with_an_input_is_a_branch(current: int) -> None:
    m = machine("31 c0 f0 0f b1 0e 0f 05")  # xor eax, eax; lock cmpxchg [rsi], ecx; syscall
    m.registers[REGISTERS["rsi"]], m.registers[REGISTERS["rcx"]] = DATA, 7
    recorder = Recorder(m, {"x": current})
    m.decisions = recorder
    m.memory.store4(DATA, Sym(t.var("x", 32), current))
    with pytest.raises(Called):
        run(m)
    equal = t.eq(t.var("x", 32), t.const(0, 32))
    assert equal in recorder.conditions or t.negate(equal) in recorder.conditions
    kept = m.memory.load4(DATA)
    assert kept == 7 if current == 0 else isinstance(kept, Sym)


def test_the_time_stamp_counter_is_the_virtual_clock() -> None:
    m = machine("0f 31 0f 05")  # rdtsc; syscall
    m.clock = lambda: 0x1_0000_0007
    with pytest.raises(Called):
        run(m)
    assert (register(m, "rdx"), register(m, "rax")) == (1, 7)


def test_a_repeated_string_instruction_copies() -> None:
    m = machine("f3 a4 0f 05")  # rep movsb; syscall
    m.registers[REGISTERS["rsi"]], m.registers[REGISTERS["rdi"]] = DATA, DATA + 100
    m.registers[REGISTERS["rcx"]] = 5
    m.memory.write(DATA, b"hello")
    m.memory.store1(DATA + 1, Sym(t.var("x", 8), ord("e")))
    with pytest.raises(Called):
        run(m)
    assert m.memory.read(DATA + 100, 6) == b"hello\0"
    copied = m.memory.load1(DATA + 101)
    assert isinstance(copied, Sym)
    assert copied.term is t.var("x", 8)
    assert register(m, "rsi") == DATA + 5
