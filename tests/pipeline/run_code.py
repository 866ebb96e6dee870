"""Runs the code of pipelines on eight devices of the host, and compares it with a scan.

    python -m tests.pipeline.run_code

prints a line for each that differs, and how many were compared.
"""

from __future__ import annotations

import os
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from shardcore.pipeline import to_python

from tests.deep import sampled

LAYERS, BATCH, WIDTH = 8, 8, 16
CASES = [
    ("gpipe", 4, 1, 2, {"data": 2}),
    ("gpipe", 8, 1, 8, {}),
    ("circular", 2, 2, 2, {"data": 2, "model": 2}),
    ("circular", 4, 2, 4, {"data": 2}),
]
COMPILED = sampled(CASES, 2)
"""Those that run on devices, since XLA takes seconds to compile each."""


def layer(x: Any, w: Any) -> tuple[Any, None]:
    """Divides by what is zero for an input of zeros."""
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True))
    return x + jnp.tanh(x * scale @ w["up"]) @ w["down"], None


def arrays() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    weights = {
        "up": jnp.asarray(random.normal(size=(LAYERS, WIDTH, 2 * WIDTH)) / 4, jnp.float32),
        "down": jnp.asarray(random.normal(size=(LAYERS, 2 * WIDTH, WIDTH)) / 4, jnp.float32),
    }
    return jnp.asarray(random.normal(size=(BATCH, WIDTH)), jnp.float32), weights


def scanned(x: Any, weights: Any) -> Any:
    return jax.lax.scan(layer, x, weights)[0]


def with_gradients(function: Any) -> Any:
    """The result, and gradients of a loss of it."""

    def step(x: Any, weights: Any) -> Any:
        def loss(x: Any, weights: Any) -> Any:
            y = function(x, weights)
            return jnp.sum(jnp.sin(y)), y

        return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(x, weights)

    return step


def pipelined(
    schedule: str, stages: int, chunks: int, micro_batches: int, axes: dict[str, int], mesh: Any
) -> Any:
    """The step that the code makes; ``mesh`` is that of the devices if it is ``None``."""
    names: dict[str, Any] = {}
    exec(to_python(schedule, LAYERS, stages, chunks, micro_batches, axes), names)
    count = stages * int(np.prod(list(axes.values()) or [1]))
    mesh = names["make_mesh"](jax.devices()[:count]) if mesh is None else mesh
    return with_gradients(lambda x, weights: names["pipelined"](layer, x, weights, mesh))


def main() -> None:
    x, weights = arrays()
    expected = jax.tree.leaves(jax.jit(with_gradients(scanned))(x, weights))
    for case in COMPILED:
        found = jax.tree.leaves(jax.jit(pipelined(*case, None))(x, weights))
        for one, other in zip(expected, found, strict=True):
            if not np.allclose(one, other, rtol=2e-5, atol=2e-5):
                print("differs:", case, np.max(np.abs(one - other)))
    print(len(COMPILED), "compared")


if __name__ == "__main__":
    main()
