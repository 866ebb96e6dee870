"""A table of the cost of one program on every known chip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from shardcore.costs.chips import ChipCost
    from shardcore.report.console import Part

COLUMNS = ("hardware", ">memory", "fits", ">step", ">from", ">to", ">compute", ">collectives")


def chips_parts(rows: Sequence[ChipCost]) -> list[Part]:
    """The parts of the report."""
    known = next((row.cost for row in rows if row.cost is not None), None)
    head = "" if known is None else f"peak {format_bytes(known.peak_bytes)}, policy {known.policy}"
    remarks = [f"{row.hardware}: {row.reason}" for row in rows if row.reason is not None]
    parts: list[Part] = [paragraph(head), table(COLUMNS, _cells(rows))]
    return [*parts, paragraph("\n" + "\n".join(remarks))] if remarks else parts


def _cells(rows: Iterable[ChipCost]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        cost = row.cost
        if cost is None:
            yield (row.hardware, "", "", "", "", "", "", "")
            continue
        seconds = (
            cost.step_seconds,
            cost.confidence.low,
            cost.confidence.high,
            cost.compute_seconds,
            cost.comm_seconds,
        )
        yield (
            row.hardware,
            format_bytes(cost.hardware.hbm_bytes),
            "yes" if cost.fits else "NO",
            *map(format_seconds, seconds),
        )
