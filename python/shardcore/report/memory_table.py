"""The memory over the course of a program, as text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from shardcore.labels import file_line
from shardcore.report.console import paragraph, plain_text, table
from shardcore.report.fits import fit_text
from shardcore.units import format_bytes, plural

if TYPE_CHECKING:
    from shardcore.costs.memory import MemoryPoint, MemoryTimeline
    from shardcore.report.console import Part

ROWS = 24
"""Rows of the chart."""
BAR = 20
"""The length of the longest bar, in characters."""


def memory_parts(timeline: MemoryTimeline, *, top: int = 10) -> list[Part]:
    """The parts of the report: the chart, and ``top`` rows of each ranking at the peak."""
    if not timeline.points:
        return [paragraph("nothing is in memory")]
    peak = timeline.points[timeline.peak]
    parts: list[Part] = [
        paragraph(
            f"{fit_text(peak.bytes, timeline.hardware, timeline.limit)}\n"
            f"memory per device over {plural(len(timeline.points), 'op')}, "
            f"policy {timeline.policy}\n"
        ),
        _chart(timeline),
    ]
    place = f"at the peak, op {timeline.peak}"
    for name in ("scope", "line"):
        sums = {group: row[0] for group, row in timeline.by(name, [timeline.peak]).items()}
        parts += [
            paragraph(f"\n{place}, by {name}", is_title=True),
            _sums(name, sums, top, peak.bytes),
        ]
    live = timeline.live(timeline.peak)
    title = f"\n{place}, largest of {plural(len(live), 'value')}"
    cells = (
        (
            row.value.name,
            (row.value.op or row.role).removeprefix("stablehlo."),
            format_bytes(row.value.bytes),
            str(row.first),
            str(row.last),
            file_line(row.value.location),
        )
        for row in live[:top]
    )
    columns = ("value", "made by", ">bytes", ">from op", ">to op", "source")
    return [*parts, paragraph(title, is_title=True), table(columns, cells)]


def memory_text(timeline: MemoryTimeline) -> str:
    """The whole report without colours."""
    return plain_text(memory_parts(timeline))


def sampled(timeline: MemoryTimeline, most: int) -> list[int]:
    """Up to ``most`` indices of ops, in order: from each part of the program the op with the most
    bytes in memory.
    """
    points, count = timeline.points, len(timeline.points)
    edges = [count * at // most for at in range(most + 1)] if count > most else range(count + 1)
    parts = (range(*pair) for pair in pairwise(edges))
    return [max(part, key=lambda place: points[place].bytes) for part in parts]


def _chart(timeline: MemoryTimeline) -> Part:
    """A row for each part of the program."""
    most = max(point.bytes for point in timeline.points) or 1

    def cells(place: int, point: MemoryPoint) -> Iterable[str]:
        mark = " <- peak" if place == timeline.peak else ""
        bar = "#" * max(round(BAR * point.bytes / most), 1)
        yield str(place)
        yield format_bytes(point.bytes)
        yield f"{bar}{mark}"
        yield point.name.removeprefix("stablehlo.")
        yield file_line(point.location)

    rows = [tuple(cells(place, timeline.points[place])) for place in sampled(timeline, ROWS)]
    return table((">op", ">in memory", "", "running", "source"), rows)


def _sums(name: str, sums: dict[str, int], top: int, total: int) -> Part:
    shown = list(sums.items())[:top]
    left = sum(sums.values()) - sum(size for _, size in shown)
    if left:
        shown.append((f"... {len(sums) - top} more", left))
    label = file_line if name == "line" else str
    cells = ((label(group), format_bytes(size), f"{size / total:.1%}") for group, size in shown)
    return table((name, ">bytes", ">share"), cells)
