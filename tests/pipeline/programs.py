"""Small training steps with layers, scanned or one after the other."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import Module

WIDTH, INNER, VOCAB, BATCH, TIME = 256, 1024, 512, 16, 128


def layer(x: Any, w: Any) -> Any:
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def _rows_whole(x: Any, w: Any) -> Any:
    """A layer whose activations are sharded over sequences alone."""

    def rows(y: Any) -> Any:
        return jax.lax.with_sharding_constraint(y, P("data"))

    return rows(x + rows(jnp.tanh(rows(x @ w["up"]))) @ w["down"])


def _loss(params: Any, tokens: Any, scans: bool, remat: bool, shards: bool) -> Any:
    x = params["embed"][tokens]
    run = _rows_whole if shards else layer
    one = jax.checkpoint(run) if remat else run
    if scans:
        x, _ = jax.lax.scan(lambda x, w: (one(x, w), None), x, params["layers"])
    else:
        for w in params["layers"]:
            x = one(x, w)
    logits = (x @ params["head"]).astype(jnp.float32)
    return -jnp.mean(jax.nn.log_softmax(logits)[..., 0])


@cache
def step(
    depth: int = 8,
    *,
    scans: bool = True,
    remat: bool = False,
    clips: bool = False,
    data: int = 4,
    shards: bool = False,
) -> Module:
    """A step of training with momentum over ``data`` devices, which may shard the parameters of
    layers."""

    def update(params: Any, moments: Any, tokens: Any) -> Any:
        value, gradient = jax.value_and_grad(_loss)(params, tokens, scans, remat, shards)
        if clips:
            norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
            gradient = jax.tree.map(lambda g: g / jnp.maximum(norm, 1.0), gradient)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradient)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments, value

    params = parameters(depth, scans)
    tokens = jax.ShapeDtypeStruct((BATCH, TIME), jnp.int32)
    dims = P(None, "data") if scans else P("data")
    layers = jax.tree.map(lambda _: dims, params["layers"]) if shards else None
    placed = {"embed": None, "head": None, "layers": layers} if shards else None
    return shardcore.jax.lower(
        update,
        params,
        params,
        tokens,
        mesh={"data": data},
        in_shardings=(placed, placed, P("data")),
        donate_argnums=(0, 1),
    ).module


def parameters(depth: int, scans: bool) -> Any:
    """The shapes of the parameters."""

    def shape(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)

    one = {"up": (WIDTH, INNER), "down": (INNER, WIDTH)}
    if scans:
        layers: Any = {name: shape(depth, *sizes) for name, sizes in one.items()}
    else:
        layers = [{name: shape(*sizes) for name, sizes in one.items()} for _ in range(depth)]
    return {"embed": shape(VOCAB, WIDTH), "head": shape(WIDTH, VOCAB), "layers": layers}


@cache
def forward(depth: int = 4) -> Module:
    """Layers alone, without a backward pass."""
    x = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.bfloat16)

    def run(weights: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0]

    return shardcore.jax.lower(run, parameters(depth, True)["layers"], x, mesh={"data": 4}).module
