"""The memory on a page: its contents over time, in groups, and the composition of the peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from shardcore.costs.kinds import (
    KINDS,
    Held,
    MemoryByKind,
    column_of,
    layer_of,
    memory_by_kind,
    sections,
    sizes,
)
from shardcore.costs.memory import Lifetime, MemoryPoint, MemoryTimeline
from shardcore.costs.scopes import PASSES
from shardcore.labels import pattern_of, without_column

if TYPE_CHECKING:
    from shardcore._core import Port
    from shardcore.costs import Cost
    from shardcore.costs.records import TimedStep
    from shardcore.report.page.string_tables import Tables

MAX_COLUMNS = 300
"""How many points of the program the chart has at most."""
MAX_ROWS = 60
"""How many groups of values are listed at the peak."""
MAX_LAYERS = 128
"""How many layers are distinguished."""
MAX_BANDS = 16
"""How many layers, or runs of layers, the chart distinguishes."""
MAX_GROUPS = 7
"""How many scopes or lines the chart distinguishes; others are drawn as one."""


def memory_record(
    cost: Cost, arguments: Sequence[Port], tables: Tables, *, is_large: bool
) -> dict[str, Any]:
    """Return what is in the memory of a device as plain data of a page.

    Args:
        cost: the cost.
        arguments: the program's arguments.
        tables: collect the texts and locations.
        is_large: whether to consider the peak only.
    """
    timeline = _at_peak(cost) if is_large else cost.memory_timeline()
    found = memory_by_kind(timeline, arguments, MAX_COLUMNS)
    points = [timeline.points[at] for at in found.places]
    layers = _layers(found.at_peak)
    charts = {"kind": found.sizes}
    if layers and not is_large:
        charts["layer"] = _over_layers(found, layers, len(timeline.points))
    if not is_large:
        by = "scope" if any(point.scope for point in timeline.points) else "line"
        charts[by] = _largest(timeline.by(by, found.places))
    return {
        "starts": [] if is_large else _starts(cost.rows.steps, timeline.points),
        "charts": [
            {"by": by, "names": list(groups), "bytes": list(groups.values())}
            for by, groups in charts.items()
        ],
        "peak": column_of(found.places, timeline.peak),
        "name": [tables.text(point.name) for point in points],
        "place": [
            tables.stacks.number((point.location,) if point.location else None) for point in points
        ],
        "pass": [PASSES.index(point.direction) for point in points],
        "scope": [tables.text(point.scope or None) for point in points],
        "rows": _rows(found.at_peak, tables),
        "layers": layers,
    }


def _largest(groups: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """The groups that are largest at the peak, and the sum of the others."""
    names = list(groups)
    found = {name: list(groups[name]) for name in names[:MAX_GROUPS]}
    rest = [groups[name] for name in names[MAX_GROUPS:]]
    if rest:
        found[f"{len(rest)} others"] = list(map(sum, zip(*rest, strict=True)))
    return found


def _over_layers(
    found: MemoryByKind, layers: Sequence[Sequence[Any]], length: int
) -> dict[str, list[int]]:
    """The bytes of each layer, or of each of :data:`MAX_BANDS` runs of layers, over time."""
    numbers = [number for number, _ in layers if number is not None]
    names: dict[int | None, str] = {None: "outside of layers"}
    for part in sections(len(numbers), MAX_BANDS):
        inside = [numbers[at] for at in part]
        last = f"s {inside[0]} to {inside[-1]}" if inside[1:] else f" {inside[0]}"
        names |= dict.fromkeys(inside, f"layer{last}")
    held: dict[str, list[Held]] = {name: [] for name in names.values()}
    for each in found.held:
        held[names.get(layer_of(each.path), names[None])].append(each)
    return {name: sizes(rows, length, found.places) for name, rows in held.items() if rows}


def _starts(steps: Sequence[TimedStep], points: Sequence[MemoryPoint]) -> list[int]:
    """The predicted time, in picoseconds, at which each column of the chart starts, and that at
    which the last one ends. Ops that are no points of their own, as they are fused into others,
    count for the point before them.
    """
    place_of = {point.value: place for place, point in enumerate(points)}
    seconds = [0.0] * len(points)
    place = 0
    for step in steps if points else ():
        place = place_of.get(step.value, place)
        seconds[place] += step.seconds
    widths = [sum(seconds[at] for at in part) for part in sections(len(points), MAX_COLUMNS)]
    return [round(time * 1e12) for time in accumulate(widths, initial=0.0)]


def _at_peak(cost: Cost) -> MemoryTimeline:
    """A timeline of the peak only, without scopes and passes."""
    op = cost.peak_op
    name, value, location = ("", None, None) if op is None else (op.name, op.value, op.location)
    point = MemoryPoint(name, value, location, "", "forward", cost.peak_bytes)
    values = tuple(
        Lifetime(row, "argument" if row.op is None else "temporary", "", "forward", 0, 0)
        for row in cost.live_at_peak
    )
    return MemoryTimeline(
        cost.hardware.name, cost.hardware.hbm_bytes, cost.policy, (point,), values
    )


def _rows(held: Sequence[Held], tables: Tables) -> list[list[Any]]:
    """Rows of equal values: kind, name, number, bytes and location, the largest first."""
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for each in held:
        value = each.lifetime.value
        line = value.location and without_column(value.location)
        name = pattern_of(each.path) or (value.op or value.name)
        is_argument = each.lifetime.role == "argument"
        key = each.kind, name, None if is_argument else line, each.lifetime.direction
        row = sums.setdefault(key, [0, 0, None if is_argument else value.location])
        row[0] += 1
        row[1] += value.bytes
    largest = sorted(sums.items(), key=lambda item: -item[1][1])
    return [
        [
            kind,
            tables.text(name),
            PASSES.index(direction),
            count,
            size,
            tables.place(place),
        ]
        for (kind, name, _, direction), (count, size, place) in largest[:MAX_ROWS]
    ]


def _layers(held: Sequence[Held]) -> list[list[Any]]:
    """The bytes of each layer by kind; empty unless most bytes belong to layers."""
    sums: dict[int | None, list[int]] = {}
    for each in held:
        row = sums.setdefault(layer_of(each.path), [0] * len(KINDS))
        row[KINDS.index(each.kind)] += each.lifetime.value.bytes
    numbers = [number for number in sums if number is not None]
    inside = sum(sum(sums[number]) for number in numbers)
    whole = sum(map(sum, sums.values()))
    if not 2 <= len(numbers) <= MAX_LAYERS or 2 * inside < whole:
        return []
    outside = [[None, sums[None]]] if None in sums else []
    return [*([number, sums[number]] for number in sorted(numbers)), *outside]
