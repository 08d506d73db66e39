"""A launch profile is checked before anything runs; every error names the file and the key."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.launch.profile import MAX_PROFILE_BYTES, Command, commands_of, parse_profile, read_profile

AGENTS = Path(__file__).resolve().parents[3] / "agents"
GOOD = 'command = ["{binary}", "{controller}", "{ports}"]\n'


@pytest.mark.parametrize("path", sorted(AGENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_our_own_profiles_are_good(path: Path) -> None:
    profile = read_profile(path)
    assert profile.summary
    assert profile.all_names


def test_a_profile_of_one_line() -> None:
    profile = parse_profile(GOOD.encode(), "dir/mine.toml")
    assert profile.all_names == ("mine",)
    assert (profile.connection, profile.address_kind, profile.ports) == ("connect", "tcp", "veth")
    assert profile.needs_namespace
    assert profile.directory == Path("dir")


def test_a_glob_serves_many_names() -> None:
    profile = parse_profile(('names = ["modified-*"]\n' + GOOD).encode(), "modified.toml")
    assert profile.serves("modified-07")
    assert not profile.serves("modified")
    assert not profile.serves("reference")


def test_a_bare_list_is_a_command_run_to_its_end() -> None:
    text = GOOD + 'before = [["true"], { command = ["server"], background = true, ready = { file = "x" } }]\n'
    first, second = commands_of(parse_profile(text.encode(), "p.toml").before)
    assert first == Command(command=("true",))
    assert second.background


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "missing required field `command`"),
        ("command = []", "`command` is empty"),
        ("command = 7", "Expected `array`"),
        (GOOD + "conection = 'listen'", "unknown key `conection`; did you mean `connection`"),
        (GOOD + "source = 'x'", "unknown key `source`"),
        (GOOD + "connection = 'both'", "Invalid enum value 'both' in `connection`"),
        (GOOD + "ports = 'vethh'", "Invalid enum value 'vethh' in `ports`"),
        (GOOD + "address = 'udp'", '`address` is "tcp"'),
        (GOOD + "address = 'tcp:'", '`address` is "tcp"'),
        (GOOD + "address = 'tcp:123456'", '`address` is "tcp"'),
        (GOOD + "settle_ms = -1", "`settle_ms` is in milliseconds"),
        (GOOD + "settle_ms = 'soon'", "Expected `int`, got `str` in `settle_ms`"),
        (GOOD + "start_timeout_ms = 10000000", "`start_timeout_ms` is in milliseconds"),
        (GOOD + "names = []", "`names` is empty"),
        (GOOD + "before = [[]]", "`before[0]` has an empty command"),
        (GOOD + "ready = {}", "`ready` needs exactly one of"),
        (GOOD + "ready = { file = 'a', output = 'b' }", "`ready` needs exactly one of"),
        (GOOD + "ready = { fil = 'a' }", "unknown field `fil` in `ready`"),
        (GOOD + "files = { '/etc/passwd' = 'x' }", "below the agent's private directory, not `/etc/passwd`"),
        (GOOD + "files = { '../x' = 'x' }", "below the agent's private directory, not `../x`"),
        ("command = ['{binary}', '{contoller}']", "`command` uses the unknown placeholder {contoller}"),
        ("command = ['{binary}', '{listen}']", "unknown placeholder {listen}"),
        ("command = ['{binary}', 'x{ports}']", "{ports} in `command` must be an argument of its own"),
        (GOOD + "environment = { A = '{nothing}' }", "`environment.A` uses the unknown placeholder {nothing}"),
        (GOOD + "port_argument = ['{own_path}']", "`port_argument` uses the unknown placeholder {own_path}"),
        (GOOD + "[broken", "Expected ']'"),
    ],
)
def test_errors_name_the_key(text: str, sentence: str) -> None:
    with pytest.raises(SoftError) as caught:
        parse_profile(text.encode(), "bad.toml")
    message = str(caught.value)
    assert message.startswith("bad.toml: ")
    assert sentence in message
    assert "\n" not in message


def test_placeholders_of_ports_and_literal_braces() -> None:
    text = "command = ['{binary}', '{port1}', '{port48}', '{{dir}}', '{not a placeholder}']"
    parse_profile(text.encode(), "p.toml")
    with pytest.raises(SoftError, match="port49"):
        parse_profile(b"command = ['{port49}']", "p.toml")


def test_a_profile_without_ports_needs_no_port_argument() -> None:
    assert not parse_profile((GOOD + "ports = 'none'").encode(), "p.toml").needs_namespace


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SoftError, match="Cannot read the launch profile"):
        read_profile(tmp_path / "missing.toml")
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (MAX_PROFILE_BYTES + 1))
    with pytest.raises(SoftError, match="is not a launch profile"):
        read_profile(large)
    with pytest.raises(SoftError, match="UTF-8"):
        parse_profile(b"\xff", "p.toml")


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: (GOOD + text).encode()))
def test_any_bytes_are_a_profile_or_a_sentence(raw: bytes) -> None:
    with contextlib.suppress(SoftError):
        assert parse_profile(raw, "any.toml").command
