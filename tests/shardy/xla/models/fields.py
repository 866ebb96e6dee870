"""Fields that wrap around, windows of each channel by itself, tables that are one array."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import models


@models(grid={"x": "x", "y": "y"})
def waves(x: str, y: str) -> jax.stages.Lowered:
    """Waves on a torus: sums of neighbours, which are the field turned by one."""

    def step(state: Any, _: None) -> tuple[Any, jax.Array]:
        u, v = state
        around = sum(jnp.roll(u, by, dim) for by in (1, -1) for dim in (0, 1)) - 4 * u
        slope = jnp.pad(u[2:] - u[:-2], ((1, 1), (0, 0)))
        v = v + 0.1 * (around - slope)
        return (u + 0.1 * v, v), jnp.max(jnp.abs(u))

    def run(u: jax.Array, v: jax.Array) -> Any:
        return jax.lax.scan(step, (u, v), None, length=8)

    spec = P(x, y)
    field = f32(512, 512)
    on = mesh(x=4, y=2)
    return lower(run, on, (field, field), (spec, spec), ((spec, spec), None))


@models(rows={"rows": "rows"})
def depthwise(rows: str) -> jax.stages.Lowered:
    """Blocks of a window for each channel and a perceptron, on images cut in two; trained."""
    channels = 48
    order = ("NHWC", "HWIO", "NHWC")

    def block(x: jax.Array, p: Tree) -> jax.Array:
        y = jax.lax.conv_general_dilated(
            x, p["own"], (1, 1), "SAME", dimension_numbers=order, feature_group_count=channels
        )
        return x + jax.nn.gelu(layers.layer_norm(y, p["norm"]) @ p["up"]) @ p["down"]

    def loss(params: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
        for p in params:
            x = block(x, p)
        return jnp.mean(jnp.square(x - wanted))

    own = {"own": f32(5, 5, 1, channels), "norm": layers.norm_shapes(channels)}
    own |= {"up": f32(channels, 4 * channels), "down": f32(4 * channels, channels)}
    params = [own] * 2
    specs = jax.tree.map(lambda _: P(), params)
    images, spec = f32(8, 32, 32, channels), P("data", rows)
    step = jax.value_and_grad(loss)
    on = mesh(data=4, rows=2)
    return lower(step, on, (params, images, images), (specs, spec, spec), (None, specs))


@models(stacked={"tables": "all"})
def pairs(tables: str) -> jax.stages.Lowered:
    """Tables of one size in one array, each on a device of its own, and products of all pairs."""
    batch, size, count = 1024, 64, 8
    row, column = np.triu_indices(count, 1)
    on = mesh(all=8)

    def loss(p: Tree, ids: jax.Array, clicks: jax.Array) -> jax.Array:
        own = jax.vmap(lambda table, at: table[at], (0, 1), 1)(p["tables"], ids)
        own = constrain(own, on, tables, None, None)
        products = jnp.einsum("bid,bjd->bij", own, own)[:, row, column]
        logits = (jax.nn.relu(products @ p["up"]) @ p["out"])[:, 0]
        return jnp.mean(jnp.logaddexp(0, logits) - clicks * logits)

    def step(p: Tree, *given: jax.Array) -> tuple[Tree, jax.Array]:
        value, grads = jax.value_and_grad(loss)(p, *given)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, grads), value

    params = {"tables": f32(count, 4096, size), "up": f32(len(row), 256), "out": f32(256, 1)}
    specs = {"tables": P(tables), "up": P(), "out": P()}
    arguments = (params, i32(batch, count), f32(batch))
    return lower(step, on, arguments, (specs, P(tables), P(tables)), (specs, None), donate=0)


@models(rows={"on": mesh(data=8)})
def relax(on: AbstractMesh) -> jax.stages.Lowered:
    """Jacobi's iteration on a grid without borders, whose rows are sharded."""

    def run(u: jax.Array, source: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(_: int, u: jax.Array) -> jax.Array:
            near = [jnp.roll(u, shift, axis) for axis in (0, 1) for shift in (1, -1)]
            return 0.25 * sum(near[1:], near[0]) - source

        u = jax.lax.fori_loop(0, 20, step, u)
        return u, jnp.max(jnp.abs(u))

    field, rows = f32(512, 512), P("data")
    return lower(run, on, (field, field), (rows, rows), (rows, None), donate=0)
