"""A virtual environment with the lab's half alone, made without the network.

soft is built as a wheel and installed. Its dependencies are taken from the environment that runs the tests: those that
pyproject.toml declares for the lab's half, what they need in turn, and nothing else. So angr is not there, and neither
is anything that soft uses without saying so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "soft", "harness")


def make(place: Path) -> Path:
    """Make the environment below a directory; returns its bin/."""
    home = place / "lab"
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    python = home / "bin" / "python"
    packages = Path(_run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for needed in closure(declared()):
        for entry in top_level(needed):
            target = packages / entry
            if not target.exists():
                target.symlink_to(Path(str(needed.locate_file(entry))))
    _run(
        sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps",
        str(wheel(place)),
    )  # fmt: skip
    return home / "bin"


def wheel(place: Path) -> Path:
    """Build soft's wheel from a copy of the sources, so that nothing of the build stays among them."""
    copy = place / "sources"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    _run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(place / "wheels"), str(copy),
    )  # fmt: skip
    (built,) = (place / "wheels").glob("*.whl")
    return built


def declared() -> list[str]:
    """What pyproject.toml says that the lab's half needs."""
    needed: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return needed


def closure(requirements: list[str]) -> Iterator[Distribution]:
    """The distributions that are meant, and those that they need in turn."""
    pending = [Requirement(text) for text in requirements]
    seen: set[str] = set()
    while pending:
        wanted = pending.pop()
        if wanted.name.lower() in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name.lower())
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            raise AssertionError(f"{wanted.name} is needed, but not installed here") from None
        yield found
        pending += [Requirement(text) for text in found.requires or ()]


def top_level(package: Distribution) -> set[str]:
    """The names that a distribution has in site-packages."""
    names = {file.parts[0] for file in package.files or ()}
    return names - {"..", "__pycache__"}


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
