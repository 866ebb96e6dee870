"""Layers and optimizers that several families share; parameters are plain trees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32


def dense(x: jax.Array, p: Tree) -> jax.Array:
    return x @ p["w"] + p["b"]


def dense_shapes(inner: int, outer: int) -> Tree:
    return {"w": f32(inner, outer), "b": f32(outer)}


def dense_specs(inner: Any, outer: Any) -> Tree:
    return {"w": P(inner, outer), "b": P(outer)}


def layer_norm(x: jax.Array, p: Tree) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-6) * p["scale"] + p["bias"]


def norm_shapes(width: int) -> Tree:
    return {"scale": f32(width), "bias": f32(width)}


def norm_specs() -> Tree:
    return {"scale": P(), "bias": P()}


def attend(x: jax.Array, memory: jax.Array, p: Tree, mask: jax.Array | None = None) -> jax.Array:
    """Attention of `x` to `memory`; weights have a dim for heads and one for a head's width."""
    q = jnp.einsum("btw,whd->bthd", x, p["q"])
    k = jnp.einsum("bsw,whd->bshd", memory, p["k"])
    v = jnp.einsum("bsw,whd->bshd", memory, p["v"])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / jnp.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    return jnp.einsum("bthd,hdw->btw", y, p["out"])


def attention_shapes(width: int, heads: int) -> Tree:
    per_head = f32(width, heads, width // heads)
    return {"q": per_head, "k": per_head, "v": per_head, "out": f32(heads, width // heads, width)}


def attention_specs(width: Any, heads: Any) -> Tree:
    per_head = P(width, heads, None)
    return {"q": per_head, "k": per_head, "v": per_head, "out": P(heads, None, width)}


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean over examples, the label picked by a one-hot product."""
    log_probabilities = jax.nn.log_softmax(logits)
    one_hot = jax.nn.one_hot(labels, logits.shape[-1])
    return -jnp.mean(jnp.sum(one_hot * log_probabilities, axis=-1))


def sgd_momentum(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A training step `(params, velocity, *batch) -> (params, velocity, loss)`."""

    def step(params: Tree, velocity: Tree, *batch: Any) -> tuple[Tree, Tree, jax.Array]:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
        return params, velocity, value

    return step
