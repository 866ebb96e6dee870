"""Mistakes in expectations: all of them are reported at once, each with its position."""

from __future__ import annotations

from shardcore.errors import Diagnostic, ExpectationError, place_of
from shardcore.expect.toml_places import Path, Places

CODES = ("expectation-syntax", "invalid-expectation", "unknown-expectation")
"""Every error code of expectations."""


class Mistakes:
    """The mistakes found so far in one set of expectations."""

    def __init__(self, filename: str, places: Places | None = None) -> None:
        self.filename = filename
        self._places = places
        self.found: list[Diagnostic] = []

    def add(self, code: str, path: Path, message: str, hint: str | None, *, key: bool) -> None:
        """Add a mistake about the value at ``path``, or about its ``key``."""
        assert code in CODES
        where = None
        if self._places is not None:
            span = self._places.keys.get(path) if key else None
            span = span or self._places.best(path)
            where = None if span is None else place_of(self._places.text, *span)
        else:
            message = f"{dotted(path)}: {message}"
        self.found.append(Diagnostic(code, message, hint, self.filename if where else None, where))

    def unknown(self, path: Path, message: str, hint: str | None) -> None:
        """Add a mistake about an unknown key."""
        self.add("unknown-expectation", path, message, hint, key=True)

    def invalid(self, path: Path, message: str, hint: str | None) -> None:
        """Add a mistake about a value that is not valid for its key."""
        self.add("invalid-expectation", path, message, hint, key=False)

    def check(self) -> None:
        """Raise if there are mistakes.

        Raises:
            ExpectationError: there are mistakes.
        """
        if self.found:
            first = [d for d in self.found if d.place is None]
            located = [d for d in self.found if d.place is not None]
            raise ExpectationError([*first, *sorted(located, key=lambda d: d.place or ())])


def dotted(path: Path) -> str:
    """``path`` as TOML writes it: ``collectives.forbid[1]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            quoted = part if part.replace("_", "").replace("-", "").isalnum() else f'"{part}"'
            text += f".{quoted}" if text else quoted
    return text
