"""The result of a comparison with expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardcore.controls import visible
from shardcore.expect.mistakes import dotted
from shardcore.expect.toml_places import Path


@dataclass(frozen=True)
class Failure:
    """A failed expectation."""

    path: Path
    """The key of the expectation."""
    expected: str
    actual: tuple[str, ...]
    """The actual values: one line for each tensor that differs."""
    line: int | None = None
    """Its line in the file."""
    location: str | None = None
    """The location, in the user's program, of the first value or collective that breaks it."""

    def __str__(self) -> str:
        where = "" if self.line is None else f" (line {self.line})"
        lines = [f"{dotted(self.path)}{where}", f"  - {self.expected}"]
        return "\n".join([*lines, *(f"  + {line}" for line in self.actual)])


@dataclass(frozen=True)
class Check:
    """The outcome of a check: true if all expectations hold; ``str()`` shows the differences."""

    failures: tuple[Failure, ...]
    num_expectations: int
    filename: str
    updated: tuple[str, ...] = ()
    """The keys that were updated in the file, with the new values."""

    @property
    def ok(self) -> bool:
        """Whether all expectations hold."""
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        total = _number(self.num_expectations, "expectation")
        written = [f"{self.filename}: wrote {key}" for key in self.updated]
        if self.ok:
            verb = "holds" if self.num_expectations == 1 else "hold"
            return visible("\n".join([*written, f"{self.filename}: {total} {verb}"]))
        verb = "does" if len(self.failures) == 1 else "do"
        broken = f"{len(self.failures)} of {total} {verb} not hold"
        failures = (f"\n{failure}" for failure in self.failures)
        return visible("\n".join([*written, f"{self.filename}: {broken}", *failures]))

    def _repr_html_(self) -> str:
        from shardcore.report.html import text_html

        return text_html(self)

    def __repr__(self) -> str:
        return f"<shardcore.expect.Check: {self}>"

    def assert_ok(self) -> None:
        """Raise unless all expectations hold.

        Raises:
            AssertionError: an expectation fails; the message shows the differences.
        """
        if not self.ok:
            raise AssertionError(str(self))


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def shortened(lines: Sequence[str], limit: int = 5) -> tuple[str, ...]:
    """The first ``limit`` of ``lines``, and a line with the number of the rest."""
    if len(lines) <= limit:
        return tuple(lines)
    return (*lines[:limit], f"... and {len(lines) - limit} more")
