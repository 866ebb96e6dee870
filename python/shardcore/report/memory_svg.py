"""The memory over the course of a program as SVG, with a coloured layer for each group of
values."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from shardcore.labels import file_line
from shardcore.report.fits import fit_text
from shardcore.report.memory_table import sampled
from shardcore.units import format_bytes, plural

if TYPE_CHECKING:
    from shardcore.costs.memory import MemoryTimeline

_WIDTH, _HEIGHT = 720, 300
"""The size of the chart, in pixels."""
_LEFT, _TOP, _LINE = 90, 40, 18
"""The space for the scale and the title, and the height of a line of text."""
_COLUMNS = 180
"""How many points of the program are drawn at most."""
_LAYERS = 10
"""How many groups are drawn at most; the rest is one layer."""
_FONT = 'font-family="ui-monospace, monospace" font-size="12"'


def memory_svg(timeline: MemoryTimeline, by: str = "scope") -> str:
    """Return the bytes in memory over the program as an SVG element, with a layer for each group of
    :meth:`~shardcore.costs.MemoryTimeline.by`, a line for the chip's memory if it is in the range,
    and the op at the peak.
    """
    places = sampled(timeline, _COLUMNS)
    layers = _layers(timeline.by(by, places), len(places))
    sizes = [timeline.points[place].bytes for place in places]
    peak = max(sizes, default=0)
    # The limit is drawn only if the chart does not become flat.
    top = max(peak, timeline.limit if timeline.limit <= 1.5 * peak else 0, 1)
    height = _TOP + _HEIGHT + _LINE * (len(layers) + 3)
    drawn = [_text(4, 14, _title(timeline, peak)), *_scale(top)]
    below = [0] * len(places)
    for number, (name, row) in enumerate(layers.items()):
        above = [low + size for low, size in zip(below, row, strict=True)]
        colour = f"hsl({number * 137.508 % 360:.0f}, 60%, 60%)"
        drawn.append(_area(below, above, top, colour, f"{name}: {format_bytes(max(row))} at most"))
        line = _TOP + _HEIGHT + _LINE * (number + 2)
        drawn.append(f'<rect x="{_LEFT}" y="{line - 10}" width="12" height="12" fill="{colour}"/>')
        label = f"{file_line(name) if by == 'line' else name}, {format_bytes(max(row))} at most"
        drawn.append(_text(_LEFT + 18, line, label))
        below = above
    if timeline.limit <= top:
        drawn.append(_rule(timeline.limit, top, f"{timeline.hardware} has", "#c00"))
    if places:
        drawn.append(_peak(timeline, places, sizes, top))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 10}" height="{height}" '
        f'viewBox="0 0 {_LEFT + _WIDTH + 10} {height}" fill="currentColor" {_FONT}>'
        f"{''.join(drawn)}</svg>"
    )


def _layers(groups: dict[str, list[int]], count: int) -> dict[str, list[int]]:
    """The first groups, and the sum of the others."""
    names = [name for name, row in groups.items() if any(row)]
    first = {name: groups[name] for name in names[:_LAYERS]}
    rest = [groups[name] for name in names[_LAYERS:]]
    if rest:
        sums = [sum(row[at] for row in rest) for at in range(count)]
        first[plural(len(rest), "other")] = sums
    return first


def _title(timeline: MemoryTimeline, peak: int) -> str:
    fits = fit_text(peak, timeline.hardware, timeline.limit)
    return f"{fits}; bytes in memory of a device, op by op"


def _x(at: int, count: int) -> float:
    return _LEFT + _WIDTH * at / max(count, 1)


def _y(size: float, top: float) -> float:
    return _TOP + _HEIGHT * (1 - size / top)


def _area(below: list[int], above: list[int], top: float, colour: str, title: str) -> str:
    """The area between two sums, as steps."""
    count = len(above)
    upper = [(at + side, above[at]) for at in range(count) for side in (0, 1)]
    lower = [(at + side, below[at]) for at in reversed(range(count)) for side in (1, 0)]
    points = " ".join(f"{_x(at, count):.1f},{_y(size, top):.1f}" for at, size in upper + lower)
    return f'<polygon points="{points}" fill="{colour}"><title>{escape(title)}</title></polygon>'


def _scale(top: float) -> list[str]:
    """Lines at quarters of the maximum."""
    return [_rule(top * part / 4, top, "", "#8888") for part in range(5)]


def _rule(size: float, top: float, label: str, colour: str) -> str:
    y = _y(size, top)
    line = f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>'
    if label:
        return line + _text(_LEFT + 4, y - 4, f"{label} {format_bytes(size)}", colour=colour)
    return line + _text(_LEFT - 6, y + 4, format_bytes(size), anchor="end")


def _peak(timeline: MemoryTimeline, places: list[int], sizes: list[int], top: float) -> str:
    """A mark at the peak, and the op there below the chart."""
    at = sizes.index(max(sizes))
    point = timeline.points[places[at]]
    x, y = _x(at, len(places)) + _WIDTH / len(places) / 2, _y(sizes[at], top)
    what = ", ".join(part for part in (point.name, point.location, point.scope) if part)
    mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return mark + _text(_LEFT, _TOP + _HEIGHT + _LINE - 3, f"peak at op {places[at]}: {what}")


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "") -> str:
    fill = f' fill="{colour}"' if colour else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}{fill}>{escape(text)}</text>"
