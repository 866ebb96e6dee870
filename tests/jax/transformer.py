"""A transformer of two layers in float32, a step of training it, and the shardings it gets."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, VOCAB, CONTEXT, BATCH = 2, 32, 4, 64, 16, 8


def parameters(key: jax.Array) -> Any:
    """Parameters of a usual size."""
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}

    def draw(shape: tuple[int, ...], name: str, layer: int) -> jax.Array:
        own = jax.random.fold_in(key, hash((len(name), shape, layer)) % 2**31)
        return jax.random.normal(own, shape) / shape[0] ** 0.5

    layers = [{k: draw(s, k, layer) for k, s in shapes.items()} for layer in range(LAYERS)]
    return {"embedding": draw((VOCAB, WIDTH), "embedding", 0), "layers": layers}


def specs() -> Any:
    """Tensor parallelism over "model", and the vocabulary over it too."""
    layer = {"qkv": P(None, "model"), "out": P("model"), "up": P(None, "model"), "down": P("model")}
    return {"embedding": P("model"), "layers": [layer] * LAYERS}


def _block(x: jax.Array, p: Any) -> jax.Array:
    q, k, v = jnp.split(_normalized(x) @ p["qkv"], 3, axis=-1)
    heads = (BATCH, CONTEXT, HEADS, WIDTH // HEADS)
    q, k, v = (t.reshape(heads) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / heads[-1] ** 0.5
    causal = jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(_normalized(x) @ p["up"]) @ p["down"]


def _normalized(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def loss(params: Any, tokens: jax.Array) -> jax.Array:
    """Cross entropy of the next token."""
    x = params["embedding"][tokens]
    for p in params["layers"]:
        x = _block(x, p)
    logits = _normalized(x) @ params["embedding"].T
    log_p = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.mean(jnp.take_along_axis(log_p, tokens[:, 1:, None], axis=-1))


def train_step(state: Any, tokens: jax.Array) -> tuple[Any, jax.Array]:
    """A step of gradient descent with momentum."""
    params, momentum = state
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return (jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum), value
