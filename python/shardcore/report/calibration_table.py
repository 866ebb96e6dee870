"""A table of measured steps next to the time model's estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_seconds

if TYPE_CHECKING:
    from shardcore.costs.calibrate import Calibration
    from shardcore.report.console import Part


def calibration_parts(found: Calibration) -> list[Part]:
    """The parts of the report."""
    rows = (
        (
            run.name,
            "held out" if run.held_out else "",
            format_seconds(run.step_seconds),
            f"{before.step_seconds / run.step_seconds:.2f}",
            f"{after.step_seconds / run.step_seconds:.2f}",
            f"{after.step_seconds_lower / run.step_seconds:.2f} to "
            f"{after.step_seconds_upper / run.step_seconds:.2f}",
        )
        for run, before, after in found.rows
    )
    columns = ("run", "", ">measured", ">before", ">after", ">bounds")
    return [table(columns, rows), *(paragraph(text) for text in _remarks(found))]


def _remarks(found: Calibration) -> list[str]:
    known = {one.runs for one in found.before.measured.values()}
    if not known:
        return []
    return [
        f"The figures of {found.chip.name} are based on up to {max(known)} measured runs already, "
        "so a few more move them by a part: errors of one run are mostly due to its kind."
    ]
