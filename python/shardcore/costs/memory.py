"""What is in the memory of one device over the course of its program."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from shardcore.bounded import json_text, shown
from shardcore.cached_property import cached_property
from shardcore.costs.records import LiveValue
from shardcore.costs.scopes import scope_of
from shardcore.units import plural

GROUPS = ("scope", "line", "role", "value")
"""The groupings of :meth:`MemoryTimeline.by`."""

HOLES = "holes between buffers"
"""The name of what is allocated where no buffer is."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class MemoryPoint:
    """An op of the program, and the memory in use while it runs."""

    name: str
    """The op's full name, such as ``stablehlo.dot_general``."""
    value: str | None
    """The name of its first result."""
    location: str | None
    scope: str
    """The enclosing name scopes, ``decoder/layer_3/mlp``; empty outside of scopes."""
    direction: str
    """``forward``, ``backward`` or ``recomputed``."""
    bytes: int
    """Bytes in memory, including arguments."""


@dataclass(frozen=True)
class Lifetime:
    """A value in memory, with its lifetime."""

    value: LiveValue
    role: str
    """``argument`` or ``output``, which are live throughout, or ``temporary``."""
    scope: str
    """The name scopes around the op that computes it; empty for arguments."""
    direction: str
    first: int
    """The first index in :attr:`MemoryTimeline.points` at which it is live."""
    last: int
    """The last index at which it is live."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        rest = {name: value for name, value in vars(self).items() if name != "value"}
        return {**self.value.record(), **rest}


@dataclass(frozen=True, repr=False)
class MemoryTimeline:
    """The values in memory over time, in the order in which the compiler schedules ops.

    A loop body appears once, at the place of the loop. ``str()`` is a chart, :meth:`svg` a picture,
    :meth:`record` and :meth:`to_json` plain data.
    """

    hardware: str
    limit: float
    """Bytes of memory of the chip."""
    policy: str
    """The policy that made the per-device program."""
    points: tuple[MemoryPoint, ...]
    """The ops, in the order in which they run."""
    values: tuple[Lifetime, ...]
    """Arguments, then outputs, then others in the order in which they come into memory."""
    peak_value: str | None = None
    """The first result of the op that the peak is said to be at."""

    @cached_property
    def peak(self) -> int:
        """The place in :attr:`points` of an op at which most bytes are in memory: that of
        :attr:`peak_value`, or the first one; 0 if there are no ops.
        """
        most = max((point.bytes for point in self.points), default=0)
        places = [place for place, point in enumerate(self.points) if point.bytes == most]
        named = (place for place in places if self.points[place].value == self.peak_value)
        return next(named, places[0] if places else 0)

    def live(self, place: int) -> tuple[Lifetime, ...]:
        """Return the values that are live at an index in :attr:`points`, the largest first."""
        there = (row for row in self.values if row.first <= place <= row.last)
        return tuple(sorted(there, key=lambda row: -row.value.bytes))

    def by(self, group: str = "scope", places: Iterable[int] | None = None) -> dict[str, list[int]]:
        """Return the live bytes at each point, summed by group, the group largest at the peak
        first.

        Args:
            group: ``scope``: the scope and pass of the op that computes a value, with repeated
                layers merged; ``line``: its source line; ``role``; or ``value``. Arguments and
                outputs form a scope and a line of their own.
            places: indices into :attr:`points`, ascending; by default all.

        Raises:
            ValueError: ``group`` is unknown.
        """
        if group not in GROUPS:
            raise ValueError(f"expected one of {', '.join(GROUPS)}, got {shown(group)}")
        chosen = list(range(len(self.points))) if places is None else list(places)
        changes: dict[str, dict[int, int]] = {}
        sizes: dict[str, int] = {}
        for row in self.values:
            name = _group(row, group)
            first, end = _index(chosen, row.first - 1), _index(chosen, row.last)
            if first < end:
                steps = changes.setdefault(name, {})
                steps[first] = steps.get(first, 0) + row.value.bytes
                steps[end] = steps.get(end, 0) - row.value.bytes
            if row.first <= self.peak <= row.last:
                sizes[name] = sizes.get(name, 0) + row.value.bytes
        names = sorted(changes, key=lambda name: -sizes.get(name, 0))
        count = range(len(chosen))
        return {name: list(accumulate(changes[name].get(at, 0) for at in count)) for name in names}

    def svg(self, by: str = "scope") -> str:
        """Return an SVG: the bytes in memory over the program, with a colour for each group.

        Raises:
            ValueError: as for :meth:`by`.
        """
        from shardcore.report.memory_svg import memory_svg

        return memory_svg(self, by)

    def record(self) -> dict[str, Any]:
        """Return everything as plain data; ``first``, ``last`` and ``peak`` are indices into
        ``points``.
        """
        at_peak = [self.peak] if self.points else []
        return {
            "hardware": self.hardware,
            "limit_bytes": self.limit,
            "policy": self.policy,
            "peak": self.peak if self.points else None,
            "peak_bytes": self.points[self.peak].bytes if self.points else 0,
            "peak_by_scope": {name: row[0] for name, row in self.by("scope", at_peak).items()},
            "peak_by_line": {name: row[0] for name, row in self.by("line", at_peak).items()},
            "points": [asdict(point) for point in self.points],
            "values": [row.record() for row in self.values],
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Return :meth:`record` as JSON, indented by up to 80 spaces a level.

        Raises:
            ValueError: ``indent`` is not from 0 to 80.
        """
        return json_text(self.record(), indent)

    def __str__(self) -> str:
        from shardcore.report.memory_table import memory_text

        return memory_text(self)

    def __repr__(self) -> str:
        peak = self.points[self.peak].bytes if self.points else 0
        ops = plural(len(self.points), "op")
        return f"<shardcore.MemoryTimeline of {ops}, {plural(peak, 'byte')} at the peak>"

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class LiveRanges:
    """The values in memory over time, as in a :class:`MemoryTimeline`, by their names alone."""

    ops: tuple[str | None, ...]
    """The first result of each op, in scheduled order."""
    values: tuple[tuple[str, int, int, int], ...]
    """The name and the bytes of each value, and the first and the last index in :attr:`ops` at
    which it is live."""

    @cached_property
    def sizes(self) -> list[int]:
        """The bytes in memory at each op."""
        return live_bytes(len(self.ops), (row[1:] for row in self.values))

    @property
    def peak_bytes(self) -> int:
        """The most bytes in memory."""
        return max(self.sizes, default=0)


def live_bytes(count: int, values: Iterable[tuple[int, int, int]]) -> list[int]:
    """Return the live bytes at each of ``count`` points, given the bytes of each value and the
    first and the last point at which it is live."""
    changes = [0] * (count + 1)
    for size, first, last in values:
        changes[first] += size
        changes[last + 1] -= size
    return list(accumulate(changes))[:count]


def timeline_of(
    moments: Iterable[dict[str, Any]], rows: Iterable[dict[str, Any]], holes: Iterable[LiveValue]
) -> tuple[tuple[MemoryPoint, ...], tuple[Lifetime, ...]]:
    """Return the points and the values from the engine's rows; ``holes`` are there throughout."""
    moments, values = list(moments), []
    for row in rows:
        role, first, last = row.pop("role"), row.pop("first"), row.pop("last")
        scope, direction = scope_of(row.pop("stack"))
        values.append(Lifetime(LiveValue(**row), role, scope, direction, first, last))
    end = len(moments) - 1
    values += [Lifetime(hole, "temporary", HOLES, "forward", 0, end) for hole in holes]
    sizes = live_bytes(len(moments), ((row.value.bytes, row.first, row.last) for row in values))
    points = []
    for moment, size in zip(moments, sizes, strict=True):
        scope, direction = scope_of(moment.pop("stack"))
        points.append(MemoryPoint(**moment, scope=scope, direction=direction, bytes=size))
    return tuple(points), tuple(values)


def _index(places: list[int], place: int) -> int:
    """How many of ``places`` are at most ``place``."""
    return bisect_right(places, place)


def _group(row: Lifetime, group: str) -> str:
    """The group to which the memory of ``row`` is counted."""
    if group == "role":
        return row.role
    if group == "value":
        return row.value.name
    if row.role != "temporary":
        return f"({row.role}s)"
    if group == "line":
        return row.value.location or "(no line)"
    name = _NUMBER.sub("*", row.scope) or "(no scope)"
    return name if row.direction == "forward" else f"{name}, {row.direction}"
