"""Programs that name their collectives: pipelines, ring products, data parallelism by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, lower, mesh
from tests.shardy.xla.models.catalog import models

STAGES, WIDTH = 8, 512


@models(forward={"train": False}, train={"train": True})
def pipeline(train: bool) -> jax.stages.Lowered:
    """Microbatches go through stages, one on each device, by permutes in a loop."""
    on = mesh(stage=STAGES)
    micro = 16

    def run(w: jax.Array, x: jax.Array) -> jax.Array:
        index = jax.lax.axis_index("stage")

        def tick(state: jax.Array, at: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = jnp.where(index == 0, x[jnp.minimum(at, micro - 1)], state)
            y = jax.nn.relu(state @ w[0])
            turn = [(i, (i + 1) % STAGES) for i in range(STAGES)]
            return jax.lax.ppermute(y, "stage", turn), y

        start = jax.lax.pcast(jnp.zeros(x.shape[1:]), "stage", to="varying")
        _, out = jax.lax.scan(tick, start, jnp.arange(micro + STAGES - 1))
        return out[None, STAGES - 1 :]

    mapped = jax.shard_map(run, mesh=on, in_specs=(P("stage"), P()), out_specs=P("stage"))

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(mapped(w, x)[-1]))

    step = jax.value_and_grad(loss) if train else mapped
    arguments = (f32(STAGES, WIDTH, WIDTH), f32(micro, 32, WIDTH))
    out = (None, P("stage")) if train else None
    return lower(step, on, arguments, (P("stage"), P()), out)


@models(data={"on": mesh(data=8)})
def averaged(on: AbstractMesh) -> jax.stages.Lowered:
    """Each device computes gradients of its own part and takes the mean by hand."""

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        for w in params[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.mean(jnp.square(x @ params[-1] - y))

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        varying = jax.lax.pcast(params, "data", to="varying")
        value, grads = jax.value_and_grad(loss)(varying, x, y)
        grads = jax.lax.pmean(grads, "data")
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return new, jax.lax.pmean(value, "data")

    mapped = jax.shard_map(
        step, mesh=on, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P())
    )
    params = [f32(512, 1024), f32(1024, 1024), f32(1024, 512)]
    x = f32(1024, 512)
    return lower(mapped, on, (params, x, x), ([P()] * 3, P("data"), P("data")), donate=0)


@models(gathered={"on": mesh(data=8)})
def sharded_by_hand(on: AbstractMesh) -> jax.stages.Lowered:
    """Weights are gathered before each layer, gradients scattered after it, inside `shard_map`."""

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def loss(params: Tree) -> jax.Array:
            h = x
            for w in params:
                h = jnp.tanh(h @ jax.lax.all_gather(w, "data", tiled=True))
            return jnp.mean(jnp.square(h - y))

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), jax.lax.pmean(value, "data")

    split = [P("data")] * 3
    mapped = jax.shard_map(
        step, mesh=on, in_specs=(split, P("data"), P("data")), out_specs=(split, P())
    )
    params = [f32(1024, 1024)] * 3
    x = f32(1024, 1024)
    return lower(mapped, on, (params, x, x), (split, P("data"), P("data")), donate=0)
