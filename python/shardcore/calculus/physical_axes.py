"""The physical axes of a torus, and the parts of them that mesh axes share.

A mesh with more axes than the torus has, or with one that is longer, has mesh axes that lie on the
same physical axis: of 16 chips in a ring, ``X=4, Y=4`` puts the devices along ``Y`` next to each
other, in a line of 4 chips, and those along ``X`` 4 chips apart. A message along ``X`` crosses 4
links, and each link carries those of 4 groups, so that a group has a quarter of its bandwidth.

Mesh axes are placed as JAX's ``create_device_mesh`` does with ``allow_split_physical_axes``: the
minor ones first, which communicate most, each on whole physical axes where there are some, and
otherwise on those that no other mesh axis is on. JAX documents the latter, and does the reverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from shardcore.calculus.hardware import Hardware
from shardcore.calculus.slices import divisors, fits, shape_of

_MOST_PLACEMENTS = 4096
"""The most placements of one mesh axis that are compared."""


@dataclass(frozen=True)
class PhysicalAxis:
    """One axis of a torus, or the part of one that a mesh axis or a sub-axis lies on."""

    size: int
    """Number of chips."""
    wraps_around: bool
    """Whether the last chip is linked to the first."""
    stride: int = 1
    """Distance of neighbours in chips, above 1 for parts; as many groups share each link."""
    shared: int | None = None
    """The number of the physical axis, where several mesh axes lie on it."""

    def __str__(self) -> str:
        return f"{self.size}{' (ring)' if self.wraps_around else ''}"

    @property
    def hops(self) -> int:
        """The most hops between two chips."""
        return self.stride * (self.size // 2 if self.wraps_around else self.size - 1)


Placement = dict[str, tuple[PhysicalAxis, ...]]


def shared_axes(
    sizes: Mapping[str, int], hardware: Hardware
) -> tuple[Placement, tuple[int, ...]] | None:
    """Return parts of physical axes for mesh axes of these ``sizes``, and the shape of the slice.

    ``None`` where each mesh axis can be a physical axis, or where it is not known which slices
    there are.
    """
    if fits(sizes.values(), hardware):
        return None
    shape = shape_of(sizes.values(), hardware)
    return None if shape is None else (shared_on(sizes, shape, hardware), shape)


def shared_on(sizes: Mapping[str, int], shape: Sequence[int], hardware: Hardware) -> Placement:
    """Return parts of the physical axes of a slice of ``shape`` for mesh axes of these ``sizes``,
    whose product is the number of its chips."""
    taken = [1] * len(shape)
    found: Placement = {}
    for name, size in reversed(tuple(sizes.items())):
        free = [chips // used for chips, used in zip(shape, taken, strict=True)]
        best = max(
            islice(_factors(size, free), _MOST_PLACEMENTS),
            key=lambda factors: _preference(factors, shape, taken),
        )
        parts = []
        for at, factor in enumerate(best):
            if factor > 1:
                end = taken[at] * factor
                closes = end == shape[at] and hardware.wraps_around(shape[at])
                is_shared = factor < shape[at]
                parts.append(PhysicalAxis(factor, closes, taken[at], at if is_shared else None))
                taken[at] = end
        found[name] = tuple(parts)
    return {name: found[name] for name in sizes}


def _preference(
    factors: Sequence[int], shape: Sequence[int], taken: Sequence[int]
) -> tuple[int, int, int, tuple[int, ...]]:
    whole = [factor for factor, size in zip(factors, shape, strict=True) if factor == size > 1]
    alone = [factor for factor, used in zip(factors, taken, strict=True) if used == 1]
    return math.prod(whole), len(whole), math.prod(alone), tuple(factors)


def _factors(size: int, free: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to write ``size`` as a product of divisors of ``free``, the largest first."""
    if not free:
        if size == 1:
            yield ()
        return
    most = math.gcd(size, free[0])
    rest = math.prod(free[1:])
    for factor in reversed(divisors(most, most)):
        if rest % (size // factor) == 0:
            yield from ((factor, *others) for others in _factors(size // factor, free[1:]))


def joined(parts: Iterable[PhysicalAxis]) -> list[PhysicalAxis]:
    """Return ``parts`` with those of one physical axis as one.

    A group along several parts has its devices in order along the axis, and as many groups share
    the links as devices of others lie between the first and the last of them.
    """
    found: list[PhysicalAxis] = []
    of_axis: dict[int, list[PhysicalAxis]] = {}
    for part in parts:
        if part.shared is None:
            found.append(part)
        else:
            of_axis.setdefault(part.shared, []).append(part)
    for number, own in of_axis.items():
        major = max(own, key=lambda part: part.stride)
        size = math.prod(part.size for part in own)
        stride = major.stride * major.size // size
        found.append(PhysicalAxis(size, major.wraps_around, stride, number))
    return found
