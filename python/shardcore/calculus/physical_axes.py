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
    links: float
    """The bandwidth of its links, as a multiple of that which the chip's figures give."""
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
                parts.append(part_of(factor, at, taken[at], shape, hardware))
                taken[at] *= factor
        found[name] = tuple(parts)
    return {name: found[name] for name in sizes}


def in_order_of_ids(
    sizes: Mapping[str, int], shape: Sequence[int], hardware: Hardware
) -> Placement | None:
    """Return the parts of the physical axes of a slice of ``shape`` if the ids of its devices
    count along the last axis first, and along the last mesh axis; ``None`` if mesh axes end within
    a physical axis that their sizes do not divide.

    So do JAX's meshes of devices that are neither TPUs nor GPUs.
    """
    at, taken = len(shape) - 1, 1
    found: Placement = {}
    for name, size in reversed(tuple(sizes.items())):
        parts: list[PhysicalAxis] = []
        left = size
        while left > 1:
            free = shape[at] // taken
            factor = math.gcd(left, free)
            if factor not in (left, free):
                return None
            if factor > 1:
                parts.append(part_of(factor, at, taken, shape, hardware))
            taken, left = taken * factor, left // factor
            if taken == shape[at]:
                at, taken = at - 1, 1
        found[name] = tuple(reversed(parts))
    return {name: found[name] for name in sizes}


def part_of(
    size: int, at: int, stride: int, shape: Sequence[int], hardware: Hardware
) -> PhysicalAxis:
    """Return the part of axis ``at`` of ``shape`` that has ``size`` chips, ``stride`` apart."""
    closes = size * stride == shape[at] and hardware.wraps_around(shape[at])
    links = hardware.links_along(at, len(shape))
    return PhysicalAxis(size, closes, links, stride, at if size < shape[at] else None)


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
        found.append(PhysicalAxis(size, major.wraps_around, major.links, stride, number))
    return found


def excess(hardware: Hardware, axes: Placement) -> tuple[str, ...]:
    """Return the note that a slice is more than a pod."""
    used = sorted((p.size for parts in axes.values() for p in parts if p.size > 1), reverse=True)
    notes = []
    if hardware.is_torus and hardware.physical_axes is not None:
        limits = sorted(hardware.pod, reverse=True)
        if len(used) > hardware.physical_axes:
            notes.append(
                f"{hardware.name} has {hardware.physical_axes} physical axes, not {len(used)}"
            )
        elif any(size > limit for size, limit in zip(used, limits, strict=False)):
            notes.append(f"{show(used)} is more than a pod of {hardware.name}, {show(limits)}")
    return tuple(notes)


def sharing(hardware: Hardware, axes: Placement, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the note about mesh axes that share the links of a physical axis."""
    sharers: dict[int, list[str]] = {}
    for name, parts in axes.items():
        for part in parts:
            if part.shared is not None:
                sharers.setdefault(part.shared, []).append(name)
    each = "; ".join(
        f"{', '.join(names)} share the links of an axis of {shape[place]}"
        for place, names in sorted(sharers.items())
    )
    return (f"on {show(shape)} of {hardware.name} {each}",) if each else ()


def show(sizes: Iterable[int]) -> str:
    """Return ``sizes`` as users write a topology."""
    return "x".join(map(str, sizes))
