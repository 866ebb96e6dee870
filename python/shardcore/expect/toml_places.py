"""Finds the positions of keys and values in a TOML text, which Python's TOML parser does not give.

The text has been parsed by ``tomllib`` before, so it is valid TOML. A path consists of the keys
that lead to a value, and indices into arrays: ``("collectives", "forbid", 1)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Path = tuple["str | int", ...]
Span = tuple[int, int]

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass
class Places:
    """Spans of a TOML text, in characters from 0."""

    text: str
    keys: dict[Path, Span] = field(default_factory=dict)
    """The last part of the key that leads to each value or table."""
    values: dict[Path, Span] = field(default_factory=dict)
    """The span of each value: a string with its quotes, an array with its brackets."""

    def best(self, path: Path) -> Span | None:
        """The span of the value at ``path``, else of its key, else of the enclosing table."""
        while path:
            if path in self.values:
                return self.values[path]
            if path in self.keys:
                return self.keys[path]
            path = path[:-1]
        return None


def places(text: str) -> Places:
    """Return the positions of the keys and values of ``text``, which is valid TOML."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found = Places(text)
        self.numbers: dict[Path, int] = {}
        """The index of the last item of each array of tables."""

    def document(self) -> None:
        table: Path = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.key(())
                number = self.numbers.get(table, -1) + 1
                self.numbers[table] = number
                table = (*table, number)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.key(())
                self.at += 1
            else:
                self.pair(table)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def key(self, path: Path) -> Path:
        """Read ``a."b".c`` and record the position of each part."""
        while True:
            self.skip(_SPACE)
            start = self.at
            is_quoted = self.text[start] in "\"'"
            part = self.skip(_STRING if is_quoted else _BARE_KEY)
            path = (*path, _unquoted(part) if is_quoted else part)
            self.found.keys.setdefault(path, (start, self.at))
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return path
            self.at += 1
            if path in self.numbers:
                path = (*path, self.numbers[path])

    def pair(self, table: Path) -> None:
        path = self.key(table)
        self.at += 1
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: Path) -> None:
        start = self.at
        first = self.text[start]
        if first in "\"'":
            self.skip(_STRING)
        elif first == "[":
            self.items(path, "]", in_table=False)
        elif first == "{":
            self.items(path, "}", in_table=True)
        else:
            self.at = start + len(self.skip(_BARE_VALUE).rstrip())
        self.found.values[path] = (start, self.at)

    def items(self, path: Path, end: str, *, in_table: bool) -> None:
        """Read an array or an inline table up to its ``end``."""
        self.at += 1
        number = 0
        while True:
            self.skip(_BLANK)
            if self.text[self.at] == end:
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
                number += 1
            elif in_table:
                self.pair(path)
            else:
                self.value((*path, number))


def _unquoted(key: str) -> str:
    """The key that a quoted key denotes."""
    if key.startswith("'"):
        return key[1:-1]

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(replace, key[1:-1])
