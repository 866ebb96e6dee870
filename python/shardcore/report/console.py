"""Prints text and tables, replacing control characters that programs may contain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shardcore.controls import one_line, visible
from shardcore.report.widths import fitted, is_number

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, JustifyMethod, RenderableType, RenderResult

UNBOUNDED = 1000
"""The width, in characters, of output that is no terminal: enough for any row."""
MAX_DRAWN_ROWS = 1000
"""Larger tables are not fitted to the terminal, which takes 60 us per row."""

Part: TypeAlias = "RenderableType | PlainTable | FittedTable"
"""A part of a report."""


class PlainTable:
    """A table of columns aligned by spaces, whose cells are neither wrapped nor shortened."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.columns = columns
        self.rows = [[*map(one_line, row)] for row in rows]

    def lines(self) -> Iterable[str]:
        """The lines of the table; columns whose names start with ``>`` are right-aligned."""
        widths = [len(name.lstrip(">")) for name in self.columns]
        for row in self.rows:
            widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        line = "  ".join(
            f"{{:{'>' if name.startswith('>') else '<'}{width}}}"
            for name, width in zip(self.columns, widths, strict=True)
        )
        yield line.format(*(name.lstrip(">") for name in self.columns)).rstrip()
        for row in self.rows:
            yield line.format(*row).rstrip()


class FittedTable:
    """A table without rules, which :mod:`~shardcore.report.widths` fits to its console."""

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], wrapped: Sequence[str] = ()
    ) -> None:
        self.columns = columns
        self.rows = [[*map(one_line, row)] for row in rows]
        self.wrapped = wrapped

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table for rich."""
        found = fitted(self.columns, self.rows, options.max_width, self.wrapped)
        padding = (0, 1, 0, found.gap - 1)
        drawn = Table(
            box=None, pad_edge=False, show_edge=False, header_style="bold", padding=padding
        )
        for name in found.columns:
            justify: JustifyMethod = "right" if is_number(name) else "left"
            limit = found.wrapped.get(name)
            heading = name.lstrip(">")
            drawn.add_column(heading, justify=justify, no_wrap=limit is None, max_width=limit)
        for row in found.rows:
            drawn.add_row(*map(paragraph, row))
        yield drawn


def paragraph(text: str, *, is_title: bool = False) -> Text:
    """``text`` with control characters replaced, otherwise unchanged."""
    return Text(visible(text), style="bold" if is_title else "")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], wrapped: Sequence[str] = ()
) -> Part:
    """A table without rules. Columns of numbers, whose names start with ``>``, are right-aligned
    and never shortened; columns in ``wrapped`` are wrapped, others are cut.
    """
    rows = list(rows)
    if len(rows) > MAX_DRAWN_ROWS:
        return PlainTable(columns, rows)
    return FittedTable(columns, rows, wrapped)


class _Piped(Console):
    """A console for output that its reader may close; the command line handles the error."""

    def on_broken_pipe(self) -> None:
        """Raise the current exception; rich would end the process with code 1."""
        raise


def standard_console() -> Console:
    """Standard output, with the width of the terminal or of ``COLUMNS``; else unbounded."""
    console = _Piped(highlight=False, soft_wrap=False)
    is_bounded = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return console if is_bounded else _Piped(highlight=False, width=UNBOUNDED)


def show(parts: Iterable[Part], console: Console | None = None) -> None:
    """Print ``parts`` to ``console``, or to standard output."""
    console = console or standard_console()
    for part in parts:
        if isinstance(part, PlainTable):
            lines = iter(part.lines())
            while piece := "\n".join(islice(lines, 1000)):
                console.file.write(piece + "\n")
        else:
            # Only a terminal needs sentences broken into lines.
            console.print(part, soft_wrap=isinstance(part, Text) and not console.is_terminal)


def plain_text(parts: Iterable[Part]) -> str:
    """``parts`` without colours."""
    written = StringIO()
    # Without styles even if FORCE_COLOR is set, and as text in a notebook, where rich shows HTML.
    console = Console(
        width=UNBOUNDED, color_system=None, highlight=False, file=written, force_jupyter=False
    )
    show(parts, console)
    return "\n".join(line.rstrip() for line in written.getvalue().split("\n")).rstrip("\n")
