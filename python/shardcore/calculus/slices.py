"""Slices: tori of chips that a data center network connects, and their shapes.

Devices fill slices in the order of their ids, so the major mesh axes span slices. Without a given
topology, a slice has the shape closest to a cube, and mesh axes lie on whole physical axes of it:
``fsdp=256`` is 16x16 on a pod of v5e; ``fsdp=16, tensor=4`` is 4x4 and 4 on one of v5p.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from shardcore._core import Mesh
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError

_CUBE = 4
"""Large slices of a 3D torus are made of cubes with sides of this many chips."""
_MOST_SHAPES = 4096
"""If there are more possible shapes of slices, which no pod has, none is considered."""
_MOST_AXES = 6
"""Nor are slices of tori with more axes."""
_LARGEST_FACTOR = 1 << 20
"""The largest factor of a number of chips that is searched."""


def slices_of(mesh: Mesh, hardware: Hardware, given: int | None) -> int:
    """Return the number of slices: ``given``, or as many as pods are needed.

    Raises:
        CalculusError: the devices cannot form that many slices (``invalid-topology``).
    """
    devices = mesh.num_devices
    if given is None:
        pod = math.prod(hardware.pod)
        # If the chip's pod is unknown, any number of chips is one slice.
        if not hardware.is_torus or not hardware.pod or devices <= pod or devices % pod:
            return 1
        given = devices // pod
        if _inside(mesh, given) is None:
            return 1
    if given < 1 or devices % given or _inside(mesh, given) is None:
        raise mistake(
            CalculusError,
            "invalid-topology",
            f"{devices} devices along {', '.join(map(str, mesh.axis_names))} do not make {given} "
            "slices",
            hint="slices divide the first mesh axes: data=8,fsdp=4 makes 2, 4, 8, 16 or 32",
            text=str(given),
            filename="<slices>",
        )
    return given


def networked(hardware: Hardware, bytes_per_second: float | None) -> Hardware:
    """Return ``hardware`` with this network bandwidth per chip between slices or nodes.

    Raises:
        CalculusError: it is not above 0 (``invalid-option``).
    """
    if bytes_per_second is None:
        return hardware
    if not 0 < bytes_per_second < 1e30:
        raise mistake(
            CalculusError,
            "invalid-option",
            f"a network of {bytes_per_second:g} bytes a second is not above 0",
            hint="6.25e9 is what a v5p has",
            text=f"{bytes_per_second:g}",
            filename="<dcn>",
        )
    if hardware.is_torus:
        return replace(hardware, dcn_bytes_per_second=bytes_per_second)
    return replace(hardware, node_bytes_per_second=bytes_per_second * hardware.node_size)


def sizes_inside(mesh: Mesh, slices: int) -> dict[str, int]:
    """Return the sizes of the mesh axes within one slice."""
    return _inside(mesh, slices) or {axis.name: axis.size for axis in mesh.axes}


def _inside(mesh: Mesh, slices: int) -> dict[str, int] | None:
    """The sizes within a slice; ``None`` if the slices do not divide the axes."""
    if mesh.num_devices % slices:
        return None
    left, found = slices, {}
    for axis in mesh.axes:
        if left % axis.size == 0:
            left, found[axis.name] = left // axis.size, 1
        elif axis.size % left == 0:
            left, found[axis.name] = 1, axis.size // left
        else:
            return None
    return found


def placed(sizes: dict[str, int], hardware: Hardware) -> dict[str, tuple[int, ...]] | None:
    """Return the physical axes of mesh axes of these ``sizes`` on one slice.

    ``None`` if mesh axes cannot lie on whole physical axes of a slice, or if each can be a physical
    axis on its own: then each is.
    """
    chips = math.prod(sizes.values())
    rank = hardware.physical_axes
    if not hardware.is_torus or rank is None or len(hardware.pod) != rank or rank > _MOST_AXES:
        return None
    used = [size for size in sizes.values() if size > 1]
    is_cubes = _is_part_of_a_cube(chips, rank)
    if fits(used, hardware) and (
        is_cubes or (len(used) == rank and all(size % _CUBE == 0 for size in used))
    ):
        return None
    names = [(name, size) for name, size in sizes.items() if size > 1]
    limits = sorted(hardware.pod, reverse=True)
    for shape in _most_like_a_cube(chips, limits, 1 if is_cubes else _CUBE):
        found = _assigned(names, shape)
        if found is not None:
            return {name: found.get(name, ()) for name in sizes}
    return None


def fits(sizes: Iterable[int], hardware: Hardware) -> bool:
    """Whether each mesh axis of these ``sizes`` can be a physical axis of a slice on its own."""
    if not hardware.is_torus or hardware.physical_axes is None:
        return True
    used = sorted((size for size in sizes if size > 1), reverse=True)
    limits = sorted(hardware.pod, reverse=True)
    return len(used) <= hardware.physical_axes and all(
        size <= limit for size, limit in zip(used, limits, strict=False)
    )


def shape_of(sizes: Iterable[int], hardware: Hardware) -> tuple[int, ...] | None:
    """Return the shape closest to a cube of a slice for a mesh with these ``sizes``.

    ``None`` if the physical axes are unknown, or if each mesh axis has its own, in a slice larger
    than a pod.
    """
    rank = hardware.physical_axes
    if rank is None or rank > _MOST_AXES:
        return None
    used = [size for size in sizes if size > 1]
    chips = math.prod(used)
    limits = sorted(hardware.pod, reverse=True)
    if len(limits) == rank:
        multiples = (1,) if _is_part_of_a_cube(chips, rank) else (_CUBE, 1)
        for multiple in multiples:
            for shape in _most_like_a_cube(chips, limits, multiple):
                return shape
    if len(used) <= rank:
        return None
    return next(iter(_most_like_a_cube(chips, [chips] * rank, 1)), None)


def filled(chips: int, hardware: Hardware) -> tuple[int, ...] | None:
    """Return the shape of a slice whose ``chips`` fill the minor axes of the torus first; ``None``
    if they end within one.

    >>> from shardcore.calculus.hardware import hardware
    >>> filled(32, hardware("trainium2")), filled(24, hardware("trainium2"))
    ((2, 4, 4), None)
    """
    found: list[int] = []
    for size in reversed(hardware.pod):
        part = size if chips % size == 0 else chips
        if part > size:
            return None
        found.append(part)
        chips //= part
    while len(found) > 1 and found[-1] == 1:
        found.pop()
    return tuple(reversed(found)) if chips == 1 else None


def _is_part_of_a_cube(chips: int, rank: int) -> bool:
    return rank < 3 or chips < _CUBE**rank


def _most_like_a_cube(
    chips: int, limits: Sequence[int], multiple: int
) -> Iterable[tuple[int, ...]]:
    """The shapes of a slice, those closest to a cube first; none if there are too many."""
    shapes = list(islice(_shapes(chips, limits, multiple), _MOST_SHAPES + 1))
    return sorted(shapes, key=sum) if len(shapes) <= _MOST_SHAPES else ()


def _shapes(chips: int, limits: Sequence[int], multiple: int) -> Iterator[tuple[int, ...]]:
    """The shapes of a slice of ``chips`` within ``limits``; both are in descending order."""
    usable = [size for size in divisors(chips, limits[0]) if size % multiple == 0]

    def shapes(left: int, place: int, most: int) -> Iterator[tuple[int, ...]]:
        if place == len(limits):
            if left == 1:
                yield ()
            return
        end = bisect_right(usable, min(left, most, limits[place]))
        for at in reversed(range(end)):
            size = usable[at]
            if size ** (len(limits) - place) < left:
                return
            if left % size == 0:
                yield from ((size, *rest) for rest in shapes(left // size, place + 1, size))

    return shapes(chips, 0, limits[0])


def divisors(number: int, most: int) -> list[int]:
    """Return the divisors of ``number`` up to ``most``, ascending."""
    found = [1]
    left, factor = number, 2
    while left > 1:
        if factor * factor > left or factor > _LARGEST_FACTOR:
            factor = left
        powers = [1]
        while left % factor == 0:
            left //= factor
            powers.append(powers[-1] * factor)
        if len(powers) > 1:
            found = [size * power for size in found for power in powers if size * power <= most]
        factor += 1
    return sorted(found)


def _assigned(
    axes: list[tuple[str, int]], shape: tuple[int, ...]
) -> dict[str, tuple[int, ...]] | None:
    """Whole physical axes of ``shape`` for each of ``axes``; ``None`` if there are none."""
    parts = tuple(part for part in shape if part > 1)
    if not axes:
        return None if parts else {}
    if len(axes) > len(parts):
        return None
    (name, size), *others = axes
    for taken in range(1, 1 << len(parts)):
        own = tuple(part for at, part in enumerate(parts) if taken >> at & 1)
        if math.prod(own) != size:
            continue
        rest = tuple(part for at, part in enumerate(parts) if not taken >> at & 1)
        found = _assigned(others, rest)
        if found is not None:
            return {name: own, **found}
    return None
