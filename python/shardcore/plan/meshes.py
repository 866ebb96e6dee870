"""The meshes that a plan may use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from shardcore._core import Mesh, Module
from shardcore.bounded import items, shown
from shardcore.calculus.hardware import Hardware
from shardcore.costs.links import Links
from shardcore.errors import (
    CalculusError,
    Diagnostic,
    PlanError,
    ShardcoreError,
    VerificationError,
)
from shardcore.expected import expect
from shardcore.plan.placement import places

AXES = ("x", "y", "z", "w")
"""The names of the axes of meshes that are made."""
MOST_MESHES = 64
"""How many meshes are considered at most."""
MOST_DEVICES = 1 << 24
"""The most devices for which all meshes are enumerated."""

MeshLike = Mesh | Mapping[str, int]


def meshes(
    module: Module,
    given: MeshLike | Iterable[MeshLike] | None,
    devices: int | None,
    hardware: Hardware,
    links: Links,
) -> list[Mesh]:
    """Return the meshes to consider: ``given``, else all of ``devices``, else the program's own.

    If ``devices`` can form more than :data:`MOST_MESHES`, those with fewer axes and closer sizes
    are taken.

    Raises:
        PlanError: neither is given, they disagree, there are no devices, too many meshes are given,
            or the program has manual computations over another mesh (``no-mesh``).
        CalculusError: no mesh fits the topology (``invalid-topology``).
    """
    if devices is not None:
        _check_count(devices)
    own = [mesh for mesh in module.meshes.values() if mesh.num_devices > 1]
    if given is not None:
        found = [_mesh(each) for each in _listed(given)]
        wrong = [each for each in found if devices not in (None, each.num_devices)]
        if wrong:
            message = f"{wrong[0]} has {wrong[0].num_devices} devices, not {devices}"
            raise _mistake(message, "give a mesh or a number of devices")
    elif devices is not None:
        every = sorted(set(_shapes(devices, hardware, links)), key=_rank)
        made = (Mesh(dict(zip(AXES, sizes, strict=False))) for sizes in every)
        found = list(islice(_once(made, links), MOST_MESHES))
    else:
        found = own[:1] or [mesh for mesh in module.meshes.values() if mesh.axes][:1]
    if own and found != own[:1] and _is_manual(module):
        found = _written_for(own, found, devices)
    if not found:
        raise _mistake(
            "it is not known which devices the program is for",
            'give a mesh, {"data": 8, "model": 4}, or a number of devices',
        )
    if len(found) > MOST_MESHES:
        raise _mistake(f"there are {len(found)} meshes", f"at most {MOST_MESHES}")
    return _on_topology(found, links)


def _is_manual(module: Module) -> bool:
    return any(op.name == "sdy.manual_computation" for op in module.ops())


def _written_for(own: list[Mesh], wanted: list[Mesh], devices: int | None) -> list[Mesh]:
    """The mesh of a program with manual computations, whose shapes and collectives need this mesh.

    Raises:
        PlanError: the mesh is not among those wanted (``no-mesh``).
    """
    found = [mesh for mesh in own if mesh in wanted or mesh.num_devices == devices]
    if not found:
        message = f"the manual computations of the program are written for {own[0]}"
        raise _mistake(message, "plan over that mesh: give neither a mesh nor devices")
    return found[:1]


def _check_count(devices: int) -> None:
    """Check that a plan for ``devices`` devices is possible.

    Raises:
        PlanError: it is not (``no-mesh``).
        TypeError: ``devices`` is no number.
    """
    expect(devices, int)
    if isinstance(devices, bool) or devices < 1:
        raise _mistake(f"{shown(devices)} devices do no work", "give 1 or more")
    if devices > MOST_DEVICES:
        raise _mistake(f"there are {shown(devices)} devices", f"at most {MOST_DEVICES}")


def _listed(given: MeshLike | Iterable[MeshLike]) -> Sequence[MeshLike]:
    return [given] if isinstance(given, (Mesh, Mapping)) else items(given, "meshes")


def _mesh(given: MeshLike) -> Mesh:
    mesh = given if isinstance(given, Mesh) else Mesh(given)
    if mesh.is_maximal or not mesh.axes:
        raise _mistake(f"{mesh} has no axes to shard along", 'write {"data": 8}')
    return mesh


def _products(count: int, axes: int) -> Iterator[tuple[int, ...]]:
    """The ways to write ``count`` as a product of at most ``axes`` factors of at least two."""
    yield (count,)
    if axes > 1:
        small = [size for size in range(2, math.isqrt(count) + 1) if count % size == 0]
        large = [count // size for size in reversed(small) if size * size != count]
        for size in (*small, *large):
            for rest in _products(count // size, axes - 1):
                yield (size, *rest)


def _shapes(devices: int, hardware: Hardware, links: Links) -> Iterator[tuple[int, ...]]:
    """The sizes of the axes of meshes of ``devices``: as many axes as a torus has, or two; where a
    network connects slices or nodes also one axis more, such that one of them ends there."""
    axes = min(hardware.physical_axes or 2, len(AXES) - 1)
    yield from _products(devices, axes)
    parts = parts_of(devices, hardware, links)
    if parts == 1 or devices == parts:
        return
    for within in range(1, axes + 1):
        for outer in _products(parts, axes + 1 - within):
            yield from ((*outer, *inner) for inner in _products(devices // parts, within))


def parts_of(devices: int, hardware: Hardware, links: Links) -> int:
    """Return on how many slices or nodes ``devices`` lie; 1 where they do not fill them evenly."""
    if hardware.is_torus:
        alone = Mesh({AXES[0]: devices})
        return links.topology(alone).slices if links.has(alone) else 1
    parts, rest = divmod(devices, hardware.node_size)
    return 1 if rest else parts


def _once(meshes: Iterable[Mesh], links: Links) -> Iterator[Mesh]:
    """The first of each group of ``meshes`` whose axes lie on a machine alike, in another order.

    Those that do not lie on it stay, to be refused.
    """
    seen: set[object] = set()
    for mesh in meshes:
        key = places(links.topology(mesh)) if links.has(mesh) else mesh
        if key not in seen:
            seen.add(key)
            yield mesh


def _rank(sizes: tuple[int, ...]) -> tuple[int, float, tuple[int, ...]]:
    """Fewer axes first, then those of sizes that are closer."""
    return len(sizes), max(sizes) / min(sizes), sizes


def _on_topology(found: list[Mesh], links: Links) -> list[Mesh]:
    """The meshes that fit the topology.

    Raises:
        ShardcoreError: none fits; the error is that of the first mesh.
    """
    kept: list[Mesh] = []
    problem: ShardcoreError | None = None
    for mesh in found:
        try:
            links.topology(mesh)
            kept.append(mesh)
        except (CalculusError, VerificationError) as error:
            problem = problem or error
    if problem is not None and not kept:
        raise problem
    return kept


def _mistake(message: str, hint: str) -> PlanError:
    return PlanError(Diagnostic("no-mesh", message, hint))
