"""A table of the combinations of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from shardcore.report.console import Part
    from shardcore.session.sweep import SweepRow

COLUMNS = (">step", ">compute", ">collectives", ">sent", ">peak")


def sweep_parts(rows: Sequence[SweepRow], *, top: int = 20) -> list[Part]:
    """The parts of the report: the first ``top`` rows, and the number of the others."""
    targets = list(rows[0].row.edit) if rows else []
    has_meshes = any(row.mesh is not None for row in rows)
    names = (*(["mesh"] if has_meshes else []), *targets, *COLUMNS)
    parts: list[Part] = [table(names, [_cells(row, has_meshes) for row in rows[:top]])]
    if len(rows) > top:
        parts.append(paragraph(f"{len(rows) - top} more are not shown (--top)"))
    refused = [row for row in rows if row.row.error is not None]
    if refused:
        error = refused[0].row.error
        parts.append(paragraph(f"{len(refused)} refused, the first because of\n{error}"))
    return parts


def _cells(row: SweepRow, has_meshes: bool) -> list[str]:
    found = row.row
    cells = [str(row.mesh)] if has_meshes else []
    cells += ["none" if value is None else str(value) for value in found.edit.values()]
    if (
        found.step_seconds is None
        or found.compute_seconds is None
        or found.comm_seconds is None
        or found.comm_bytes is None
        or found.peak_bytes is None
    ):
        return [*cells, "refused", "", "", "", ""]
    return [
        *cells,
        format_seconds(found.step_seconds),
        format_seconds(found.compute_seconds),
        format_seconds(found.comm_seconds),
        format_bytes(found.comm_bytes),
        format_bytes(found.peak_bytes),
    ]
