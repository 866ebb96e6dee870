"""Converts meshes between shardcore and JAX; a JAX mesh may be abstract, without devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from shardcore._core import Mesh
from shardcore.bounded import items
from shardcore.errors import ShardcoreError
from shardcore.expected import expect
from shardcore.jax.mistakes import mistake

MeshLike: TypeAlias = "Mesh | AbstractMesh | jax.sharding.Mesh | Mapping[str, int] | None"
"""A mesh of either library, or sizes by name."""


def jax_mesh(mesh: MeshLike) -> AbstractMesh | jax.sharding.Mesh | None:
    """Return ``mesh`` as a JAX mesh; a mesh without axis types gets automatic axes.

    ``None`` stands for the mesh of the context, ``jax.set_mesh(mesh)``, if there is one.

    Raises:
        LoweringError: it is no mesh, or JAX cannot have such a mesh (``invalid-mesh``).
    """
    if mesh is None:
        context = jax.sharding.get_abstract_mesh()
        return None if context.empty else context
    if isinstance(mesh, (AbstractMesh, jax.sharding.Mesh)):
        return mesh
    if isinstance(mesh, Mapping):
        try:
            mesh = Mesh(mesh)
        except (ShardcoreError, TypeError) as error:
            first = error.message if isinstance(error, ShardcoreError) else str(error)
            raise mistake("invalid-mesh", first, 'write {"data": 8, "model": 4}') from None
    if not isinstance(mesh, Mesh):
        raise mistake(
            "invalid-mesh",
            f"a {type(mesh).__name__} is no mesh",
            "give sizes by name, a shardcore.Mesh, or a Mesh or AbstractMesh of jax.sharding",
        )
    if mesh.is_maximal or not mesh.axes:
        raise mistake("invalid-mesh", f"JAX has no mesh like {mesh}", "give it axes")
    if mesh.device_ids is not None:
        raise mistake(
            "invalid-mesh",
            "a mesh without devices cannot have them in an order of its own",
            "leave device_ids out, or give a jax.sharding.Mesh with devices",
        )
    return abstract_mesh(mesh)


def abstract_mesh(mesh: Mesh, like: AbstractMesh | jax.sharding.Mesh | None = None) -> AbstractMesh:
    """Return ``mesh`` without devices; its axes have the types they have in ``like``, else auto."""
    types = dict(zip(like.axis_names, like.axis_types, strict=True)) if like is not None else {}
    return AbstractMesh(
        tuple(mesh.shape.values()),
        mesh.axis_names,
        axis_types=tuple(types.get(name, AxisType.Auto) for name in mesh.axis_names),
    )


def our_mesh(mesh: AbstractMesh | jax.sharding.Mesh) -> Mesh:
    """Return ``mesh`` as a :class:`shardcore.Mesh`, with the order of its devices, if any."""
    ids = None
    if isinstance(mesh, jax.sharding.Mesh):
        ids = [device.id for device in mesh.devices.flat]
        ids = ids if sorted(ids) == list(range(len(ids))) else None
    return Mesh(dict(mesh.shape), device_ids=ids)


def mesh_with_devices(shardings: Iterable[object]) -> jax.sharding.Mesh | None:
    """Return the first mesh with devices among those of ``shardings``."""
    for sharding in shardings:
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, jax.sharding.Mesh):
            return sharding.mesh
    return None


def is_same_mesh(mesh: Mesh, other: AbstractMesh | jax.sharding.Mesh) -> bool:
    """Whether both have the same axes, in the same order."""
    return list(mesh.shape.items()) == list(other.shape.items())


def chosen_devices(devices: Sequence[Any] | None, count: int) -> list[Any]:
    """Return ``devices``, or the first ``count`` of ``jax.devices()``.

    Raises:
        LoweringError: there are not ``count`` of them (``devices``).
    """
    found = jax.devices()[:count] if devices is None else list(items(devices, "devices"))
    for device in found:
        expect(device, jax.Device)
    if len(found) != count or len(set(found)) != count:
        named = "JAX has" if devices is None else "there are given"
        raise mistake(
            "devices",
            f"the program is for {count} devices, and {named} {len(set(found))}",
            "XLA_FLAGS=--xla_force_host_platform_device_count=8 makes 8 of a host"
            if devices is None
            else f"give {count} different ones",
        )
    return found
