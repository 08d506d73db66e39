"""When an agent counts as asleep."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soft.launch.quiet import InputQueues, Processes, take_turns


@contextmanager
def python(code: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def eventually(processes: Processes, asleep: bool) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if processes.asleep() is asleep:
            return True
        time.sleep(0.001)
    return False


def test_a_process_that_waits_sleeps_and_one_that_computes_does_not() -> None:
    with python("import select; print(flush=True); select.poll().poll()") as process:
        watched = Processes([process.pid])
        assert watched.can_be_seen
        assert eventually(watched, True)
        watched.close()
    with python("print(flush=True)\nwhile True: pass") as process:
        watched = Processes([process.pid])
        assert eventually(watched, False)
        process.kill()
        process.wait()
        assert eventually(watched, True)
        watched.close()


def test_every_thread_must_sleep() -> None:
    sleeper = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()"
    with python(f"{sleeper}\nprint(flush=True)\nwhile True: pass") as process:
        watched = Processes([process.pid])
        assert not all(watched.asleep() for _ in range(200))
        watched.close()


def test_what_an_agent_has_not_read_is_seen_from_outside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as ours:
        theirs, _ = listener.accept()
        code = "print(flush=True); import time; time.sleep(60)"
        with theirs, python(code, pass_fds=(theirs.fileno(),)) as process:
            queues = InputQueues(process.pid)
            assert queues.empty()
            ours.sendall(b"unread")
            deadline = time.monotonic() + 5
            while queues.empty() and time.monotonic() < deadline:
                time.sleep(0.001)
            assert not queues.empty()
            assert theirs.recv(6) == b"unread"
            assert queues.empty()
            queues.close()


def test_a_socket_that_was_opened_later_counts_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = listener.getsockname()
        code = f"import socket, time; print(); input(); s = socket.create_connection({where}); print(); time.sleep(60)"
        with python(code.replace("print()", "print(flush=True)"), stdin=subprocess.PIPE) as process:
            queues = InputQueues(process.pid)
            assert queues.empty()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            theirs, _ = listener.accept()
            with theirs:
                process.stdout.readline()
                theirs.sendall(b"unread")
                deadline = time.monotonic() + 5
                while queues.empty() and time.monotonic() < deadline:
                    time.sleep(0.001)
                assert not queues.empty()
            queues.close()


def test_a_process_that_has_ended_sleeps_though_nobody_has_waited_for_it() -> None:
    process = subprocess.Popen(["true"])
    watched = Processes([process.pid])
    assert eventually(watched, asleep=True)
    assert all(watched.asleep() for _ in range(20))
    process.wait()
    watched.close()


def test_threads_take_turns_on_one_processor() -> None:
    sleeper = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()"
    with python(f"{sleeper}\nprint(flush=True)") as process:
        take_turns(process.pid)
        threads = [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
        assert len(threads) == 2
        assert all(os.sched_getscheduler(thread) == os.SCHED_BATCH for thread in threads)
        (processor,) = {frozenset(os.sched_getaffinity(thread)) for thread in threads}
        assert len(processor) == 1
    take_turns(process.pid)


def test_who_has_not_run_has_run_as_long_as_before() -> None:
    with python("import sys\nprint(flush=True)\nsys.stdin.readline()\nsys.stdin.readline()", stdin=-1) as process:
        watched = Processes([process.pid])
        assert eventually(watched, True)
        before = watched.ran()
        time.sleep(0.02)
        assert watched.ran() == before
        assert process.stdin is not None
        process.stdin.write(b"go on\n")
        process.stdin.flush()
        time.sleep(0.02)
        assert eventually(watched, True)
        assert watched.ran() != before
        watched.close()
        process.stdin.close()
