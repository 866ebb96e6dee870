"""Programs whose peak is compared: lookups with gradients, which are scatter-adds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import f32, i32, mesh
from tests.shardy.xla.compare import PeakCase

MESH = mesh(data=2, model=4)


def looked_up_twice(table: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """A step for a table from two lookups, whose gradients are added."""

    def loss(table: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(table[first])) + jnp.sum(jnp.tanh(table[second]))

    return table - 0.1 * jax.grad(loss)(table)


def next_tokens(table: jax.Array, out: jax.Array, tokens: jax.Array) -> Any:
    """Gradients of predictions of the next token, products of more than two dims."""

    def loss(table: jax.Array, out: jax.Array) -> jax.Array:
        return entropy(table[tokens[:, :-1]] @ out, tokens[:, 1:])

    return jax.value_and_grad(loss, (0, 1))(table, out)


def classes(weights: jax.Array, x: jax.Array, labels: jax.Array) -> Any:
    """Gradients of a classifier: one scatter updates what an elementwise op makes."""

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return entropy(x @ weights, labels)

    return jax.value_and_grad(loss, (0, 1))(weights, x)


def entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)


CASES = {
    "looked up twice": PeakCase(
        looked_up_twice,
        (f32(65536, 64), i32(256), i32(512)),
        (P("model"), P("data"), P()),
        MESH,
        within=0.01,
        flops_within=0.02,
    ),
    "next tokens": PeakCase(
        next_tokens,
        (f32(1000, 256), f32(256, 1000), i32(8, 1024)),
        (P("model"), P(None, "model"), P("data")),
        MESH,
        within=0.08,
        flops_within=0.02,
    ),
    "classes": PeakCase(
        classes,
        (f32(512, 16384), f32(2048, 512), i32(2048)),
        (P(None, "model"), P("data"), P("data")),
        MESH,
        within=0.01,
        flops_within=0.02,
    ),
}
