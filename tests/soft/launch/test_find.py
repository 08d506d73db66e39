"""Which profile and which binary a user means."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from soft.errors import SoftError
from soft.launch.find import find, names_to_list, profile_for, profiles
from soft.launch.profile import read_profile

GOOD = 'command = ["{binary}", "{controller}"]\n'


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with agents of a stranger: build/ with two binaries, a profile for one, a glob for another."""
    agents = tmp_path / "agents"
    (agents / "build").mkdir(parents=True)
    for name in ("switchd", "odd-1", "odd-2"):
        shutil.copy("/bin/true", agents / "build" / name)
    (agents / "switchd.toml").write_text(GOOD)
    (agents / "odd.toml").write_text('names = ["odd-*"]\n' + GOOD)
    monkeypatch.chdir(tmp_path)
    return agents


def test_by_name(tree: Path) -> None:
    target = find("switchd")
    assert (target.label, target.binary) == ("switchd", tree / "build" / "switchd")
    assert find("odd-2").binary == tree / "build" / "odd-2"


def test_by_path_the_profile_is_beside_it_or_one_directory_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    target = find(str(tree / "build" / "odd-1"))
    assert target.profile.source == str(tree / "odd.toml")


def test_with_a_profile_of_another_name(tree: Path) -> None:
    shutil.copy("/bin/true", tree / "build" / "unknown")
    with pytest.raises(SoftError, match="no launch profile for unknown"):
        find("agents/build/unknown")
    assert find("agents/build/unknown", "switchd").profile.name == "switchd"
    assert find("agents/build/unknown", "agents/switchd.toml").profile.name == "switchd"


def test_a_binary_in_the_path_serves_too(tree: Path) -> None:
    (tree / "true.toml").write_text(GOOD)
    assert find("true").binary.name == "true"


@pytest.mark.parametrize(
    ("agent", "profile", "sentence"),
    [
        ("switchdd", None, "Did you mean switchd?"),
        ("zzz", None, "`soft agents` lists the known ones"),
        ("agents/build/none", None, "There is no agent binary agents/build/none"),
        ("agents/build", None, "is a directory, not an agent binary"),
        ("agents/switchd.toml", None, "is not executable"),
        ("switchd", "agents/none.toml", "Cannot read the launch profile"),
        ("switchd", "nosuch", "There is no launch profile for nosuch"),
        ("absent", None, "The binary absent was found neither beside its launch profile"),
    ],
)
def test_errors_say_what_to_do(tree: Path, agent: str, profile: str | None, sentence: str) -> None:
    (tree / "absent.toml").write_text(GOOD)
    with pytest.raises(SoftError) as caught:
        find(agent, profile)
    assert sentence in str(caught.value)


def test_a_broken_profile_is_in_nobodys_way_but_its_own(tree: Path) -> None:
    (tree / "aaa.toml").write_text("command = 1")
    assert find("switchd").label == "switchd"
    with pytest.raises(SoftError, match=r"aaa\.toml"):
        find("aaa")
    with pytest.raises(SoftError, match=r"No launch profile serves zzz, and one could not be read: .*aaa\.toml"):
        find("zzz")


def test_a_glob_is_listed_as_the_binaries_it_matches(tree: Path) -> None:
    profile = read_profile(tree / "odd.toml")
    assert names_to_list(profile) == ["odd-1", "odd-2"]
    (tree / "new.toml").write_text('names = ["new-*"]\n' + GOOD)
    assert names_to_list(read_profile(tree / "new.toml")) == ["new-*"]


def test_a_profile_without_its_binary(tree: Path) -> None:
    (tree / "absent.toml").write_text(GOOD)
    assert profile_for("absent").source.endswith("absent.toml")
    assert profile_for("agents/build/odd-1").names == ("odd-*",)


def test_our_own_profiles_are_found_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert {"reference", "vswitch", "modified", "figure1", "ovs-vswitchd"} <= {path.stem for path in profiles()}
