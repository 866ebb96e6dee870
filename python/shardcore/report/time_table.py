"""A table of the figures that the step time depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_seconds

if TYPE_CHECKING:
    from shardcore.costs.sensitivity import TimeExplained
    from shardcore.report.console import Part


def time_parts(found: TimeExplained) -> list[Part]:
    """The parts of the report."""
    cost, known = found.cost, found.cost.confidence
    head = (
        f"step {format_seconds(cost.step_seconds)} on {cost.hardware.name}, 9 of 10 between "
        f"{format_seconds(known.low)} and {format_seconds(known.high)}, at least "
        f"{format_seconds(cost.step_seconds_lower)}\n"
        f"the interval rests on {known}"
    )
    rows = (
        (
            term.figure,
            f"{term.value:.3g}",
            f"{term.slope:+.2f} %",
            f"{term.share:.0%}",
            term.measured_by,
        )
        for term in found.terms
    )
    columns = ("figure", ">value", ">1 % worse: step", ">of the width", "measured by")
    parts: list[Part] = [paragraph(head), table(columns, rows)]
    if not found.halving:
        return parts
    *others, last = found.halving
    halved = f"{', '.join(others)} and {last}" if others else last
    tail = (
        f"\nwith {halved} measured, the interval is half as wide, if all figures are equally well "
        "known;\na measured step of your own does the same for this program: shardcore calibrate"
    )
    return [*parts, paragraph(tail)]
