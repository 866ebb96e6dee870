"""Programs whose peak is compared: outputs that hold temporaries, and outputs that are copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32
from tests.shardy.xla.compare import PeakCase

WIDTH, DEPTH = 256, 2


def perceptron(x: jax.Array, w: Tree) -> jax.Array:
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


def gated(x: jax.Array, w: Tree) -> jax.Array:
    return x + (jax.nn.silu(x @ w["up"]) * (x @ w["gate"])) @ w["down"]


def same(x: jax.Array, _: Tree) -> jax.Array:
    return x


def chosen(*branches: Any) -> Callable[..., Any]:
    """Gradients of layers, each of which is one of the `branches`."""

    def loss(weights: Tree, x: jax.Array, which: jax.Array) -> jax.Array:
        for w in weights:
            x = lax.switch(which, branches, x, w)
        return jnp.square(x).mean()

    return jax.grad(loss)


def recomputed(block: Any) -> Any:
    return jax.checkpoint(block)


def returned(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Arguments, one of them twice, and something else."""
    return x, y, x, x + y


def doubled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One product as two outputs."""
    y = x @ x
    return y, y


UP, DOWN = f32(WIDTH, 4 * WIDTH), f32(4 * WIDTH, WIDTH)
LAYERS = [{"up": UP, "gate": UP, "down": DOWN}]
WHOLE = [dict.fromkeys(LAYERS[0], P())] * DEPTH
MODEL = (LAYERS * DEPTH, f32(2048, WIDTH), i32())
MODEL_SPECS = (WHOLE, P("data"), P())
SQUARE = f32(256, 256)
CASES = {
    "branches": PeakCase(chosen(perceptron, gated), MODEL, MODEL_SPECS),
    "branches, recomputed": PeakCase(
        chosen(recomputed(perceptron), recomputed(gated)),
        MODEL,
        MODEL_SPECS,
    ),
    "skipped": PeakCase(chosen(perceptron, same), MODEL, MODEL_SPECS),
    "skipped, recomputed": PeakCase(
        chosen(recomputed(perceptron), gated, same), MODEL, MODEL_SPECS
    ),
    "arguments": PeakCase(returned, (SQUARE, SQUARE), (P(), P())),
    "twice": PeakCase(doubled, (SQUARE,), (P(),)),
}
