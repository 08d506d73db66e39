"""The project itself: what the README says works, the Makefile has its targets, and the tree is clean."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# ---------------------------------------------------------------------------------------------- the README

# A fenced block: its language, and its lines.
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run: times, rates, how many questions a solver is asked; and what a compiler makes of it.
_VARIES = re.compile(r"[\d,.]+(?:%| (?:s|paths/s|blocks/s|solver queries|queries)\b)")


def test_every_command_of_the_readme_works_as_written(tmp_path: Path) -> None:
    """All commands in order, in a directory that looks like a clone; what is printed is what the README shows."""
    for name in ("Makefile", ".ci", "agents", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    printed = ""
    for language, text in _BLOCK.findall(README):
        if language == "sh":
            printed = _shell(text, tmp_path)
        else:
            assert _shown(text) == [line for line in _shown(printed) if line in _shown(text)]


def _shell(commands: str, place: Path) -> str:
    """Run commands; status 1 says that something differs, and only a higher one that a command did not work."""
    script = f"trap '[ $? -le 1 ] || exit 99' ERR\nPATH={Path(sys.prefix) / 'bin'}:$PATH\n{commands}"
    done = subprocess.run(["bash", "-c", script], cwd=place, capture_output=True, text=True)
    assert done.returncode <= 1, f"{commands}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def _shown(text: str) -> list[str]:
    return [_VARIES.sub("N", line) for line in text.splitlines() if line.strip()]


def test_the_tree_in_the_readme_is_the_tree() -> None:
    tree = README.partition("## Where to look in the code")[2]
    folder = ROOT
    seen = 0
    for indent, name in re.findall(r"^    ( *)([a-z_]+(?:/|\.py))  ", tree, re.MULTILINE):
        if not indent:
            folder = ROOT
        assert (folder / name).exists(), name
        if not indent:
            folder = ROOT / name
        seen += 1
    assert seen >= 19


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_key_of_a_launch_profile_is_described() -> None:
    from soft.launch.profile import Profile

    described = README.partition("## Test your own switch")[2]
    for key in set(Profile.__struct_fields__) - {"source", "name"}:
        assert f"`{key}`" in described, key


# ---------------------------------------------------------------------------------------------- make


def test_make_has_a_target_for_every_habit() -> None:
    listed = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "lint", "bench", "results", "agents", "clean", "env", "system"):
        assert f"make {target} " in listed


def test_make_test_lints_and_tests() -> None:
    steps = subprocess.run(["make", "-n", "-C", str(ROOT), "test"], capture_output=True, text=True, check=True).stdout
    order = [steps.index(step) for step in (".ci/system", "ruff check", "bin/mypy", "bin/pytest")]
    assert order == sorted(order)


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    done = _system(tmp_path, "sh:nothing", "no_such_command:no-such-package")
    assert "sh" not in done.stderr.split(".")[0].split()
    assert done.returncode == 1


def test_without_apt_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    done = _system(tmp_path, "no_such_command:some-package,another")
    assert done.returncode == 1
    assert done.stderr == (
        "Missing here: no_such_command. There is no apt-get on this machine. Install them yourself "
        "(on Debian: apt-get install some-package another), then run make again.\n"
    )


def test_nothing_is_said_if_nothing_is_missing(tmp_path: Path) -> None:
    done = _system(tmp_path, "sh:nothing")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _system(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """.ci/system on a machine that has little more than a shell."""
    for tool in ("sh", "tr", "id"):
        found = shutil.which(tool)
        assert found is not None
        (place / tool).symlink_to(found)
    return subprocess.run(
        ["sh", str(ROOT / ".ci" / "system"), *arguments], env={"PATH": str(place)}, capture_output=True, text=True
    )


# ---------------------------------------------------------------------------------------------- the package


def test_every_dependency_has_an_exact_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = sum(project["optional-dependencies"].values(), project["dependencies"])
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {_canonical(line.partition("==")[0]) for line in lines if "==" in line}
    assert {_canonical(re.split(r"[<>=!~\[]", name)[0]) for name in needed} <= pinned


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_command_line_imports_nothing_heavy() -> None:
    """`soft --help` answers in well under half a second."""
    heavy = ("angr", "bitwuzla", "claripy", "harness", "msgspec", "numpy", "os_ken", "pyvex", "scapy", "tqdm", "z3")
    check = f"import sys, soft.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


# ---------------------------------------------------------------------------------------------- the tree


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in os.fsdecode(listed).split("\0") if name and (ROOT / name).is_file()]


def test_no_path_of_a_machine_and_no_registry_is_written_down() -> None:
    # Homes and work directories of whoever wrote it; hosts that packages came from.
    machine = re.compile(rb"(?<![\w.])/(?:home|root|work|Users)/\w|pypi\.org|pythonhosted\.org|[a-z]+\.docker\.io")
    for name in tracked():
        found = machine.search((ROOT / name).read_bytes())
        if name != Path(__file__).relative_to(ROOT).as_posix():
            assert found is None, f"{name}: {found}"


@pytest.mark.parametrize("place", ["results/switchd/packet_out/manifest.json", "findings/findings.json", "demo/a/b"])
def test_what_users_make_is_not_for_git(place: str) -> None:
    assert subprocess.run(["git", "check-ignore", "-q", place], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("place", ["results/exploration.md", "results/samples/reference/packet_out.soft"])
def test_what_we_keep_is(place: str) -> None:
    assert subprocess.run(["git", "check-ignore", "-q", place], cwd=ROOT).returncode == 1


def test_committed_files_are_small() -> None:
    sizes = {name: (ROOT / name).stat().st_size for name in tracked()}
    assert sum(size for name, size in sizes.items() if name.startswith("results/samples/")) < 2_000_000
    assert max(sizes.values()) < 1_000_000
