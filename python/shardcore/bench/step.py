"""A training step, forward and backward pass and Adam, lowered without devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardcore.jax
from shardcore.bench import cross_entropy, kernels
from shardcore.bench.decoder import layers, logits_weight, norm, table, with_positions
from shardcore.bench.parameters import shapes
from shardcore.bench.placement import ByConstraints, Weights
from shardcore.bench.training import Training


def lower(run: Training) -> shardcore.jax.Lowered:
    """Lower a step of ``run``. It is for costing only: attention kernels compute nothing."""
    kernels.register()
    if run.by_hand:
        from shardcore.bench import by_hand

        return by_hand.lower(run)
    mesh = run.mesh
    placed = {name: NamedSharding(mesh, spec) for name, spec in run.specs().items()}
    arrays = {
        name: jax.ShapeDtypeStruct(each.shape, jnp.float32, sharding=placed[name])
        for name, each in shapes(run.model).items()
    }
    count = jax.ShapeDtypeStruct((), jnp.int32)
    # Micro-batches, whose gradients are summed, are a dim of their own.
    parts = (run.microbatches,) if run.microbatches > 1 else ()
    rows = NamedSharding(mesh, P(*(None for _ in parts), run.batch_axes, run.time_axis))
    size = (*parts, run.batch // run.microbatches, run.time)
    tokens = jax.ShapeDtypeStruct(size, jnp.int32, sharding=rows)
    state = (arrays, arrays, arrays, count)
    return shardcore.jax.lower(
        _step(run),
        state,
        tokens,
        mesh=mesh,
        donate_argnums=0,
        out_shardings=((placed, placed, placed, P()), P()),
        platform=run.platform,
    )


def adam(state: Any, gradient: Weights, axes: tuple[str, ...] = ()) -> Any:
    """The state, parameters with two moments and a count, after an Adam update with a gradient
    whose global norm is at most 1; devices along ``axes`` have shards of it."""
    params, first, second, count = state
    gradient = _clipped(gradient, axes)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradient)

    def updated(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        return p - 3e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p)

    return jax.tree.map(updated, params, first, second), first, second, count + 1


def _clipped(gradient: Weights, axes: tuple[str, ...]) -> Weights:
    squares = sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradient))
    norm = jnp.sqrt(jax.lax.psum(squares, axes) if axes else squares)
    scale = jnp.minimum(1.0, 1.0 / norm)
    return jax.tree.map(lambda g: g * scale, gradient)


def _step(run: Training) -> Callable[..., Any]:
    def step(state: Any, tokens: jax.Array) -> Any:
        if run.microbatches == 1:
            value, gradient = jax.value_and_grad(_loss)(state[0], tokens, run)
            return adam(state, gradient), value

        def part(sums: Any, rows: jax.Array) -> Any:
            found = jax.value_and_grad(_loss)(state[0], rows, run)
            return jax.tree.map(jnp.add, sums, found), None

        zeros = jax.tree.map(jnp.zeros_like, state[0])
        (value, gradient), _ = jax.lax.scan(part, (jnp.float32(0), zeros), tokens)
        mean = jax.tree.map(lambda g: g / run.microbatches, gradient)
        return adam(state, mean), value / run.microbatches

    return step


def _loss(params: Weights, tokens: jax.Array, run: Training) -> jax.Array:
    how = ByConstraints(run)
    words = table(params)
    if run.iota:
        x = jax.nn.one_hot(tokens, run.model.vocab, dtype=jnp.bfloat16) @ words
    else:
        x = words[tokens]
    x = how.rows(with_positions(x, params))
    x = layers(how, x, params, range(len(run.model.kinds)))
    logits = norm(how, x, params["norm"]) @ logits_weight(params)
    logits = how.rows(logits)
    if run.loss_op_by_op:
        return jnp.mean(cross_entropy.op_by_op(logits, tokens))
    hot = jax.nn.one_hot(tokens, run.model.vocab, dtype=jnp.float32)
    return -jnp.mean(jnp.sum(hot * jax.nn.log_softmax(logits.astype(jnp.float32)), axis=-1))
