"""The peak memory of a program, from what two programs with fewer layers have in memory.

The peak is the most bytes at any op. At each op the bytes grow linearly in the number of layers: at
the loss perhaps not at all, in the backward pass by what a layer keeps. So with all layers the peak
may be at another op than with few. The second of the two programs has one layer more; what it has
more at an op is what each further layer adds there. That is no more than the values of its added
layer that are in memory there: ops may also run in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TypeVar

from shardcore.costs.memory import LiveRanges, live_bytes

_T = TypeVar("_T")


class Peaks:
    """Extrapolates the peaks of a program."""

    def __init__(self, small: Set[str], large: Set[str], layers: int) -> None:
        """Take the names of the values of the two programs, and how many layers the whole has more
        than the second."""
        self._both, self._added, self._layers = small & large, large - small, layers

    def of(self, small: LiveRanges, large: LiveRanges) -> int:
        """Return the bytes at the peak of the whole program.

        Args:
            small: what is in memory in the first program.
            large: what is in memory in the second program.
        """
        before = {
            name: size
            for name, size in zip(small.ops, small.sizes, strict=True)
            if name in self._both
        }
        rows = zip(large.ops, large.sizes, self._of_added_layer(large), strict=True)
        more = [
            None if name not in before else max(min(size - before[name], added), 0)
            for name, size, added in rows
        ]
        # The added layer stands for several, from that after the op before it to that before the op
        # behind it.
        most = (max(before or 0, behind or 0) for before, behind in _around(more))
        sizes = zip(large.sizes, most, strict=True)
        return max((size + each * self._layers for size, each in sizes), default=0)

    def _of_added_layer(self, large: LiveRanges) -> list[int]:
        """The bytes at each op of values of the added layer."""
        is_added = [
            name in self._added if name in self._added or name in self._both else None
            for name in large.ops
        ]
        # What partitioning adds, such as gathers, has no name in the program.
        is_inside = [bool(before and behind) for before, behind in _around(is_added)]
        places = {name: place for place, name in enumerate(large.ops)}

        def is_of_layer(name: str, first: int) -> bool:
            if name in self._added or name in self._both:
                return name in self._added
            made = first if large.ops[first] == name else places.get(name, first)
            return is_inside[made]

        own = (
            (size, first, last)
            for name, size, first, last in large.values
            if is_of_layer(name, first)
        )
        return live_bytes(len(large.ops), own)


def _around(values: Sequence[_T | None]) -> Iterator[tuple[_T | None, _T | None]]:
    """For each place, the last known value up to it, and the first from it on."""

    def up_to(each: Sequence[_T | None]) -> list[_T | None]:
        found: list[_T | None] = []
        last: _T | None = None
        for now in each:
            last = last if now is None else now
            found.append(last)
        return found

    return zip(up_to(values), reversed(up_to(values[::-1])), strict=True)
