"""The physical axes of a torus, and the parts of them that mesh axes share.

If a mesh has more axes than the torus, or a longer one, several mesh axes lie on one physical axis.
On a ring of 16 chips, ``X=4, Y=4`` puts the devices along ``Y`` next to each other, in lines of 4
chips, and those along ``X`` 4 chips apart. A message along ``X`` crosses 4 links, and each link
carries the messages of 4 groups, so that a group has a quarter of its bandwidth.

Mesh axes are placed as by JAX's ``create_device_mesh`` with ``allow_split_physical_axes``: the
minor axes, which communicate most, come first; each is placed on whole physical axes if possible,
otherwise on axes that no other mesh axis uses. (JAX's documentation describes the latter the other
way round.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from shardcore.calculus.hardware import Hardware
from shardcore.calculus.slices import divisors, fits, shape_of

_MOST_PLACEMENTS = 4096
"""How many placements of one mesh axis are compared at most."""


@dataclass(frozen=True)
class PhysicalAxis:
    """An axis of a torus, or the part of one that a mesh axis or a sub-axis occupies."""

    size: int
    """Number of chips."""
    wraps_around: bool
    """Whether the last chip is linked to the first."""
    stride: int = 1
    """The distance of neighbours in chips; above 1, as many groups share each link."""
    shared: int | None = None
    """The number of the physical axis if several mesh axes share it."""

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
    """Return the parts of physical axes for mesh axes of these ``sizes``, and the slice's shape.

    ``None`` if each mesh axis can be a physical axis, or if the possible slices are unknown.
    """
    if fits(sizes.values(), hardware):
        return None
    shape = shape_of(sizes.values(), hardware)
    return None if shape is None else (shared_on(sizes, shape, hardware), shape)


def shared_on(sizes: Mapping[str, int], shape: Sequence[int], hardware: Hardware) -> Placement:
    """Return the parts of the physical axes of a slice of ``shape`` for mesh axes of these
    ``sizes``, whose product is the number of chips."""
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
    """Return ``parts`` with the parts of each physical axis merged.

    A group along several parts has its devices in order along the axis; the links between its first
    and last device are shared by the groups of the devices in between.
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
