"""A TOML file of chips, as text: its tables, and errors that show where a mistake is."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardcore import files
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class HardwareFile:
    """A TOML file of the user, which can give the position of a mistake."""

    name: str
    text: str

    @staticmethod
    def read(path: str | Path) -> HardwareFile:
        """Read the file at ``path``; OSError if that fails."""
        text = files.read(path, files.MAX_TABLE_BYTES).decode("utf-8", "replace")
        return HardwareFile(str(path), text)

    def mistake(
        self, message: str, hint: str, table: str = "", key: str | None = None
    ) -> CalculusError:
        """The error for a mistake in ``key`` of ``table``, or in the whole table."""
        span = (0, 1)
        head = re.search(
            rf"^[ \t]*\[\s*[\"']?{re.escape(table)}[\"']?[\].]", self.text, re.MULTILINE
        )
        if head:
            span = (head.start(), self.line_end(head.start()))
        at = head.end() if head else 0
        found = key and re.compile(rf"^[ \t]*{re.escape(key)}\b", re.MULTILINE).search(
            self.text, at
        )
        if found:
            span = (found.start(), self.line_end(found.start()))
        return mistake(
            CalculusError,
            "hardware-file",
            message,
            hint=hint,
            text=self.text,
            span=span,
            filename=self.name,
        )

    def line_end(self, start: int) -> int:
        """Return where the line of ``start`` ends."""
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end

    def tables(self) -> dict[str, Any]:
        """The tables of the file."""
        try:
            tables: dict[str, Any] = tomllib.loads(self.text)
        # Not only TOMLDecodeError: numbers may have too many digits, arrays too many levels.
        except (ValueError, RecursionError) as error:
            found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
            start = len(self.text)
            if found and found[1]:
                lines = self.text.split("\n")[: int(found[1]) - 1]
                start = sum(len(line) + 1 for line in lines) + int(found[2]) - 1
            message = str(error)[: found.start()] if found else str(error)
            raise mistake(
                CalculusError,
                "hardware-file",
                f"this is no TOML: {message}",
                hint="write [name-of-the-chip], and figures below it",
                text=self.text,
                span=(start, start + 1),
                filename=self.name,
            ) from None
        return tables
