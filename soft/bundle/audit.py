"""What leaves the house with a bundle: every string in it, every byte sequence that reads like text or an address.

A bundle describes behaviour at the agent's interfaces. It must not hold addresses, symbols, strings or paths of the
agent or of the machine that explored it. `audit` lists all that a person has to look at; `leaks` compares with the
binary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from soft.bundle import files
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.errors import SoftError
from soft.openflow.normalise import RULES
from soft.solve.terms import Term
from soft.solve.walk import post_order
from soft.trace import Crash, Message, Packet, Trace

# Shorter runs of printable characters are in every file by chance.
SHORTEST_TEXT = 6
_TEXT = re.compile(rb"[\x20-\x7e]{%d,}" % SHORTEST_TEXT)
# Eight bytes of a pointer into a program, its heap, a library or a stack on 64-bit Linux, in either byte order.
_POINTER = re.compile(rb"(?s:.{5}[\x55\x56\x7f]\x00\x00|\x00\x00[\x55\x56\x7f].{5})")
# The words of the format itself: they are in every bundle, whatever the agent.
_FORMAT = """agent complete conditions counts crashes digest format limits manifest normalisation outputs paths reasons
scenario statistics event message packet crash close hang flood length payload port reason step marks trace witness
inputs and their domain, sub-terms (t), conditions (c) set-logic QF_BV declare-const define-fun assert BitVec Bool
extract concat sign_extend bvadd bvsub bvmul bvudiv bvurem bvsdiv bvsrem bvand bvor bvxor bvnot bvneg bvshl bvlshr
bvashr bvult bvule bvslt bvsle seconds paths_per_second blocks blocks_per_second queries kept coverage covered_blocks
jobs"""


@dataclass(frozen=True, slots=True)
class Audit:
    """All that a bundle tells. Every list is complete; strings are as they stand in the files."""

    files: dict[str, int]  # name → bytes
    strangers: tuple[str, ...]  # what lies in the directory and is no part of the bundle
    manifest: dict[str, str]
    statistics: dict[str, float]
    fields: dict[str, int]  # input variable → bits
    marks: dict[str, int]  # mark → paths that have it
    crashes: dict[str, int]  # reason → traces
    texts: dict[str, int]  # readable text in bytes that the agent sent → traces
    addresses: tuple[str, ...]  # constants and bytes that look like addresses


@dataclass(frozen=True, slots=True)
class Leak:
    """A string or symbol of the binary that also stands in the bundle."""

    text: str
    file: str


def audit(path: str | Path) -> Audit:
    """Everything in the bundle at `path` that a person should see before it is given away."""
    path = Path(path)
    bundle = read(path)
    manifest = bundle.manifest
    texts: Counter[str] = Counter()
    for trace in bundle.traces:
        texts.update({text for data in _sent(trace) for text in _texts(data)})
    return Audit(
        files=_sizes(path),
        strangers=tuple(sorted(p.name for p in path.iterdir() if p.name not in files.NAMES)) if path.is_dir() else (),
        manifest={
            "scenario": manifest.scenario,
            "digest": manifest.digest,
            "agent": manifest.agent,
            "tool": manifest.tool,
            "complete": str(manifest.complete).lower(),
            "reasons": "; ".join(manifest.reasons),
            "normalisation": ", ".join(manifest.normalisation),
            "limits": "; ".join(manifest.limits),
        },
        statistics=dict(manifest.statistics),
        fields={variable.name: variable.width for variable in bundle.scenario.variables},
        marks=dict(Counter(mark for path in bundle.paths for mark in path.marks)),
        crashes=dict(Counter(e.reason for trace in bundle.traces for e in trace if isinstance(e, Crash))),
        texts=dict(texts),
        addresses=tuple(_addresses(bundle)),
    )


def leaks(path: str | Path, binary: str | Path) -> list[Leak]:
    """The binary's strings and symbol names (they are strings of its tables) that stand in the bundle.

    What also stands in the scenario, the words of the format and the names of our rules tell nothing about the agent:
    they are left out, and so is its label, which its owner chose.
    """
    bundle = read(path)
    try:
        secrets = {text.decode().strip() for text in _TEXT.findall(Path(binary).read_bytes())}
    except OSError as error:
        raise SoftError(f"{binary}: the file cannot be read ({error.strerror}).") from None
    public = "\n".join((bundle.scenario.text, bundle.manifest.agent, _FORMAT, *RULES))
    found = []
    for name, text in _contents(Path(path), bundle):
        for secret in secrets:
            if secret in text and secret not in public and _whole(secret, text):
                found.append(Leak(secret, name))
    return sorted(found, key=lambda leak: (leak.file, leak.text))


def _contents(path: Path, bundle: Bundle) -> Iterator[tuple[str, str]]:
    """The distinct words and strings of each file, and the text in the bytes that the agent sent."""
    source = files.open_source(path)
    for name in files.NAMES:
        if name != files.SCENARIO:
            words: set[str] = set()
            for _, line in files.lines(source, name):
                text = line.decode()
                # Strings of JSON may have spaces inside; everything else is a word, and numbers tell nothing.
                pattern = r"[A-Za-z_][^\s()]*" if name == files.TERMS else r'"((?:[^"\\]|\\.)*)"'
                words.update(re.findall(pattern, text))
            yield name, "\n".join(sorted(words))
    yield "bytes in traces", "\n".join(sorted({t for trace in bundle.traces for d in _sent(trace) for t in _texts(d)}))


def _whole(word: str, text: str) -> bool:
    """Whether a word stands in a text by itself, not as a part of a longer word."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None


def _sizes(path: Path) -> dict[str, int]:
    if path.is_file():
        return {path.name: path.stat().st_size}
    return {name: (path / name).stat().st_size for name in files.NAMES}


def _sent(trace: Trace) -> Iterator[bytes]:
    for event in trace:
        if isinstance(event, Message | Packet):
            yield from (piece for piece in event.payload.pieces if isinstance(piece, bytes))


def _texts(data: bytes) -> list[str]:
    return [text.decode() for text in _TEXT.findall(data)]


def _addresses(bundle: Bundle) -> Iterator[str]:
    for term in sorted({t.args[0] for t in post_order(_roots(bundle)) if t.op == "const" and t.width == 64}):
        if 0x5500_0000_0000 <= term < 0x5700_0000_0000 or 0x7F00_0000_0000 <= term < 0x8000_0000_0000:
            yield f"{term:#x} in a term"
    for number, trace in enumerate(bundle.traces):
        for data in _sent(trace):
            for match in _POINTER.finditer(data):
                yield f"{match.group().hex()} in the bytes of trace {number}"


def _roots(bundle: Bundle) -> Iterable[Term]:
    yield from bundle.conditions
    for trace in bundle.traces:
        for event in trace:
            if isinstance(event, Message | Packet):
                yield from (piece for piece in event.payload.pieces if isinstance(piece, Term))
                if event.payload.length is not None:
                    yield event.payload.length
