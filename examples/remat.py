"""Layers with gates, scanned: a loss for `shardcore remat examples/remat.py:build`."""

import jax
import jax.numpy as jnp

LAYERS, WIDTH, TOKENS = 16, 2048, 16384


def layer(x, w):
    """A layer, as a scan takes it."""
    gate, up = x @ w["gate"], x @ w["up"]
    hidden = jax.nn.silu(gate) * up
    down = hidden @ w["down"]
    return jnp.tanh(x + down), None


def loss(params, x):
    """The mean of the squares of what the last layer makes."""
    x, _ = jax.lax.scan(layer, x, params)
    return jnp.mean(jnp.square(x.astype(jnp.float32)))


def build():
    """The loss, and the shapes of its arguments."""

    def shape(*sizes):
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)

    up, down = (LAYERS, WIDTH, 4 * WIDTH), (LAYERS, 4 * WIDTH, WIDTH)
    params = {"gate": shape(*up), "up": shape(*up), "down": shape(*down)}
    return loss, (params, shape(TOKENS, WIDTH))
