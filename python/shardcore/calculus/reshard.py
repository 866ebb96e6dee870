"""Sequences of collectives (*ways*) from one sharding of an array to another.

Each axis that source and target use differently needs a step:

===================  ===================  ==========================================
in the source        in the target        step
===================  ===================  ==========================================
shards a dim         unused               ``all_gather``
unused               shards a dim         ``slice``, free
shards a dim         shards another dim   ``all_to_all``
unreduced            unused               ``all_reduce``
unreduced            shards a dim         ``reduce_scatter``
===================  ===================  ==========================================

Slices come first, because they make later operands smaller; then sums, moves and gathers. If an
AllReduce is followed by gathers, there is a second way: a ReduceScatter, and one AllGather of all
axes over all their links. The blocks of an axis are contiguous only if it is the minor-most axis of
its dim; otherwise a ``permute`` makes it minor-most before it leaves the dim. A ``permute`` also
reorders the axes of a dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shardcore._core import AxisRef

Layout: TypeAlias = tuple[tuple[AxisRef, ...], ...]
"""For each dim the axes that shard it, major to minor."""


@dataclass(frozen=True)
class Step:
    """One collective of a strategy, without sizes."""

    op: str
    tensor: str
    axes: tuple[AxisRef, ...]
    dim: int | None
    """The dim that gets the axes, for ops that shard a dim."""
    before: Layout
    before_unreduced: tuple[AxisRef, ...]
    after: Layout
    after_unreduced: tuple[AxisRef, ...]

    @property
    def volume(self) -> Layout:
        """The layout whose bytes on a device are the V of the time model."""
        if self.op in ("all_gather", "all_to_all"):
            gone = set(self.axes)
            return tuple(tuple(axis for axis in cut if axis not in gone) for cut in self.before)
        return self.before


class _Way:
    """A sequence of steps under construction."""

    def __init__(
        self,
        tensor: str,
        source: Layout,
        unreduced: Sequence[AxisRef],
        kept: Sequence[AxisRef] = (),
    ) -> None:
        self.tensor = tensor
        self.layout = [list(cut) for cut in source]
        self.unreduced = [*kept, *unreduced]
        self.steps: list[Step] = []

    def apply(self, op: str, axes: Sequence[AxisRef], dim: int | None = None) -> None:
        """Add a step along ``axes``, unless there are none."""
        if not axes:
            return
        before, before_unreduced = self.frozen(), tuple(self.unreduced)
        gone = set(axes)
        self.layout = [[axis for axis in cut if axis not in gone] for cut in self.layout]
        self.unreduced = [axis for axis in self.unreduced if axis not in gone]
        if dim is not None:
            self.layout[dim] += axes
        self._add(op, axes, dim, before, before_unreduced)

    def reorder(self, dim: int, order: Sequence[AxisRef]) -> None:
        """Bring the axes of ``dim`` into ``order``, by a permute if the order differs."""
        if self.layout[dim] == list(order):
            return
        before = self.frozen()
        self.layout[dim] = list(order)
        self._add("permute", order, None, before, tuple(self.unreduced))

    def free(self, axes: Sequence[AxisRef]) -> None:
        """Make ``axes`` the minor-most axes of their dims, so that they can be removed."""
        for dim, cut in enumerate(self.layout):
            kept = [axis for axis in cut if axis not in axes]
            if cut[: len(kept)] != kept:
                self.reorder(dim, [*kept, *(axis for axis in cut if axis in axes)])

    def _add(
        self,
        op: str,
        axes: Sequence[AxisRef],
        dim: int | None,
        before: Layout,
        before_unreduced: tuple[AxisRef, ...],
    ) -> None:
        after, summed = self.frozen(), tuple(self.unreduced)
        self.steps.append(
            Step(op, self.tensor, tuple(axes), dim, before, before_unreduced, after, summed)
        )

    def frozen(self) -> Layout:
        """The current layout."""
        return tuple(map(tuple, self.layout))


def ways(
    tensor: str,
    source: Layout,
    target: Layout,
    unreduced: Sequence[AxisRef] = (),
    kept: Sequence[AxisRef] = (),
) -> list[list[Step]]:
    """Return sequences of steps from ``source`` to ``target``, the direct one first.

    The source is unreduced along ``unreduced``; the target stays unreduced along ``kept``.
    """
    unreduced = [axis for axis in unreduced if axis not in kept]
    start = {axis: dim for dim, cut in enumerate(source) for axis in cut}
    goal = {axis: dim for dim, cut in enumerate(target) for axis in cut}
    gathered = [axis for cut in source for axis in cut if axis not in goal]
    reduced = [axis for axis in unreduced if axis not in goal]
    found = [_way(tensor, source, target, unreduced, start, goal, gathered, reduced, None, kept)]
    if reduced and gathered:
        for dim in range(len(source)):
            found.append(
                _way(tensor, source, target, unreduced, start, goal, gathered, reduced, dim, kept)
            )
    return found


def _way(
    tensor: str,
    source: Layout,
    target: Layout,
    unreduced: Sequence[AxisRef],
    start: dict[AxisRef, int],
    goal: dict[AxisRef, int],
    gathered: list[AxisRef],
    reduced: list[AxisRef],
    scatter: int | None,
    kept: Sequence[AxisRef],
) -> list[Step]:
    way = _Way(tensor, source, unreduced, kept)
    busy = {start[axis] for axis in gathered}
    new = [[axis for axis in cut if axis not in start and axis not in unreduced] for cut in target]
    for dim, axes in enumerate(new):
        if dim not in busy:
            way.apply("slice", axes, dim)
    if scatter is None:
        way.apply("all_reduce", reduced)
    else:
        way.apply("reduce_scatter", reduced, scatter)
    for dim, cut in enumerate(target):
        way.apply("reduce_scatter", [axis for axis in cut if axis in unreduced], dim)
    for dim, cut in enumerate(target):
        for origin in range(len(source)):
            moved = [axis for axis in cut if start.get(axis, dim) == origin != dim]
            way.free(moved)
            way.apply("all_to_all", moved, dim)
    leaving = gathered if scatter is None else [*gathered, *reduced]
    way.free(leaving)
    way.apply("all_gather", leaving)
    for dim, axes in enumerate(new):
        if dim in busy:
            way.apply("slice", axes, dim)
    for dim, cut in enumerate(target):
        way.reorder(dim, cut)
    return way.steps
