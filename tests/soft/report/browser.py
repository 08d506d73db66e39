"""A page in headless Chromium: its document after the script has run, its console, and a picture of it."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a page: its document, and what it wrote to the console."""

    document: str
    console: tuple[str, ...]


def open_page(page: Path, *flags: str, fragment: str = "") -> Seen:
    """Open a page and wait until its script has nothing more to do."""
    done = _chromium(page, fragment, "--virtual-time-budget=10000", "--dump-dom", *flags)
    console = re.findall(r"CONSOLE[^\"]*\"(.*)\", source", done.stderr)
    return Seen(done.stdout, tuple(console))


def screenshot(page: Path, *flags: str, size: tuple[int, int] = (900, 700)) -> list[bytes]:
    """The rows of a page's picture, three bytes a pixel."""
    with tempfile.TemporaryDirectory(prefix="soft-shot-") as directory:
        file = Path(directory) / "shot.png"
        _chromium(page, "", f"--screenshot={file}", f"--window-size={size[0]},{size[1]}", *flags)
        return pixels(file.read_bytes())


def _chromium(page: Path, fragment: str, *flags: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="soft-chromium-", ignore_cleanup_errors=True) as profile:
        command = ["chromium", *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri() + fragment]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def pixels(png: bytes) -> list[bytes]:
    """The rows of a PNG file with 8 bits a channel, without their alpha."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    channels = {2: 3, 6: 4}[kind]
    data, place = b"", 8
    while place < len(png):
        (size,), name = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        data += png[place + 8 : place + 8 + size] if name == b"IDAT" else b""
        place += size + 12
    raw, stride = zlib.decompress(data), width * channels
    rows: list[bytes] = []
    above = bytearray(stride)
    for number in range(height):
        start = number * (stride + 1)
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        rows.append(bytes(above) if channels == 3 else bytes(b for i, b in enumerate(above) if i % 4 < 3))
    return rows


def _unfiltered(kind: int, row: bytearray, above: bytearray, step: int) -> bytearray:
    """One row from what a PNG file says about it: differences to its neighbours."""
    for i in range(len(row)) if kind else ():
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = above[i]
        elif kind == 3:
            guess = (left + above[i]) // 2
        else:
            guess = min((left, above[i], corner), key=lambda v, p=left + above[i] - corner: abs(p - v))  # type: ignore[misc]
        row[i] = (row[i] + guess) & 0xFF
    return row
