"""Launch profiles: how to start one kind of agent, as a TOML file. Reading one never runs anything."""

from __future__ import annotations

import difflib
import fnmatch
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from soft.errors import SoftError
from soft.launch.placeholders import PORT_PLACEHOLDERS, allowed_placeholders, placeholders_in

# A profile is written by hand; anything longer is not one.
MAX_PROFILE_BYTES = 256 * 1024


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to tell that a process is ready; exactly one of these."""

    file: str | None = None
    """A file exists."""
    socket: str | None = None
    """A UNIX socket accepts a connection."""
    output: str | None = None
    """This text has appeared on the process's standard output or error."""


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A command that the agent needs: run to its end, or kept running in the background beside the agent."""

    command: tuple[str, ...]
    background: bool = False
    ready: Ready | None = None


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to start an agent, where its control channel is, and how its data-plane ports are made."""

    command: tuple[str, ...]
    """The agent's command line; {binary}, {controller}, {ports} and the other placeholders are filled in."""
    name: str | None = None
    names: tuple[str, ...] = ()
    """Further names or globs such as `modified-*` that this profile serves."""
    summary: str = ""
    binary: str | None = None
    """The binary, if its file name is not the profile's name: found beside the profile, in its build/, or in PATH."""
    connection: Literal["connect", "listen"] = "connect"
    """The agent connects to the controller, or listens for it."""
    address: str = "tcp"
    """`tcp`, `tcp:PORT`, `unix` or `unix:PATH`: where the controller and the agent meet."""
    ports: Literal["unix-datagram", "veth", "tap", "tap-device", "ovs-dummy", "none"] = "veth"
    """What the agent works on: UNIX datagram sockets, interfaces (veth or tap), tap devices that it opens itself, Open
    vSwitch's dummy ports, or nothing."""
    port_argument: tuple[str, ...] = ("{spec}",)
    """What {ports} becomes, once for every port."""
    namespace: bool | None = None
    """A private network namespace; by default only where the ports are interfaces."""
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    """Files to write before anything runs: path (below {dir}) and content."""
    before: tuple[Command | tuple[str, ...], ...] = ()
    after_start: tuple[Command | tuple[str, ...], ...] = ()
    reconnect: tuple[Command | tuple[str, ...], ...] | None = None
    """Commands after which a running agent meets its controller anew, at another {controller} if it is the one that
    connects. Empty if none are needed; without this key an agent whose channel is closed is started again."""
    ready: Ready | None = None
    """By default an agent is ready when the control channel is there."""
    start_timeout_ms: int = 5000
    settle_ms: int = 20
    """How long the agent must stay asleep and silent before it counts as quiet; 0 suits an agent of one thread that
    answers everything before it sleeps again."""
    sleeps: bool = True
    """False for an agent that polls without ever sleeping: only silence for `settle_ms` tells then that it is quiet."""
    nudge: str | None = None
    """A UNIX socket in {dir} that the agent listens on beside its channel. An agent that sleeps with something unread,
    because it looks at its channel only now and then, is woken by a connection to it."""
    control_process: str | None = None
    """The command name of the process that owns the control channel, if it is not the one started."""
    stub: tuple[str, ...] = ()
    """Functions that `soft explore` replaces by constants, e.g. `hash_bytes=0`; never applied in a native run."""
    source: str = ""
    """The file that this was read from."""

    @property
    def directory(self) -> Path:
        return Path(self.source).parent

    @property
    def all_names(self) -> tuple[str, ...]:
        return ((self.name,) if self.name else ()) + self.names

    @property
    def needs_namespace(self) -> bool:
        return self.ports in ("veth", "tap", "tap-device") if self.namespace is None else self.namespace

    @property
    def address_kind(self) -> Literal["tcp", "unix"]:
        return "unix" if self.address.partition(":")[0] == "unix" else "tcp"

    def serves(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.all_names)


def commands_of(entries: tuple[Command | tuple[str, ...], ...]) -> tuple[Command, ...]:
    """A bare list of arguments is a command run to its end."""
    return tuple(entry if isinstance(entry, Command) else Command(command=entry) for entry in entries)


def read_profile(path: Path) -> Profile:
    """Parse and check a profile. Every error names the file, and the key or the line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SoftError(f"Cannot read the launch profile {path}: {error.strerror}.") from None
    if len(raw) > MAX_PROFILE_BYTES:
        raise SoftError(f"{path} is not a launch profile: it has more than {MAX_PROFILE_BYTES} bytes.")
    return parse_profile(raw, str(path))


def parse_profile(raw: bytes, source: str) -> Profile:
    try:
        table = tomllib.loads(raw.decode())
    except UnicodeDecodeError:
        raise SoftError(f"{source}: a launch profile is UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise SoftError(f"{source}: {error}.") from None
    if unknown := [key for key in table if key not in Profile.__struct_fields__ or key == "source"]:
        raise SoftError(f"{source}: unknown key `{unknown[0]}`{_suggestion(unknown[0], Profile.__struct_fields__)}.")
    table.setdefault("names" if "names" in table else "name", Path(source).stem)
    try:
        profile = msgspec.convert({**table, "source": source}, Profile)
    except msgspec.ValidationError as error:
        raise SoftError(f"{source}: {_plain(str(error))}.") from None
    _check(profile)
    return profile


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{close[0]}`?"[:-1] if close else ""


def _plain(message: str) -> str:
    """msgspec says "... - at `$.before[0]`"; we say "... in `before[0]`"."""
    return re.sub(r" - at `\$\.?(.*)`$", r" in `\1`", message)


def _check(profile: Profile) -> None:
    source = profile.source
    if not profile.all_names:
        raise SoftError(f"{source}: `names` is empty.")
    if not profile.command:
        raise SoftError(f"{source}: `command` is empty.")
    for key in ("start_timeout_ms", "settle_ms"):
        if not 0 <= getattr(profile, key) <= 600_000:
            raise SoftError(f"{source}: `{key}` is in milliseconds, from 0 to 600000.")
    _check_address(profile)
    for where, command in _all_commands(profile):
        if not command.command:
            raise SoftError(f"{source}: `{where}` has an empty command.")
        if command.ready is not None:
            _check_ready(command.ready, where, source)
    for path in profile.files:
        if path.startswith("/") or ".." in Path(path).parts:
            raise SoftError(f"{source}: `files` may only name files below the agent's private directory, not `{path}`.")
    if profile.ready is not None:
        _check_ready(profile.ready, "ready", source)
    for where, text, is_argument in _templates(profile):
        known = allowed_placeholders(profile.connection, profile.address_kind)
        if where.startswith("port_argument"):
            known |= PORT_PLACEHOLDERS[profile.ports]
        for name in placeholders_in(text):
            if name == "ports":
                if not is_argument or text != "{ports}":
                    raise SoftError(f"{source}: {{ports}} in `{where}` must be an argument of its own in a command.")
            elif name not in known and not re.fullmatch(r"port([1-9]|[1-3][0-9]|4[0-8])", name):
                raise SoftError(
                    f"{source}: `{where}` uses the unknown placeholder {{{name}}}; known here are "
                    f"{', '.join('{' + each + '}' for each in sorted(known))}."
                )


def _check_address(profile: Profile) -> None:
    kind, _, rest = profile.address.partition(":")
    good = {"tcp": re.fullmatch(r"([1-9][0-9]{0,4})?", rest), "unix": True}.get(kind)
    if not good or profile.address.endswith(":"):
        raise SoftError(
            f'{profile.source}: `address` is "tcp", "tcp:PORT", "unix" or "unix:PATH", not "{profile.address}".'
        )


def _check_ready(ready: Ready, where: str, source: str) -> None:
    if sum(value is not None for value in (ready.file, ready.socket, ready.output)) != 1:
        raise SoftError(
            f"{source}: `{where}` needs exactly one of `file`, `socket` and `output` to tell that it is ready."
        )


def _all_commands(profile: Profile) -> Iterator[tuple[str, Command]]:
    lists = {"before": profile.before, "after_start": profile.after_start, "reconnect": profile.reconnect}
    for key, entries in lists.items():
        for index, command in enumerate(commands_of(entries or ())):
            yield f"{key}[{index}]", command


def _templates(profile: Profile) -> Iterator[tuple[str, str, bool]]:
    """Every text with placeholders: where it stands, the text, and whether it is one argument of a command."""
    for text in profile.command:
        yield "command", text, True
    for text in profile.port_argument if profile.ports != "none" else ():
        yield "port_argument", text, False
    for where, command in _all_commands(profile):
        for text in command.command:
            yield where, text, True
        if command.ready is not None:
            yield f"{where}.ready", command.ready.file or command.ready.socket or "", False
    if profile.ready is not None:
        yield "ready", profile.ready.file or profile.ready.socket or "", False
    for key, text in profile.environment.items():
        yield f"environment.{key}", text, False
    for key, text in profile.files.items():
        yield f"files.{key}", text, False
    yield "address", profile.address, False
