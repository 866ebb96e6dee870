"""The schedule of a pipeline's stages as an SVG Gantt chart."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from shardcore.report.pipeline_text import LEGEND
from shardcore.units import format_seconds, plural

if TYPE_CHECKING:
    from shardcore.pipeline.schedules import Timeline

_WIDTH, _ROW, _BAR = 900, 26, 20
"""The widths and heights, in pixels, of the step, of a row and of its bars."""
_LEFT, _RIGHT, _TOP = 70, 90, 40
_LABEL = 14
"""The width, in pixels, that the number of a micro-batch needs."""
_FONT = 'font-family="ui-monospace, monospace" font-size="12"'
_COLOURS = {"F": "#7aa6e0", "B": "#7cc08f", "W": "#e0b860", "U": "#b69ad6"}


def gantt_svg(timeline: Timeline) -> str:
    """Return a row for each stage, with a bar for each task, lighter for its first chunk."""
    step = timeline.step_seconds or 1.0
    turns = max(len(timeline.chunks) // timeline.stages, 1)
    drawn = [_text(4, 16, _title(timeline))]
    for task in timeline.tasks:
        name = f"{LEGEND[task.phase]}, micro-batch {task.micro_batch}"
        if turns > 1:
            name += f", chunk {task.chunk}"
        opacity = 1 - 0.5 * (turns - 1 - task.chunk // timeline.stages) / turns
        label = str(task.micro_batch)
        at = (task.start / step, task.end / step)
        drawn.append(_bar(task.stage, task.phase, at, (name, label), opacity))
    for stage, (_, end) in enumerate(timeline.spans):
        y = _TOP + _ROW * stage + 15
        drawn.append(_text(4, y, f"stage {stage}"))
        drawn.append(_text(_LEFT + _WIDTH + 6, y, f"{timeline.bubbles[stage]:.1%} waits"))
        if timeline.finish[stage]:
            at = ((end - timeline.finish[stage]) / step, end / step)
            drawn.append(_bar(stage, "U", at, (LEGEND["U"], ""), 1.0))
    phases = {task.phase for task in timeline.tasks} | ({"U"} if any(timeline.finish) else set())
    line = _TOP + _ROW * timeline.stages + 16
    for number, phase in enumerate(mark for mark in LEGEND if mark in phases):
        x = _LEFT + 200 * number
        drawn.append(
            f'<rect x="{x}" y="{line - 11}" width="12" height="12" fill="{_COLOURS[phase]}"/>'
        )
        drawn.append(_text(x + 18, line, LEGEND[phase]))
    width, height = _LEFT + _WIDTH + _RIGHT, line + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" fill="currentColor" {_FONT}>{"".join(drawn)}</svg>'
    )


def _title(timeline: Timeline) -> str:
    return (
        f"{timeline.schedule}, {plural(timeline.stages, 'stage')}, "
        f"{plural(timeline.micro_batches, 'micro-batch', 'micro-batches')}: "
        f"{format_seconds(timeline.step_seconds)}, {timeline.bubble:.1%} of it waiting"
    )


def _bar(
    stage: int, phase: str, at: tuple[float, float], names: tuple[str, str], opacity: float
) -> str:
    """A bar between two times of the step, with a tooltip, and a label if it fits."""
    x, width = _LEFT + _WIDTH * at[0], _WIDTH * (at[1] - at[0])
    y = _TOP + _ROW * stage
    bar = (
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}" fill="{_COLOURS[phase]}" '
        f'fill-opacity="{opacity:.2f}" stroke="#fff" stroke-width="0.5">'
        f"<title>{escape(names[0])}</title></rect>"
    )
    if not names[1] or width < _LABEL:
        return bar
    return (
        bar
        + f'<text x="{x + width / 2:.2f}" y="{y + 14}" text-anchor="middle" fill="#000">'
        + (f"{escape(names[1])}</text>")
    )


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
