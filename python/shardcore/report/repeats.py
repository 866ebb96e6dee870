"""Finds repeated layers in a text, by lines that are equal except for names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

MIN_LINES = 8
"""Shorter repetitions are not folded."""
MAX_LINES = 4000
"""Longer layers are not found."""

_NAME = re.compile(r"%[\w#:.$-]+|@[\w.$-]+")


@dataclass(frozen=True)
class Run:
    """Lines from ``start`` to ``stop``; the ``skipped`` lines after them repeat them."""

    start: int
    stop: int
    skipped: int = 0

    @property
    def times(self) -> int:
        """How many times the lines occur in a row."""
        return self.skipped // max(1, self.stop - self.start)


def unnamed(line: str) -> str:
    """``line`` without the names of values and functions, which differ between layers."""
    return _NAME.sub("%", line)


def runs(lines: Sequence[str]) -> list[Run]:
    """Return ``lines`` as runs; a repeated run counts the lines that repeat it."""
    return runs_of([unnamed(line) for line in lines])


def runs_of(items: Sequence[Hashable]) -> list[Run]:
    """Return ``items`` as runs, like :func:`runs`.

    Takes linear time: a repetition is looked for only where the next :data:`MIN_LINES` items
    occurred last.
    """
    numbers: dict[Hashable, int] = {}
    keys = [numbers.setdefault(item, len(numbers)) for item in items]
    found: list[Run] = []
    last: dict[tuple[int, ...], int] = {}
    start = at = 0
    while at < len(keys):
        window = tuple(keys[at : at + MIN_LINES])
        before = last.get(window)
        last[window] = at
        length = 0 if before is None or len(window) < MIN_LINES else at - before
        if before is None or not MIN_LINES <= length <= MAX_LINES or before < start:
            at += 1
            continue
        end = at
        while end < len(keys) and keys[end] == keys[end - length]:
            end += 1
        if end - at < length:
            at += 1
            continue
        skipped = (end - at) // length * length
        if before > start:
            found.append(Run(start, before))
        found.append(Run(before, at, skipped))
        start = at = at + skipped
    if start < len(keys):
        found.append(Run(start, len(keys)))
    return found
