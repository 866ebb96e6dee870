"""Explicit axes: JAX itself decides the sharding of every value, and says so in the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, program

EXPLICIT = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
MIXED = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
BATCH, WIDTH = 8, 16


def _sharded(shape: jax.ShapeDtypeStruct, spec: P, on: AbstractMesh) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=NamedSharding(on, spec))


def _lower(
    function: Callable[..., Any], arguments: Tree, specs: Tree, on: AbstractMesh = EXPLICIT
) -> jax.stages.Lowered:
    typed = jax.tree.map(lambda shape, spec: _sharded(shape, spec, on), arguments, specs)
    with jax.sharding.use_abstract_mesh(on):
        return jax.jit(function).trace(*typed).lower(lowering_platforms=("tpu",))


@program
def explicit_mlp_step() -> jax.stages.Lowered:
    """A training step whose products sum over a split dim and say where the result goes."""

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for up, down in params:
            h = jax.nn.relu(jnp.dot(x, up, out_sharding=P("x", "y")))
            x = x + jnp.dot(h, down, out_sharding=P("x", None))
        return jnp.mean(jnp.square(x))

    def step(params: Tree, x: jax.Array) -> Tree:
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = [(f32(WIDTH, 32), f32(32, WIDTH))] * 2
    specs = [(P(None, "y"), P("y", None))] * 2
    return _lower(step, (params, f32(BATCH, WIDTH)), (specs, P("x", None)))


@program
def explicit_reshards() -> jax.stages.Lowered:
    """Reshards, splits of a dim by a reshape, gathers with a sharding, scans and branches."""

    def run(x: jax.Array, table: jax.Array, ids: jax.Array) -> Tree:
        rows = table.at[ids].get(out_sharding=P("x", None, "y"))
        turned = jax.sharding.reshard(x, P("y", "x"))
        split = jax.lax.reshape(x, (BATCH, 4, 4), out_sharding=P("x", None, None))

        def layer(x: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
            return jnp.sin(x) * scale, x.sum(0)

        last, sums = jax.lax.scan(layer, x, jnp.arange(3.0))
        chosen = jax.lax.cond(sums.sum() > 0, jnp.cos, lambda y: y * 2, last)
        return rows, turned, split, chosen, jnp.concatenate([x, last])

    arguments = (f32(BATCH, WIDTH), f32(32, WIDTH), i32(BATCH, 4))
    return _lower(run, arguments, (P("x", None), P(None, "y"), P("x", None)))


@program
def explicit_and_auto() -> jax.stages.Lowered:
    """One axis decided by JAX, the other left to the propagation: open dims in the annotations."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        y = jnp.tanh(x @ w)
        y = jax.lax.with_sharding_constraint(y, P(P.UNCONSTRAINED, "y"))
        return y @ w.T, jax.nn.softmax(y), y.sum(1)

    return _lower(run, (f32(BATCH, WIDTH), f32(WIDTH, WIDTH)), (P("x", None), P(None, None)), MIXED)


@program
def auto_region() -> jax.stages.Lowered:
    """A function inside an explicit program that hands its axes back to the propagation."""

    @jax.sharding.auto_axes
    def mix(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.nn.gelu(x @ w).reshape(BATCH, 2, -1).swapaxes(1, 2).reshape(BATCH, -1)

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sin(mix(x * 2, w, out_sharding=P("x", "y")))

    return _lower(run, (f32(BATCH, WIDTH), f32(WIDTH, WIDTH)), (P("x", None), P(None, "y")))


@program
def unreduced_products() -> jax.stages.Lowered:
    """A sum left undone: its result is unreduced until a later reshard reduces it."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jnp.dot(x, w, out_sharding=P("x", None, unreduced={"y"}))
        return jax.sharding.reshard(y, P("x", None)) * 2

    return _lower(run, (f32(BATCH, WIDTH), f32(WIDTH, WIDTH)), (P("x", "y"), P("y", None)))
