"""The kernels of a step, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.labels import file_line
from shardcore.report.console import paragraph, plain_text, table
from shardcore.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.costs.kernels import Kernel
    from shardcore.costs.program import Cost
    from shardcore.report.console import Part


def kernel_parts(cost: Cost, *, top: int = 10) -> list[Part]:
    """The parts of the report: sums, and the ``top`` kernels with the longest total times."""
    kernels = cost.kernels
    runs = sum(row.count for row in kernels)
    moved = sum(row.bytes * row.count for row in kernels)
    copies = sum(row.count for row in kernels if row.is_copy)
    text = (
        f"{plural(len(kernels), 'kernel')} as {cost.compiler} has them, started {runs:,} times; "
        f"they read and write {format_bytes(moved)}\n"
        f"{plural(copies, 'start')} of these only copy or rearrange an operand\n"
    )
    longest = sorted(kernels, key=lambda row: -row.seconds * row.count)[:top]
    columns = (
        "kernel",
        "result",
        ">ops",
        ">runs",
        ">read",
        ">written",
        ">FLOPs",
        ">time",
        "source",
    )
    return [paragraph(text), table(columns, (_cells(row) for row in longest))]


def kernel_text(cost: Cost, *, top: int = 10) -> str:
    """The whole report without colours."""
    return plain_text(kernel_parts(cost, top=top))


def _cells(row: Kernel) -> tuple[str, ...]:
    """The cells of a kernel; the time is that of all runs."""
    name = row.name.removeprefix("stablehlo.")
    return (
        f"copy for {name}" if row.is_copy else name,
        row.value or "",
        str(len(row.ops)),
        f"{row.count:,}",
        format_bytes(row.read_bytes),
        format_bytes(row.written_bytes),
        format_count(row.flops),
        format_seconds(row.seconds * row.count),
        file_line(row.location),
    )
