"""Every sensible way from one sharding of an array to another.

An axis that the source and the target have in different places tells what has to happen:

===================  ===================  ==========================================
in the source        in the target        step
===================  ===================  ==========================================
cuts a dim           nowhere              ``all_gather``
nowhere              cuts a dim           ``slice``, free
cuts a dim           cuts another dim     ``all_to_all``
has to be summed     nowhere              ``all_reduce``
has to be summed     cuts a dim           ``reduce_scatter``
===================  ===================  ==========================================

Slices come first, since they make smaller what follows; then sums, moves and gathers. Where an
AllReduce is followed by gathers there is a second way: ReduceScatter, and gather all axes together
over the links of all of them. A dim whose axes end up in another order takes a ``permute``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Layout: TypeAlias = tuple[tuple[str, ...], ...]
"""For each dim the axes that cut it, major to minor."""


@dataclass(frozen=True)
class Step:
    """One collective of a strategy, without sizes."""

    op: str
    tensor: str
    axes: tuple[str, ...]
    dim: int | None
    """The dim that gets the axes, for ops that cut one."""
    before: Layout
    before_unreduced: tuple[str, ...]
    after: Layout
    after_unreduced: tuple[str, ...]

    @property
    def volume(self) -> Layout:
        """The layout whose bytes on a device are V of the time model."""
        if self.op in ("all_gather", "all_to_all"):
            gone = set(self.axes)
            return tuple(tuple(axis for axis in cut if axis not in gone) for cut in self.before)
        return self.before


class _Way:
    """Builds steps one after the other."""

    def __init__(self, tensor: str, source: Layout, unreduced: Sequence[str]) -> None:
        self.tensor = tensor
        self.layout = [list(cut) for cut in source]
        self.unreduced = list(unreduced)
        self.steps: list[Step] = []

    def apply(self, op: str, axes: Sequence[str], dim: int | None = None) -> None:
        """Add a step along ``axes``, if there are any."""
        if not axes:
            return
        before = self.frozen()
        before_unreduced = tuple(self.unreduced)
        gone = set(axes)
        if op != "permute":
            self.layout = [[axis for axis in cut if axis not in gone] for cut in self.layout]
            self.unreduced = [axis for axis in self.unreduced if axis not in gone]
            if dim is not None:
                self.layout[dim] += axes
        self.steps.append(
            Step(
                op,
                self.tensor,
                tuple(axes),
                dim,
                before,
                before_unreduced,
                self.frozen(),
                tuple(self.unreduced),
            )
        )

    def frozen(self) -> Layout:
        """The present layout."""
        return tuple(map(tuple, self.layout))


def ways(
    tensor: str, source: Layout, target: Layout, unreduced: Sequence[str] = ()
) -> list[list[Step]]:
    """Return every sensible sequence of steps from ``source`` to ``target``, the plain one first.

    ``unreduced`` are axes that the source has still to be summed over; the target is summed.
    """
    start = {axis: dim for dim, cut in enumerate(source) for axis in cut}
    goal = {axis: dim for dim, cut in enumerate(target) for axis in cut}
    gathered = [axis for cut in source for axis in cut if axis not in goal]
    reduced = [axis for axis in unreduced if axis not in goal]
    found = [_way(tensor, source, target, unreduced, start, goal, gathered, reduced, None)]
    if reduced and gathered:
        for dim in range(len(source)):
            found.append(
                _way(tensor, source, target, unreduced, start, goal, gathered, reduced, dim)
            )
    return found


def _way(
    tensor: str,
    source: Layout,
    target: Layout,
    unreduced: Sequence[str],
    start: dict[str, int],
    goal: dict[str, int],
    gathered: list[str],
    reduced: list[str],
    scatter: int | None,
) -> list[Step]:
    way = _Way(tensor, source, unreduced)
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
            way.apply("all_to_all", moved, dim)
    way.apply("all_gather", gathered if scatter is None else [*gathered, *reduced])
    for dim, axes in enumerate(new):
        if dim in busy:
            way.apply("slice", axes, dim)
    for dim, cut in enumerate(target):
        if way.layout[dim] != list(cut):
            way.apply("permute", cut)
            way.layout[dim] = list(cut)
    if way.steps and way.steps[-1].op == "permute":
        last = way.steps[-1]
        way.steps[-1] = Step(
            last.op,
            last.tensor,
            last.axes,
            None,
            last.before,
            last.before_unreduced,
            way.frozen(),
            last.after_unreduced,
        )
    return way.steps
