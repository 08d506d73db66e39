"""A running agent: start it from its profile, shake hands with it, exchange bytes, and leave nothing behind."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from soft.errors import SoftError
from soft.launch.clock import MOVED_CLOCK, REAL_TIME, AgentClock, library
from soft.launch.control import ControlEnd
from soft.launch.exchange import Burst, Exchange
from soft.launch.handshake import Handshake, version_name
from soft.launch.helpers import Helpers, last_words
from soft.launch.namespace import Namespace
from soft.launch.placeholders import fill
from soft.launch.ports import LengthPrefixedPort, Port, PortPlan, UnixDatagramPort
from soft.launch.process import (
    base_environment,
    describe_exit,
    end_session,
    end_tagged,
    has_children,
    tagged,
    uninterrupted,
)
from soft.launch.profile import Profile, commands_of
from soft.launch.quiet import InputQueues, Processes, nudge, take_turns
from soft.launch.reconnect import meeting

# As many as a scenario may ask for.
MAX_PORTS = 48
# A UNIX socket's path has 107 bytes at most; the longest name of ours below the directory has 12.
_LONGEST_DIRECTORY = 90
# Longer than an agent takes to read what it was sent, or to come to rest.
_SEND_TIMEOUT = 2.0
# Where the clock goes from one deadline to the next, so much of the settle time is waited after each: other threads of
# an agent have their deadlines too, and 70 seconds have many.
_TICK_SETTLES = 0.1
# Longer than an agent that is awake takes for one message of the handshake.
_NUDGE_EVERY_MS = 3


class Agent:
    """An agent that runs. `control` is there after `connect` or `handshake`.

    Its life is that of the `with start(...)` block; all it needs is in the object, so that many can run side by side.
    """

    def __init__(
        self,
        profile: Profile,
        directory: Path,
        process: subprocess.Popen[bytes],
        ports: Mapping[int, Port],
        end: ControlEnd,
        deadline: float,
        clock: AgentClock | None = None,
        meet_again: Callable[[float], ControlEnd] | None = None,
        nudging: bool = False,
    ) -> None:
        self._nudge_path = directory / profile.nudge if nudging and profile.nudge is not None else None
        self.profile = profile
        self.directory = directory
        self.pid = process.pid
        """The process that owns the control channel; one that was started later is known when the channel is there."""
        self.ports = ports
        self._process = process
        self._end = end
        self._deadline = deadline
        self._meet_again = meet_again
        self._clock = clock
        self._is_stopped = False
        self._pidfd = os.pidfd_open(process.pid)
        self._control: socket.socket | None = None
        self._exchange: Exchange | None = None
        self._processes: Processes | None = None
        self._queues: InputQueues | None = None

    @property
    def control(self) -> socket.socket:
        if self._control is None:
            raise SoftError("The agent has no control channel yet.")
        return self._control

    def ended(self) -> str | None:
        """How the agent's process ended (`SIGSEGV`, `exit 0`), or None while it runs."""
        if self.pid == self._process.pid:
            code = self._process.poll()
            return None if code is None else describe_exit(code)
        # Not a child of ours: that it ended can be seen, but not how.
        return None if Path(f"/proc/{self.pid}/syscall").exists() else "ended"

    def last_words(self) -> str:
        """The end of what the agent printed, to append to an error, or nothing."""
        return last_words(self.directory / "agent.log")

    def connect(self) -> None:
        """Open the control channel without a word: the agent waits for the first byte from its controller."""
        if self._control is not None:
            return
        name = self.profile.control_process
        if name is None:
            self._control = self._end.open(self._deadline, self.ended, self._pidfd)
        else:
            # The started process may end, as that of a daemon does, and another one go on.
            self._control = self._end.open(self._deadline, self._all_ended, None)
        if self._control is None:
            verb = "connect to its controller" if self.profile.connection == "connect" else "listen for its controller"
            if (how := self.ended()) is not None and (name is None or self._all_ended()):
                hint = self._hint()
                raise SoftError(f"The agent ended ({how}) before it came to {verb}.{hint}{self.last_words()}")
            raise SoftError(
                f"The agent did not {verb} at {self._end.text} within "
                f"{self.profile.start_timeout_ms} ms.{self.last_words()}"
            )
        if name is not None:
            self._watch(_control_pid(name, self.directory, self._deadline))
        # One connection is all that a run has: an agent that comes back after a close is refused.
        self._end.close()
        watched = {self.pid, self._process.pid} if self.profile.sleeps else set()
        self._processes = Processes(pid for pid in watched if Path(f"/proc/{pid}").exists())
        if self.profile.address_kind == "tcp" or self.profile.ports in ("veth", "tap"):
            self._queues = InputQueues(self.pid)
        self._exchange = Exchange(
            self._control,
            self.ports,
            self._processes,
            self._queues,
            self.ended,
            self._pidfd,
            self.profile.settle_ms / 1000,
            None if self._nudge_path is None else functools.partial(nudge, self._nudge_path),
        )

    def reconnect(self, version: int = 0x01) -> bool:
        """A new control channel in place of the one that was, and the handshake. False if that does not come about."""
        if self._meet_again is None or self._control is None or self.ended() is not None:
            return False
        for part in (self._control, self._processes, self._queues):
            if part is not None:
                part.close()
        self._control = self._exchange = self._processes = self._queues = None
        self._deadline = time.monotonic() + self.profile.start_timeout_ms / 1000
        try:
            self._end = self._meet_again(self._deadline)
            with contextlib.closing(self._end):
                self.handshake(version)
        except SoftError:
            return False
        return True

    def _watch(self, pid: int) -> None:
        os.close(self._pidfd)
        self.pid, self._pidfd = pid, os.pidfd_open(pid)

    def _all_ended(self) -> str | None:
        return None if tagged(self.directory) else "ended"

    def _hint(self) -> str:
        if self._all_ended():
            return ""
        return (
            " It left another process behind: if it goes into the background, name the process that stays in the "
            "launch profile's `control_process`."
        )

    def handshake(self, version: int = 0x01) -> bytes:
        """Hello and features, then whatever else the agent has to say until it is quiet. Returns the features reply."""
        self.connect()
        shake = Handshake(version)
        self._say(shake.greeting, shake)
        while not shake.done:
            try:
                self._nudge_until_it_speaks()
                self.control.settimeout(max(0.001, self._deadline - time.monotonic()))
                data = self.control.recv(1 << 16)
            except TimeoutError:
                raise SoftError(
                    f"The agent sent no {shake.waits_for} in {version_name(version)} within "
                    f"{self.profile.start_timeout_ms} ms.{self.last_words()}"
                ) from None
            except OSError:
                data = b""
            if not data:
                raise SoftError(self._left(shake))
            self._say(self._answer(shake, data), shake)
        self.control.settimeout(_SEND_TIMEOUT)
        # Echo requests may come now, even with probes switched off: answer until there is nothing more.
        burst = self.collect(_SEND_TIMEOUT)
        while burst.control and not (burst.closed or burst.flooded or burst.ended):
            self._say(self._answer(shake, bytes(burst.control)), shake)
            burst = self.collect(_SEND_TIMEOUT)
        if burst.ended is not None or burst.closed:
            raise SoftError(self._left(shake))
        if not burst.quiet:
            raise SoftError(f"The agent does not come to rest after the handshake.{self.last_words()}")
        return shake.features

    def _nudge_until_it_speaks(self) -> None:
        """Wait for the next words of an agent that may oversleep ours."""
        if self._nudge_path is None:
            return
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while not poller.poll(_NUDGE_EVERY_MS) and time.monotonic() < self._deadline:
            nudge(self._nudge_path)

    def _answer(self, shake: Handshake, data: bytes) -> bytes:
        try:
            return shake.receive(data)
        except SoftError as error:
            raise SoftError(f"{error}{self.last_words()}") from None

    def _say(self, data: bytes, shake: Handshake) -> None:
        try:
            self.control.sendall(data)
        except OSError:
            raise SoftError(self._left(shake)) from None

    def _left(self, shake: Handshake) -> str:
        """The sentence for an agent that goes away during the handshake."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        when = "after the handshake" if shake.done else f"while its {shake.waits_for} was awaited"
        what = f"ended ({self.ended()})" if self.ended() is not None else "closed the control channel"
        return f"The agent {what} {when}.{self.last_words()}"

    def send(self, data: bytes) -> None:
        """Bytes from the controller. OSError if the agent has closed the channel or does not read."""
        self.control.settimeout(_SEND_TIMEOUT)
        self.control.sendall(data)

    def stop_clock(self) -> bool:
        """Have the agent's clock stand still, and move it from now on. False if that is not possible."""
        self._is_stopped = self._clock is not None and self._clock.stop(self.pid)
        if self._is_stopped:
            take_turns(self.pid)
        return self._is_stopped

    @property
    def time(self) -> str:
        """How time passes for the agent: as `real time`, or by a `moved clock`."""
        return MOVED_CLOCK if self._is_stopped and self._clock is not None and self._clock.movable else REAL_TIME

    def collect(self, limit: float, at_least: float = 0.0) -> Burst:
        """Everything that the agent sends until it is quiet; see Exchange.collect.

        With a moved clock `at_least` passes for the agent only.
        """
        if self._exchange is None:
            raise SoftError("The agent has no control channel yet.")
        if self._clock is None or not at_least or self.time == REAL_TIME:
            return self._exchange.collect(limit, at_least)
        return self._let_pass(self._exchange, self._clock, limit, at_least)

    def _let_pass(self, exchange: Exchange, clock: AgentClock, limit: float, seconds: float) -> Burst:
        """Move the clock from one deadline of the agent to the next, and let it do each time what it does then."""
        end = clock.now + round(seconds * 1_000_000_000)
        burst = exchange.collect(limit)
        while burst.goes_on and (due := clock.next_deadline()) is not None and due <= end:
            clock.move(due)
            burst.add(exchange.collect(limit, settle=self.profile.settle_ms / 1000 * _TICK_SETTLES, still=True))
        if burst.goes_on:
            clock.move(end)
            burst.add(exchange.collect(limit))
        return burst

    def has_read_everything(self) -> bool:
        """Nothing that was sent to the agent waits to be read, as far as the kernel tells."""
        return self._exchange is not None and self._exchange.everything_read()

    def close(self) -> None:
        for part in (self._control, self._processes, self._queues, self._clock):
            if part is not None:
                part.close()
        os.close(self._pidfd)


@contextlib.contextmanager
def start(
    profile: Profile,
    binary: Path,
    ports: int = 4,
    workdir: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    before_main: Callable[[int], None] | None = None,
    movable_clock: bool = False,
    nudging: bool = False,
) -> Iterator[Agent]:
    """Run an agent for the length of the block. Afterwards nothing of it is left, however the block ends.

    `workdir` is an empty directory to use instead of a private one, and is then the caller's to remove. `environment`
    adds variables. `before_main(pid)` is called while the process stands at its first instruction, traced by us.
    With `movable_clock`, the agent's clock can be stopped later, if that is possible at all (see soft.launch.clock).
    With `nudging`, an agent that would read its channel in its own time does so at once, and the handshake then ends
    somewhere in its rounds: for an agent that is frozen, or plays a scenario that waits, that would be chance.
    """
    if not 0 <= ports <= MAX_PORTS:
        raise SoftError(f"An agent has 0 to {MAX_PORTS} ports, not {ports}.")
    deadline = time.monotonic() + profile.start_timeout_ms / 1000
    with contextlib.ExitStack() as stack:
        directory = workdir if workdir is not None else _private_directory(stack)
        ending = _Ending(directory)
        stack.callback(ending.finish)
        preload = library() if movable_clock else None
        clock = AgentClock(directory, preload) if preload is not None else None
        agent = _launch(
            profile, binary, ports, directory, environment or {}, before_main, clock, nudging, deadline, stack, ending
        )  # fmt: skip
        ending.complete = True
        yield agent


class _Ending:
    """What has to be killed at the end. All processes are searched only where something may have got away."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self.complete = False
        """The start went through: every process we made is known."""
        self.has_helpers = False

    def finish(self) -> None:
        with uninterrupted():
            search = self.has_helpers or not self.complete
            if self.process is not None:
                ended_itself = self.process.poll() is not None and self.process.returncode >= 0
                search = search or ended_itself or has_children(self.process.pid)
                end_session(self.process)
            if search:
                end_tagged(self._directory)


def _private_directory(stack: contextlib.ExitStack) -> Path:
    where = tempfile.gettempdir()
    with uninterrupted():
        path = Path(tempfile.mkdtemp(prefix="soft-", dir=where if len(where) < _LONGEST_DIRECTORY - 14 else "/tmp"))
        stack.callback(shutil.rmtree, path, ignore_errors=True)
    return path


def _launch(
    profile: Profile,
    binary: Path,
    count: int,
    directory: Path,
    environment: Mapping[str, str],
    before_main: Callable[[int], None] | None,
    clock: AgentClock | None,
    nudging: bool,
    deadline: float,
    stack: contextlib.ExitStack,
    ending: _Ending,
) -> Agent:
    namespace = stack.enter_context(Namespace()) if profile.needs_namespace else None
    numbers = range(1, count + 1) if profile.ports != "none" else ()
    plans = [PortPlan(number, profile.ports, directory) for number in numbers]
    ports = _open_ports(plans, namespace)
    for port in ports:
        stack.callback(port.close)
    places = {"dir": str(directory), "here": str(profile.directory.absolute()), "binary": str(binary)}
    address = fill(profile.address, places)
    end = ControlEnd(profile.connection, address, directory, namespace)
    stack.callback(end.close)
    values = {**places, **end.placeholders(), **{f"port{plan.number}": plan.spec for plan in plans}}
    settings = {key: fill(text, values) for key, text in profile.environment.items()}
    for name, text in profile.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(text, values))
    helpers = Helpers(
        profile,
        values,
        [plan.placeholders() for plan in plans],
        directory,
        {**base_environment(), **settings, **environment},
        namespace.entry() if namespace is not None else None,
        deadline,
    )
    ending.has_helpers = bool(profile.before or profile.after_start or profile.control_process)
    helpers.run(commands_of(profile.before))
    ending.process = process = helpers.start(
        profile.command, "agent.log", before_main, clock.environment if clock is not None else None
    )
    if profile.ready is not None:
        helpers.await_ready(profile.ready, process, "agent.log", "The agent")
    helpers.run(commands_of(profile.after_start))
    for port in ports:
        port.attach(max(0.1, deadline - time.monotonic()))
    numbered = {port.number: port for port in ports}
    meet_again = meeting(profile, end, address, directory, namespace, helpers)
    agent = Agent(profile, directory, process, numbered, end, deadline, clock, meet_again, nudging)
    stack.callback(agent.close)
    return agent


def _open_ports(plans: list[PortPlan], namespace: Namespace | None) -> list[Port]:
    made = namespace.prepare(plans) if namespace is not None else []
    if made or not plans:
        return made
    kinds: dict[str, Callable[[PortPlan], Port]] = {
        "unix-datagram": UnixDatagramPort,
        "ovs-dummy": LengthPrefixedPort,
    }
    if plans[0].kind in kinds:
        return [kinds[plans[0].kind](plan) for plan in plans]
    raise SoftError(f"Ports of kind {plans[0].kind} need a network namespace; the profile must not forbid it.")


def _control_pid(name: str, directory: Path, deadline: float) -> int:
    """The process of this command name among all that the agent has become.

    Of several, one that none of the others is a child of: a daemon's parents may not be quite gone.
    """
    while True:
        named: dict[int, int] = {}
        for pid in tagged(directory):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().rstrip("\n") == name[:15]:
                    named[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        for pid in named:
            if pid not in named.values():
                return pid
        if time.monotonic() > deadline:
            raise SoftError(f"None of the agent's processes is called {name}.{last_words(directory / 'agent.log')}")
        time.sleep(0.01)
