"""A training step of a two-layer perceptron, small enough to read every value of.

shardcore propagate examples/mlp.py:build     lowers the step and completes its shardings
python examples/mlp.py                        writes examples/mlp.mlir
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

BATCH, WIDTH, HIDDEN = 1024, 512, 2048


def loss(params: Any, batch: Any) -> jax.Array:
    """Mean of the squares of the errors."""
    hidden = jnp.tanh(batch["x"] @ params["up"])
    output = hidden @ params["down"]
    return jnp.mean((output - batch["y"]) ** 2)


def step(params: Any, batch: Any) -> tuple[Any, jax.Array]:
    """Return the parameters after one step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def build() -> tuple[Any, tuple[Any, Any], Mapping[str, Any]]:
    """Return the step, its arguments, and how they are sharded: only ``down`` is left open."""
    params = {
        "up": jax.ShapeDtypeStruct((WIDTH, HIDDEN), jnp.float32),
        "down": jax.ShapeDtypeStruct((HIDDEN, WIDTH), jnp.float32),
    }
    rows = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32)
    batch = {"x": rows, "y": rows}
    specs = (
        {"up": P(None, "model"), "down": None},
        {"x": P("data"), "y": P("data")},
    )
    return step, (params, batch), {"mesh": {"data": 2, "model": 4}, "in_shardings": specs}


def main() -> None:
    """Write the program beside this file."""
    import shardcore.jax

    # One frame for each op, named by file only: a program must not depend on where it was made.
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    function, arguments, options = build()
    lowered = shardcore.jax.lower(function, *arguments, **options)
    Path(__file__).with_suffix(".mlir").write_text(str(lowered.module), encoding="utf-8")


if __name__ == "__main__":
    main()
