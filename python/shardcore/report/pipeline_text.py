"""The schedule of a pipeline's stages, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.units import format_seconds, plural

if TYPE_CHECKING:
    from shardcore.pipeline.schedules import Timeline

COLUMNS = 56
"""The width of the chart, in characters."""
LEGEND = {
    "F": "forward",
    "B": "backward",
    "W": "gradients of parameters",
    "U": "update",
    ".": "waits",
}
"""The meaning of each character of the chart."""


def gantt_text(timeline: Timeline, columns: int = COLUMNS) -> str:
    """Return a row for each stage: its phase at the middle of each of ``columns`` sections of the
    step.
    """
    step = timeline.step_seconds
    rows = []
    drawn = set()
    for stage in range(timeline.stages):
        row = ["."] * columns
        for phase, start, end in spans(timeline, stage):
            for place in range(_cell(start, step, columns), _cell(end, step, columns)):
                row[place] = phase
        drawn |= set(row)
        line = f"stage {stage:<3} {''.join(row)} {timeline.bubbles[stage]:6.1%} waits"
        rows.append(line)
    legend = ", ".join(f"{mark} {what}" for mark, what in LEGEND.items() if mark in drawn)
    title = (
        f"{timeline.schedule}, {plural(timeline.stages, 'stage')}, "
        f"{plural(timeline.micro_batches, 'micro-batch', 'micro-batches')}: {format_seconds(step)}"
    )
    return "\n".join([title, *rows, f"          {legend}"])


def spans(timeline: Timeline, stage: int) -> list[tuple[str, float, float]]:
    """Return the phases of a stage with their times; ``U`` is the optimizer update at its end."""
    found = [(task.phase, task.start, task.end) for task in timeline.tasks if task.stage == stage]
    end = timeline.spans[stage][1]
    return [*found, ("U", end - timeline.finish[stage], end)]


def _cell(at: float, step: float, columns: int) -> int:
    """The first section whose middle is not before ``at``."""
    return -int(-(at / step * columns - 0.5) // 1) if step else 0
