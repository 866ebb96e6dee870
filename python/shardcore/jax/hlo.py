"""Converts GSPMD shardings, by tiles and devices, to ``NamedSharding``s over a finer mesh."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from shardcore._core import Mesh, Port, Result, TensorSharding
from shardcore.bounded import items
from shardcore.expected import expect
from shardcore.gspmd.hlo_sharding import HloSharding
from shardcore.jax.mesh import abstract_mesh
from shardcore.jax.mistakes import mistake
from shardcore.jax.specs import trimmed_spec


def named_sharding(
    sharding: HloSharding | TensorSharding,
    devices: Iterable[Any] | None = None,
    *,
    rank: int | None = None,
) -> NamedSharding:
    """Return ``sharding`` as a ``NamedSharding`` over a mesh with one axis for each factor it
    needs.

    A sub-axis, which a ``PartitionSpec`` cannot name, becomes an axis of that mesh.

    Args:
        sharding: the sharding.
        devices: the devices: ``devices[i]`` has id i. Without them the mesh is abstract.
        rank: the number of dims of the tensor; needed for ``{replicated}``, which does not tell it.

    Raises:
        VerificationError: ``sharding`` is not that of one tensor over all devices.
        LoweringError: the order of the devices is not 0, 1, 2, ..., and ``devices`` is not given or
            has too few (``invalid-mesh``).
    """
    expect(sharding, HloSharding, TensorSharding)
    if isinstance(sharding, TensorSharding):
        rank, sharding = sharding.rank, sharding.to_hlo()
    found = sharding.to_sharding(rank=rank)
    mesh = found.mesh
    given = None if devices is None else list(items(devices, "devices"))
    if mesh is None or mesh.num_devices <= 1:
        mesh = Mesh({"x": 1 if given is None else len(given)})
    if given is not None:
        return NamedSharding(_placed(mesh, given), trimmed_spec(found))
    if mesh.device_ids is not None:
        raise mistake(
            "invalid-mesh",
            "a mesh without devices cannot have them in an order of its own",
            "give the devices: named_sharding(sharding, jax.devices())",
        )
    return NamedSharding(abstract_mesh(mesh), trimmed_spec(found))


def _placed(mesh: Mesh, devices: list[Any]) -> jax.sharding.Mesh:
    if mesh.num_devices != len(devices):
        raise mistake(
            "invalid-mesh",
            f"the sharding is over {mesh.num_devices} devices, and {len(devices)} are given",
            "give one device for each id",
        )
    grid = np.empty(len(devices), dtype=object)
    for place, number in enumerate(mesh.device_ids or range(len(devices))):
        grid[place] = devices[number]
    return jax.sharding.Mesh(grid.reshape(tuple(mesh.shape.values())), mesh.axis_names)


def with_sub_axes(result: Result) -> Result:
    """Return ``result`` with the sub-axes that the export removes from inputs and outputs."""
    options = {**result._options(), "keep_sub_axes_on_io": True}
    return result._given().propagate(**options)


def hlo_sharding(port: Port) -> HloSharding:
    """The sharding of ``port`` in GSPMD's notation; ``{replicated}`` if it has none."""
    if port.sharding is None:
        return HloSharding("replicated")
    return port.sharding.to_hlo()
