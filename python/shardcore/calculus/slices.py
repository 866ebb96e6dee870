"""Slices: tori of chips that a network of the data center connects, and the shapes they have.

Devices fill slices in the order of their ids, so the major mesh axes span slices. Without a
topology a slice gets the shape that is most like a cube, and mesh axes lie on whole physical axes
of it: ``fsdp=256`` is 16x16 on a pod of v5e, ``fsdp=16, tensor=4`` is 4x4 and 4 on one of v5p.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardcore._core import Mesh
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError

_CUBE = 4
"""Large slices of a 3D torus are made of cubes with sides of this many chips."""


def slices_of(mesh: Mesh, hardware: Hardware, given: int | None) -> int:
    """Return the number of slices: ``given``, or as many as pods are needed.

    Raises:
        CalculusError: the devices do not make as many slices (``invalid-topology``).
    """
    devices = mesh.num_devices
    if given is None:
        pod = math.prod(hardware.pod)
        if not hardware.is_torus or not pod or devices <= pod or devices % pod:
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
    """Return ``hardware`` with a network between slices or nodes of ``bytes_per_second`` a chip.

    Raises:
        CalculusError: it is no number above 0 (``invalid-option``).
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
    """The sizes within a slice; ``None`` if slices do not divide the axes."""
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

    ``None`` where mesh axes cannot lie on whole physical axes of a slice, or each by itself makes
    one: then each mesh axis is a physical axis.
    """
    chips = math.prod(sizes.values())
    rank = hardware.physical_axes
    if not hardware.is_torus or rank is None or len(hardware.pod) != rank:
        return None
    used = sorted((size for size in sizes.values() if size > 1), reverse=True)
    limits = sorted(hardware.pod, reverse=True)
    fits = len(used) <= rank and all(
        size <= limit for size, limit in zip(used, limits, strict=False)
    )
    is_cubes = rank < 3 or chips < _CUBE**rank
    if fits and (is_cubes or (len(used) == rank and all(size % _CUBE == 0 for size in used))):
        return None
    for shape in _shapes(chips, limits, None if is_cubes else _CUBE):
        found = _assigned(list(sizes.items()), shape)
        if found is not None:
            return found
    return None


def _shapes(chips: int, limits: Sequence[int], multiple: int | None) -> list[tuple[int, ...]]:
    """The shapes of a slice of ``chips``, those most like a cube first."""

    def shapes(left: int, rank: int, most: int) -> Iterator[tuple[int, ...]]:
        if rank == 0:
            if left == 1:
                yield ()
            return
        for size in range(min(left, most), 0, -1):
            if left % size == 0 and (multiple is None or size % multiple == 0):
                yield from ((size, *rest) for rest in shapes(left // size, rank - 1, size))

    found = [
        shape
        for shape in shapes(chips, len(limits), limits[0])
        if all(size <= limit for size, limit in zip(shape, limits, strict=True))
    ]
    return sorted(found, key=sum)


def _assigned(
    axes: list[tuple[str, int]], shape: tuple[int, ...]
) -> dict[str, tuple[int, ...]] | None:
    """Whole physical axes of ``shape`` for each of ``axes``; ``None`` if there are none."""
    if not axes:
        return {} if all(size == 1 for size in shape) else None
    (name, size), *others = axes
    for taken in range(1 << len(shape)):
        own = tuple(part for at, part in enumerate(shape) if taken >> at & 1 and part > 1)
        rest = tuple(part for at, part in enumerate(shape) if not taken >> at & 1)
        if math.prod(own) != size or len(own) + len(rest) != len(shape):
            continue
        found = _assigned(others, rest)
        if found is not None:
            return {name: own, **found}
    return None
