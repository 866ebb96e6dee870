"""Positions in the user's source, and warnings there."""

from __future__ import annotations

from functools import lru_cache

from shardcore import files
from shardcore.errors import Diagnostic, Place

LARGE_BYTES = 64 << 20
"""A value with at least this many bytes on a device counts as large."""

_MAX_SOURCE_BYTES = 1 << 22


def warning(code: str, message: str, hint: str, value: str | None, at: str | None) -> Diagnostic:
    """Return a warning about ``value`` at the location ``at``, ``file:line:column``."""
    filename, place = _place(at)
    found = Diagnostic(code, message, hint, filename, place, severity="warning", value=value)
    return found._replace(location=at or None)


def _place(at: str | None) -> tuple[str | None, Place | None]:
    """The file and the position of a location; no position if it has none."""
    parts = (at or "").rsplit(":", 2)
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
        return at or None, None
    filename, line, column = parts[0], int(parts[1]), int(parts[2])
    # Python counts columns from 0, and so do locations that JAX makes of its stack frames.
    column += filename.endswith(".py")
    lines = _lines(filename)
    if not 0 < line <= len(lines) or not 0 < column <= len(lines[line - 1]):
        return at, None
    text = lines[line - 1]
    return filename, Place(line, column, _end(text, column), text)


def _end(text: str, column: int) -> int:
    """The column after the name that starts at ``column``."""
    end = column - 1
    while end < len(text) and (text[end].isalnum() or text[end] in "_."):
        end += 1
    return max(end + 1, column + 1)


@lru_cache(maxsize=64)
def _lines(filename: str) -> tuple[str, ...]:
    """The lines of a source file; empty if it is missing, or no text."""
    try:
        if not files.is_regular(filename):
            return ()
        text = files.read(filename, _MAX_SOURCE_BYTES).decode()
    except (OSError, UnicodeDecodeError, ValueError):
        return ()
    return tuple(text.split("\n"))
