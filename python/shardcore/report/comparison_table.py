"""The differences between two costs, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, plain_text, table
from shardcore.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardcore.costs.compare import Comparison, Figure
    from shardcore.report.console import Part

NAMES = {
    "step_seconds": "step",
    "step_seconds_lower": "step, at least",
    "step_seconds_upper": "step, 90% end",
    "compute_seconds": "compute",
    "comm_seconds": "collectives",
    "flops": "FLOPs",
    "hbm_bytes": "memory traffic",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "peak_bytes": "peak memory",
    "host_memory_peak_bytes": "peak on the host",
}


def format_of(name: str) -> Callable[[float], str]:
    """Return the function that formats the figure called ``name``."""
    if name.endswith("_bytes"):
        return format_bytes
    return format_count if name == "flops" else format_seconds


def signed(figure: Figure) -> str:
    """Return the signed change of a figure."""
    text = format_of(figure.name)(abs(figure.change))
    return f"{'-' if figure.change < 0 else '+'}{text}" if figure.change else "="


def percent(figure: Figure) -> str:
    """Return the change in percent; empty if there is none, or if the figure was 0."""
    return f"{figure.change / figure.before:+.1%}" if figure.before and figure.change else ""


def comparison_parts(comparison: Comparison, *, top: int = 20) -> list[Part]:
    """The parts of the report, with the ``top`` lines with the largest changes."""
    totals = (
        (
            NAMES[row.name],
            format_of(row.name)(row.before),
            format_of(row.name)(row.after),
            signed(row),
            percent(row),
        )
        for row in comparison.totals
    )
    before, after = comparison.policies
    title = "per device" if before != after else f"per device, policy {before}"
    names = (before, after) if before != after else ("before", "after")
    columns = (title, f">{names[0]}", f">{names[1]}", ">change", ">")
    parts: list[Part] = [table(columns, totals)]
    if not comparison.lines:
        return [*parts, paragraph("\nno line costs more or less")]
    lines = (
        (
            row.place,
            signed(row.compute_seconds),
            signed(row.comm_seconds),
            signed(row.comm_bytes),
            ", ".join(f"{kind} {old} -> {new}" for kind, (old, new) in row.collectives.items()),
        )
        for row in comparison.lines[:top]
    )
    columns = ("line", ">compute", ">collectives", ">bytes", "number of collectives")
    parts += [
        paragraph("\nlines that changed", is_title=True),
        table(columns, lines, wrapped=columns[-1:]),
    ]
    if len(comparison.lines) > top:
        parts.append(paragraph(f"... {plural(len(comparison.lines) - top, 'line')} more"))
    return parts


def comparison_text(comparison: Comparison, *, top: int = 20) -> str:
    """The whole report without colours."""
    return plain_text(comparison_parts(comparison, top=top))
