"""Start the processes of an agent with a fixed address space, and end all of them, daemonised ones too."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from soft.errors import SoftError

_ADDR_NO_RANDOMIZE = 0x0040000
_QUERY_PERSONALITY = 0xFFFFFFFF
_PTRACE_TRACEME = 0
_PTRACE_DETACH = 17

# Every process of a run carries this variable, which is how one that left our session is still found.
TAG = "SOFT_RUN"

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long
_libc.personality.argtypes = [ctypes.c_ulong]


def snapshot_environment() -> dict[str, str]:
    """Variables that a process needs from its start if it is to be frozen and executed under the model.

    VEX cannot lift AVX string functions, a lazily bound call would run the dynamic linker, and malloc's per-thread
    cache compares a random key with user data.
    """
    refused = (
        "AVX512F AVX512VL AVX512BW AVX2 AVX AVX2_Usable AVX_Usable AVX_Fast_Unaligned_Load ERMS FSRM SSE4_2 SSE4_1 "
        "SSSE3 BMI2 BMI1 LZCNT POPCNT MOVBE XSAVEC XSAVE"
    )
    hwcaps = ",".join(f"-{name}" for name in refused.split())
    return {
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hwcaps}:glibc.malloc.tcache_count=0:glibc.malloc.tcache_max=0",
        "LD_BIND_NOW": "1",
        # OpenSSL asks the processor itself: this leaves it the features of the first word (SSE2) and no others.
        "OPENSSL_ia32cap": "~0xffffffff00000000:0x0",
    }


def base_environment() -> dict[str, str]:
    """What every agent gets, and nothing else of the user's: an agent's behaviour must not hang on it."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Spawning:
    """Everything about a start but the command itself."""

    directory: Path
    environment: Mapping[str, str]
    log: int
    """The descriptor that takes standard output and error."""
    enter: Callable[[], None] | None = None
    """Called between fork and exec, to be in the network namespace."""


@contextlib.contextmanager
def _fixed_addresses() -> Iterator[None]:
    # The personality belongs to the calling thread and is inherited by what it starts; so no helper has to be executed,
    # and no other thread sees it.
    before = _libc.personality(_QUERY_PERSONALITY)
    _libc.personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        _libc.personality(before)


def spawn(
    command: Sequence[str], how: Spawning, before_main: Callable[[int], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with address-space randomisation off.

    `before_main` is called with the process id while the process stands at its first instruction after execve, traced
    by this thread: the dynamic linker has not run, and the text can be patched.
    """
    enter = how.enter

    def between_fork_and_exec() -> None:
        if enter is not None:
            enter()
        if before_main is not None and _libc.ptrace(_PTRACE_TRACEME, 0, None, None) != 0:
            raise PermissionError("ptrace")

    # Without a function to call in the child Python uses vfork, which costs 0.7 ms whatever our size; fork copies our
    # page tables (8 ms at 150 MB).
    preexec = between_fork_and_exec if enter is not None or before_main is not None else None
    try:
        with _fixed_addresses():
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=how.log,
                stderr=how.log,
                cwd=how.directory,
                env={**how.environment, TAG: str(how.directory)},
                start_new_session=True,
                preexec_fn=preexec,
            )
    except FileNotFoundError:
        raise SoftError(f"The command `{command[0]}` was not found.") from None
    except OSError as error:
        raise SoftError(f"`{command[0]}` could not be started: {error.strerror}.") from None
    except subprocess.SubprocessError:
        # Python does not tell what went wrong between fork and exec.
        where = ["inside its network namespace"] * (enter is not None) + ["under our trace"] * (before_main is not None)
        raise SoftError(f"`{command[0]}` could not be started {' and '.join(where)}: it is not permitted.") from None
    # A crash is an outcome; a core file would be left behind.
    with contextlib.suppress(OSError):
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    if before_main is not None:
        _call_at_exec(process, before_main)
    return process


def _call_at_exec(process: subprocess.Popen[bytes], before_main: Callable[[int], None]) -> None:
    try:
        _, status = os.waitpid(process.pid, 0)
        if not os.WIFSTOPPED(status):
            raise SoftError(f"{process.args!r} did not stop at its first instruction; tracing it is not permitted.")
        before_main(process.pid)
        if _libc.ptrace(_PTRACE_DETACH, process.pid, None, None) != 0:
            raise SoftError(f"The agent could not be released: {os.strerror(ctypes.get_errno())}.")
    except BaseException:
        process.kill()
        process.wait()
        raise


def describe_exit(returncode: int) -> str:
    """`SIGSEGV` or `exit 1`, from what Popen says."""
    if returncode >= 0:
        return f"exit {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all in its session, and collect it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # The leader was not collected yet, so its number cannot have been given to anybody else.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def has_children(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_bytes())
    return True


def tagged(directory: Path) -> list[int]:
    """All living processes of the run in this directory, wherever they went."""
    mark = f"{TAG}={directory}".encode()
    found: list[int] = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                found.append(int(entry))
    return found


def end_tagged(directory: Path) -> None:
    """Kill what a run left, until nothing is left; a process may start another while we look."""
    for _ in range(50):
        if not (left := tagged(directory)):
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            # One of our own children would stay as a zombie, which has no environment and is not found again.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0 if _is_child(pid) else os.WNOHANG)


def _is_child(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError, ValueError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[1]) == os.getpid()
    return False


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM waiting while something is put away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the command like Ctrl-C does, by way of every `finally`; for the edge of a program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
