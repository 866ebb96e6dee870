"""Fits tables to a width: empty text columns are dropped first; then locations are shortened, then
gaps, then shardings, and last other text, the widest column first. Numbers, shapes and kinds are
never shortened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shardcore.labels import file_line

GAPS = (2, 1)
"""The spaces between columns: normally, and if there is not enough room."""
LEAST = 10
"""The least number of characters of a shortened cell."""

_PLACES = ("source", "line", "location")
_OPS = ("op", "made by", "because of", "running")
_SHARDINGS = ("sharding", "shardings", "step")
_KEPT = ("kind", "bound", "pass", "fits", "shape", "local shape")
_COLUMN = re.compile(r"(.*:\d+):\d+\Z", re.DOTALL)


def is_number(column: str) -> bool:
    """Whether the column name ``column`` says that it is right-aligned, as for numbers."""
    return column.startswith(">")


@dataclass
class Fitted:
    """A table that was fitted to a width."""

    columns: list[str]
    rows: list[tuple[str, ...]]
    gap: int
    """The number of spaces between columns."""
    wrapped: dict[str, int]
    """The widths of the columns whose cells are wrapped."""


def fitted(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    wrapped: Sequence[str] = (),
) -> Fitted:
    """Return a table with cells shortened as far as needed for ``width`` characters.

    Names of number columns start with ``>``. Columns in ``wrapped`` are wrapped instead of cut. If
    the numbers and names alone are wider, the table stays wider.
    """
    table = _Cells(columns, rows, wrapped)
    steps = (
        table.drop_empty,
        lambda: table.shorten(_PLACES, file_line),
        lambda: table.shorten(_PLACES, _without_column),
        lambda: table.shorten(_OPS, _without_dialect),
        table.narrow_gaps,
        lambda: table.cut(width, _SHARDINGS),
        lambda: table.cut(width),
    )
    for step in steps:
        if table.excess(width) <= 0:
            break
        step()
    found = list(zip(*table.cells, strict=True)) if rows else []
    return Fitted(table.columns, found, table.gap, table.limits)


class _Cells:
    """The cells of a table, column by column."""

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], wrapped: Sequence[str]
    ) -> None:
        self.columns = list(columns)
        self.gap = GAPS[0]
        self.wrapped = wrapped
        self.limits: dict[str, int] = {}
        self.cells = [[row[at] for row in rows] for at in range(len(columns))]

    def excess(self, width: int) -> int:
        """By how many characters the table is wider than ``width``."""
        return sum(map(self._width, range(len(self.columns)))) + self._gaps() - width

    def drop_empty(self) -> None:
        """Drop text columns without text."""
        kept = [at for at, cells in enumerate(self.cells) if any(cells)]
        self.columns = [self.columns[at] for at in kept]
        self.cells = [self.cells[at] for at in kept]

    def shorten(self, names: Sequence[str], shorter: Callable[[str], str]) -> None:
        """Shorten the cells of the columns ``names`` with the function ``shorter``."""
        for at, name in enumerate(self.columns):
            if name in names:
                self.cells[at] = list(map(shorter, self.cells[at]))

    def narrow_gaps(self) -> None:
        """Put one space between columns."""
        self.gap = GAPS[-1]

    def cut(self, width: int, names: Sequence[str] | None = None) -> None:
        """Cut the cells of text columns (of ``names`` if given), the widest first, until the table
        fits.
        """
        chosen = [
            at
            for at, name in enumerate(self.columns)
            if not (is_number(name) or name in _KEPT) and (names is None or name in names)
        ]
        while chosen:
            excess = self.excess(width)
            if excess <= 0:
                return
            at = max(chosen, key=self._width)
            least = self._least(at)
            others = [self._width(other) for other in chosen if other != at]
            # Down to the width of the next widest, then both in turn.
            next_widest = max([least, *others])
            wide = self._width(at)
            if wide <= least:
                return
            most = max(wide - excess, least, min(next_widest, wide - 1))
            if self.columns[at] in self.wrapped:
                self.limits[self.columns[at]] = most
            else:
                self.cells[at] = [_middle(cell, most) for cell in self.cells[at]]

    def _least(self, at: int) -> int:
        """The least width to which a column is cut."""
        if self.columns[at] not in self.wrapped:
            return max(len(self.columns[at]), LEAST)
        words = (word for cell in self.cells[at] for word in cell.split())
        return max(map(len, [self.columns[at], *words]))

    def _width(self, at: int) -> int:
        if self.columns[at] in self.limits:
            return self.limits[self.columns[at]]
        return max(map(len, [self.columns[at].lstrip(">"), *self.cells[at]]))

    def _gaps(self) -> int:
        return self.gap * (len(self.columns) - 1)


def _without_column(place: str) -> str:
    """``llama.py:41`` of ``llama.py:41:8``."""
    found = _COLUMN.match(place)
    return found[1] if found else place


def _without_dialect(name: str) -> str:
    return name.removeprefix("stablehlo.")


def _middle(text: str, most: int) -> str:
    """``text`` shortened to ``most`` characters: its start and its end."""
    if len(text) <= most:
        return text
    first = (most - 1) // 2
    return f"{text[:first]}…{text[len(text) - (most - 1 - first) :]}"
