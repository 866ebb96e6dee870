"""Collectives by hand over many devices, whose groups MLIR prints as bytes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P


@pytest.mark.parametrize("size", [8, 64])
def test_axes_of_collectives_are_known(size: int) -> None:
    axes = (AxisType.Auto, AxisType.Auto)
    mesh = AbstractMesh((size, 4), ("data", "tensor"), axis_types=axes)

    def local(x: jax.Array) -> jax.Array:
        x = jax.lax.all_gather(x, "data", axis=0, tiled=True)
        pairs = [(place, (place + 1) % size) for place in range(size)]
        return jax.lax.ppermute(jax.lax.psum(x, "tensor"), "data", pairs)

    run = jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)
    x = jax.ShapeDtypeStruct((256, 64), jnp.bfloat16)
    cost = shardcore.jax.lower(run, x, mesh=mesh).propagate().cost("tpu-v5p")
    assert cost.uncounted == ()
    assert [(row.kind, row.axes) for row in cost.collectives] == [
        ("all_gather", ("data",)),
        ("all_reduce", ("tensor",)),
        ("collective_permute", ("data",)),
    ]
