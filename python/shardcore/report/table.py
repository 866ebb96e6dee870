"""A result as a table that people can read."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from shardcore._core import Result, Value

COLUMNS = ("value", "shape", "sharding", "local shape", "per device", "source")
SHARDING, BYTES, SOURCE = 2, 4, 5
"""Columns that are not just text on the left."""
MIN_SHARDING, MIN_SOURCE = 14, 16
"""How narrow a narrow terminal makes the columns that can be shortened."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def format_bytes(count: float) -> str:
    """``count`` bytes with a binary unit: ``format_bytes(1536) == "1.5 KiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(count) < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def format_shape(value: Value) -> str:
    """Shape and element type as MLIR writes them inside ``tensor<...>``: ``8x16xf32``."""
    if value.shape is None:
        return value.type
    return "x".join(
        [*("?" if size is None else str(size) for size in value.shape), value.dtype or ""]
    )


def format_sharding(value: Value) -> str:
    """The sharding without its mesh, ``[{"data"}, {}]``."""
    if value.sharding is None:
        return ""
    text = str(value.sharding)
    return text[text.index(", [{") + 2 : -1] if ", [{" in text else text


def _cells(value: Value) -> list[str]:
    local = "" if value.local_shape is None else "x".join(map(str, value.local_shape))
    size = "" if value.bytes_per_device is None else format_bytes(value.bytes_per_device)
    sharding = format_sharding(value)
    return [value.name, format_shape(value), sharding, local, size, value.location or ""]


def values_table(values: Sequence[Value], width: int | None = None) -> str:
    """A table with a row for each of ``values``, the first line its header.

    Lines fit into ``width`` characters if that is possible: sources lose their beginnings, then
    shardings are wrapped; all else is shown whole. The column of sources is left out if no value
    has one.
    """
    rows = [list(COLUMNS), *map(_cells, values)]
    if not any(row[SOURCE] for row in rows[1:]):
        rows = [row[:SOURCE] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    gap = "  "
    if excess > 0:
        gap = " "
        excess -= len(widths) - 1
    for column, least in ((SOURCE, MIN_SOURCE), (SHARDING, MIN_SHARDING)):
        if column < len(widths) and excess > 0:
            cut = min(excess, max(widths[column] - least, 0))
            widths[column] -= cut
            excess -= cut
    return "\n".join(line for row in rows for line in _lines(row, widths, gap))


def _lines(row: list[str], widths: list[int], gap: str) -> list[str]:
    """One row: a line, and more if its sharding does not fit."""
    sharding, *more = textwrap.wrap(row[SHARDING], widths[SHARDING], break_on_hyphens=False) or [""]
    lines = []
    for cells in (
        [*row[:SHARDING], sharding, *row[SHARDING + 1 :]],
        *(["", "", rest] for rest in more),
    ):
        padded = [
            cell.rjust(size) if column == BYTES else _end(cell, size).ljust(size)
            for column, (cell, size) in enumerate(zip(cells, widths, strict=False))
        ]
        lines.append(gap.join(padded).rstrip())
    return lines


def _end(text: str, width: int) -> str:
    """The last ``width`` characters of ``text``, which tell sources apart."""
    return text if len(text) <= width else ELLIPSIS + text[len(text) - width + 1 :]


def print_result(
    result: Result, *, limit: int, seconds: float | None = None, file: TextIO | None = None
) -> None:
    """Print the values of ``result`` as a table, then what it amounts to.

    Of a program with more than ``limit`` tensors, half of the rows show the first arguments and
    half the first results of ops (0 shows all). On a terminal lines fit its width.
    """
    file = file or sys.stdout
    width = _terminal_width(file)
    values = [value for value in result.values() if value.shape is not None]
    more = ""
    if 0 < limit < len(values):
        arguments = [value for value in values if value.op is None]
        results = [value for value in values if value.op is not None]
        first = max(limit - len(results), min(len(arguments), limit // 2))
        values = arguments[:first] + results[: limit - first]
        more = (
            f"\n... {len(arguments[first:])} arguments and {len(results[limit - first :])} results "
            "of ops more (--limit 0 shows all)"
        )
    header, _, rows = values_table(values, width).partition("\n")
    if width is not None and "NO_COLOR" not in os.environ:
        header = f"\033[1m{header}\033[0m"
    file.write(f"{header}\n{rows}{more}\n\n{summary_text(result.summary(), seconds)}\n")


def _terminal_width(file: TextIO) -> int | None:
    """Characters in a line of the terminal that ``file`` is; ``None`` if it is none."""
    if not file.isatty():
        return None
    return os.get_terminal_size(file.fileno()).columns or 80


def summary_text(summary: dict[str, Any], seconds: float | None = None) -> str:
    """The lines below the table: how much is sharded, what a device holds, where axes are."""
    before, after = summary["before"], summary["after"]
    lines = [
        f"{after['sharded_values']} of {after['values']} values are sharded "
        f"(annotated: {before['sharded_values']})",
        f"{'bytes per device':18}{'before':>11}{'after':>11}",
    ]
    for name, key in (
        ("arguments", "argument_bytes_per_device"),
        ("results", "result_bytes_per_device"),
        ("all values", "bytes_per_device"),
    ):
        numbers = f"{format_bytes(before[key]):>11}{format_bytes(after[key]):>11}"
        lines.append(f"  {name:16}{numbers}")
    for axis in after["axes"]:
        lines.append(
            f'axis "{axis["name"]}"={axis["size"]} of @{axis["mesh"]} shards '
            f"{axis['values']} values, {axis['arguments']} of them arguments"
        )
    if seconds is not None:
        lines.append(f"{summary['ops']} ops in {seconds * 1000:.1f} ms")
    return "\n".join(lines)
