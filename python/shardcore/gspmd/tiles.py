"""Tile assignments: which device holds which tile of a tensor.

A tile assignment is an array of device ids. Its leading dims are those of the tensor, with the
numbers of tiles as sizes; the others are subgroups, whose devices share a tile. The devices are
either listed, or an *iota*: 0, 1, 2, ... reshaped to ``reshape`` and transposed by ``perm``.

An array that is a reordering of mesh axes is a sequence of :class:`Digit`: in mixed radix, the
number of a device has the digits of the number of its tile in another order.

Source: XLA's tile assignments (HloSharding V2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from shardcore.bounded import items, shown
from shardcore.gspmd.cursor import invalid

__all__ = ["MAX_LISTED", "Digit", "TileAssignment", "digits_of_list", "split_digits"]

MAX_LISTED = 1 << 20
"""The largest number of devices that are listed one by one."""


class Digit(NamedTuple):
    """One digit of a tile's number: ``size`` values, ``stride`` devices apart."""

    stride: int
    size: int


def split_digits(digits: list[Digit], dims: tuple[int, ...]) -> list[list[Digit]] | None:
    """Split ``digits``, major to minor, among the dims; ``None`` if the sizes do not fit."""
    rest = [digit for digit in reversed(digits) if digit.size > 1]
    dealt: list[list[Digit]] = []
    for dim in dims:
        mine: list[Digit] = []
        left = dim
        while left > 1:
            if not rest:
                return None
            stride, size = rest.pop()
            if left % size == 0:
                mine.append(Digit(stride, size))
                left //= size
            elif size % left == 0:
                mine.append(Digit(stride * (size // left), left))
                rest.append(Digit(stride, size // left))
                left = 1
            else:
                return None
        dealt.append(mine)
    return dealt


def digits_of_list(places: list[int]) -> list[Digit] | None:
    """Find the digits, major to minor, that enumerate ``places``; ``None`` if there are none."""
    found: list[Digit] = []
    total, length = len(places), 1
    if not places or places[0] != 0:
        return None
    while length < total:
        stride = places[length]
        size = 1
        while size * length < total and places[size * length] == size * stride:
            size += 1
        if total % (size * length):
            return None
        for at in range(length, size * length):
            if places[at] != places[at % length] + at // length * stride:
                return None
        found.append(Digit(stride, size))
        length *= size
    return found[::-1]


@dataclass(frozen=True)
class TileAssignment:
    """Device ids arranged in the shape ``dims``: an iota, or listed in ``devices``."""

    dims: tuple[int, ...]
    reshape: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    devices: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for field in ("dims", "reshape", "perm"):
            object.__setattr__(self, field, items(getattr(self, field), "dims"))
        if self.devices is not None and not isinstance(self.devices, tuple):
            object.__setattr__(self, "devices", items(self.devices, "devices", MAX_LISTED))

    @staticmethod
    def iota(
        dims: tuple[int, ...], reshape: tuple[int, ...], perm: tuple[int, ...] | None = None
    ) -> TileAssignment:
        """Return the iota in its canonical form, with the fewest dims in ``reshape``.

        Raises:
            ValueError: ``perm`` is no permutation of the dims of ``reshape``.
        """
        reshape = items(reshape, "dims")
        identity = tuple(range(len(reshape)))
        order = items(perm, "dims") if perm else identity
        if tuple(sorted(order)) != identity:
            raise ValueError(f"{shown(order)} is no permutation of {len(reshape)} dims")
        runs: list[list[int]] = []
        for axis in (axis for axis in order if reshape[axis] > 1):
            skipped = reshape[runs[-1][-1] + 1 : axis] if runs else ()
            if runs and axis > runs[-1][-1] and prod(skipped) == 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        by_place = sorted(runs)
        sizes = tuple(prod(reshape[axis] for axis in run) for run in by_place)
        return TileAssignment(
            dims, sizes or (1,), tuple(by_place.index(run) for run in runs) or (0,)
        )

    @property
    def is_iota(self) -> bool:
        """Whether the devices are an iota, not a list."""
        return self.devices is None

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return prod(self.dims)

    def digits(self) -> list[Digit]:
        """Return the digits of an iota, major to minor."""
        strides = [prod(self.reshape[axis + 1 :]) for axis in range(len(self.reshape))]
        return [Digit(strides[axis], self.reshape[axis]) for axis in self.perm]

    def listed(self) -> list[int]:
        """Return the devices in row-major order of the tiles."""
        if self.devices is not None:
            return list(self.devices)
        if self.num_devices > MAX_LISTED:
            raise invalid(
                f"{self.num_devices} devices are too many to list",
                "cut the dims where the axes are cut",
            )
        places = [0]
        for stride, size in self.digits():
            places = [place + step * stride for place in places for step in range(size)]
        return places

    def reshaped(self, dims: tuple[int, ...]) -> TileAssignment:
        """Return the same devices in another shape."""
        return TileAssignment(dims, self.reshape, self.perm, self.devices)

    def transposed(self, order: list[int]) -> TileAssignment:
        """Return the array with its dims in another order; listed if it is no iota."""
        dims = tuple(self.dims[at] for at in order)
        if [at for at in order if self.dims[at] > 1] == [
            at for at, size in enumerate(self.dims) if size > 1
        ]:
            return self.reshaped(dims)
        dealt = split_digits(self.digits(), self.dims) if self.is_iota else None
        if dealt is not None:
            return of_digits(dims, [digit for at in order for digit in dealt[at]])
        devices = self.listed()
        places = [0]
        for at in order:
            stride = prod(self.dims[at + 1 :])
            places = [p + step * stride for p in places for step in range(self.dims[at])]
        return TileAssignment(dims, devices=tuple(devices[place] for place in places))

    def with_sorted_groups(self) -> TileAssignment:
        """Return the array with the devices along the last dim in ascending order."""
        if not self.dims:
            return self
        size = self.dims[-1]
        outer = (prod(self.dims[:-1]), size)
        dealt = split_digits(self.digits(), outer) if self.is_iota else None
        if dealt is not None:
            dealt[-1].sort(reverse=True)
            return of_digits(self.dims, [digit for digits in dealt for digit in digits])
        devices = self.listed()
        groups = (sorted(devices[at : at + size]) for at in range(0, len(devices), size))
        return TileAssignment(self.dims, devices=tuple(d for group in groups for d in group))

    def __str__(self) -> str:
        text = f"devices=[{','.join(map(str, self.dims))}]"
        if self.devices is not None:
            return text + ",".join(map(str, self.devices))
        text += f"<=[{','.join(map(str, self.reshape))}]"
        return text + (f"T({','.join(map(str, self.perm))})" if len(self.perm) > 1 else "")


def of_digits(dims: tuple[int, ...], digits: list[Digit]) -> TileAssignment:
    """Return the iota with these digits, major to minor; they use every device once."""
    by_place = sorted(digits, reverse=True)
    perm = tuple(by_place.index(digit) for digit in digits)
    return TileAssignment.iota(dims, tuple(digit.size for digit in by_place), perm)
