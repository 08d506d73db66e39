"""Where in a TOML text a key stands: tomllib does not tell, and an error in a scenario must name its line.

The text has been read by tomllib before, so it is well formed: this scanner follows brackets and keys, no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""{1,3}'
    r"|'''.*?'''{1,3}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|\n"
    r"|[\[\]{}=,.]"
    r"|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int
    place: int


def line_of(text: str, path: Path) -> int:
    """The line of a key, or of the nearest one around it; 1 if there is none."""
    found = _Scanner(text).scan()
    for size in range(len(path), 0, -1):
        if path[:size] in found:
            return found[path[:size]]
    return 1


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        word = match.group()
        if not word.startswith("#"):
            yield _Token(word, line, match.start())
        line += word.count("\n")


class _Scanner:
    """One pass over the tokens; `found` has the line of every key and every element of a list."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _Token("\n", text.count("\n") + 1, len(text))]
        self._at = 0
        self._tables: dict[Path, int] = {}  # how often a [[table]] came so far
        self.found: dict[Path, int] = {}

    def scan(self) -> dict[Path, int]:
        base: Path = ()
        try:
            while self._at < len(self._tokens):
                if self._peek() == "\n":
                    self._at += 1
                elif self._peek() == "[":
                    base = self._header()
                else:
                    self._pair(base)
        except (IndexError, RecursionError):
            pass  # nested too deeply, or not well formed: the lines found so far are right
        return self.found

    def _peek(self) -> str:
        return self._tokens[self._at].text

    def _header(self) -> Path:
        """[table] or [[table]]: the path of what follows."""
        first = self._tokens[self._at]
        self._at += 1
        second = self._tokens[self._at]
        repeated = second.text == "[" and second.place == first.place + 1
        if repeated:
            self._at += 1
        keys = self._keys("]")
        if repeated:
            self._at += 1
        path: Path = ()
        for index, key in enumerate(keys):
            path = (*path, key)
            self.found.setdefault(path, first.line)
            if repeated and index == len(keys) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            if path in self._tables:
                path = (*path, self._tables[path])
        self.found.setdefault(path, first.line)
        return path

    def _keys(self, end: str) -> list[str]:
        """The parts of a dotted key, up to and with the token that ends it."""
        keys = []
        while self._peek() != end:
            if self._peek() != ".":
                keys.append(self._peek().strip("\"'"))
            self._at += 1
        self._at += 1
        return keys

    def _pair(self, base: Path) -> None:
        line = self._tokens[self._at].line
        for key in self._keys("="):
            base = (*base, key)
            self.found.setdefault(base, line)
        self._value(base)

    def _value(self, path: Path) -> None:
        opening = self._peek()
        if opening not in ("[", "{"):
            self._at += 1
            while self._peek() not in ("\n", ",", "]", "}"):
                self._at += 1
            return
        closing = "]" if opening == "[" else "}"
        self._at += 1
        index = 0
        while self._peek() != closing:
            if self._peek() in ("\n", ","):
                self._at += 1
            elif opening == "{":
                self._pair(path)
            else:
                self.found[(*path, index)] = self._tokens[self._at].line
                self._value((*path, index))
                index += 1
        self._at += 1
