"""Computes the devices that hold a block, without enumerating the devices of the mesh.

The index of a block along a dim is a mixed-radix number with one digit for each axis or sub-axis
that shards the dim: the coordinate of its devices along that axis. A block fixes these digits; its
devices have all coordinates along the remaining parts of the axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from shardcore._core import Mesh, TensorSharding


class _Axis:
    """A mesh axis, split into the sub-axes that shard dims and the parts between."""

    def __init__(self, size: int, parts: Sequence[tuple[int, int]]) -> None:
        self.size = size
        self.strides = [size // (pre_size * part_size) for pre_size, part_size in parts]
        """The stride of each part along the axis."""
        self._sizes = [part_size for _, part_size in parts]
        ends = [1]
        for pre_size, part_size in sorted(parts):
            ends += [pre_size, pre_size * part_size]
        ends.append(size)
        self.is_regular = all(end % start == 0 for start, end in itertools.pairwise(ends))
        """Whether the end of each part divides the start of the next, as in valid shardings."""
        self._gaps = [
            (end // start, size // end)
            for start, end in zip(ends[::2], ends[1::2], strict=True)
            if end > start
        ]

    @property
    def num_places(self) -> int:
        """How many coordinates along a regular axis have the same digits in all its parts."""
        return math.prod(size for size, _ in self._gaps)

    def places(self, digits: Sequence[int]) -> Iterator[int]:
        """The coordinates along the axis whose parts have these digits, in order."""
        known = list(zip(digits, self.strides, self._sizes, strict=True))
        if not self.is_regular:
            for place in range(self.size):
                if all(place // stride % size == digit for digit, stride, size in known):
                    yield place
            return
        base = sum(digit * stride for digit, stride, _ in known)
        yield from (base + offset for offset in _offsets(self._gaps))


def _offsets(gaps: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Sums of a multiple of each stride below its size; the last one varies fastest."""
    if not gaps:
        yield 0
        return
    (size, stride), minor = gaps[0], gaps[1:]
    for index in range(size):
        for offset in _offsets(minor):
            yield index * stride + offset


class Placement:
    """The devices that hold each block of ``sharding`` over ``mesh``."""

    def __init__(self, sharding: TensorSharding, mesh: Mesh) -> None:
        self.mesh = mesh
        self.counts = tuple(sharding.sharded_size(dim) for dim in range(sharding.rank))
        """The number of blocks along each dim."""
        self._device_ids = mesh.device_ids
        parts: dict[str, list[tuple[int, int]]] = {axis.name: [] for axis in mesh.axes}
        self._digits: list[list[tuple[str, int]]] = []
        """For each dim the axis and the radix of each digit of its block indices."""
        for dim in sharding.dims:
            for axis in dim.axes:
                parts[axis.name].append((axis.pre_size or 1, axis.size_in(mesh)))
            self._digits.append([(axis.name, axis.size_in(mesh)) for axis in dim.axes])
        self._axes = {axis.name: _Axis(axis.size, parts[axis.name]) for axis in mesh.axes}
        regular = all(axis.is_regular for axis in self._axes.values())
        self.copies = (
            math.prod(axis.num_places for axis in self._axes.values()) if regular else None
        )
        """The number of devices of each block; ``None`` if it differs between blocks."""

    def devices(self, block: Sequence[int]) -> Iterator[int]:
        """The ids of the devices that hold the block with these indices, in mesh order."""
        digits: dict[str, list[int]] = {name: [] for name in self._axes}
        for number, known in zip(block, self._digits, strict=True):
            below = math.prod(size for _, size in known)
            for name, size in known:
                below //= size
                digits[name].append(number // below % size)
        for position in self._positions(list(self._axes.items()), digits):
            yield position if self._device_ids is None else self._device_ids[position]

    def _positions(
        self, axes: Sequence[tuple[str, _Axis]], digits: dict[str, list[int]]
    ) -> Iterator[int]:
        """Mesh positions along ``axes``, major to minor, at which the parts have ``digits``."""
        if not axes:
            yield 0
            return
        (name, axis), minor = axes[0], axes[1:]
        stride = math.prod(other.size for _, other in minor)
        for place in axis.places(digits[name]):
            for position in self._positions(minor, digits):
                yield place * stride + position


def device_text(placement: Placement, block: Sequence[int], limit: int = 6) -> str:
    """The devices that hold ``block``: id ranges such as ``0-3``, or their number if many."""
    shown = list(itertools.islice(placement.devices(block), 4 * limit + 1))
    runs: list[list[int]] = []
    for device in shown:
        if runs and device == runs[-1][-1] + 1:
            runs[-1].append(device)
        else:
            runs.append([device])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(shown) <= 4 * limit and len(parts) <= limit:
        return ",".join(parts)
    number = "more" if placement.copies is None else f"{placement.copies} devices"
    return f"{','.join(map(str, shown[:2]))},… ({number})"


def num_blocks(placement: Placement) -> int:
    """The number of different blocks."""
    return math.prod(placement.counts)
