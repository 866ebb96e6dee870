"""Programs whose peak is compared: XLA for hosts computes `bf16` as `f32`, and converts operands of
sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32
from tests.shardy.xla.compare import PeakCase


def bf16(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def orthogonal(gradients: Tree) -> Tree:
    """Iterations of matrices whose products are summed, or which are gathered."""

    def one(g: jax.Array) -> jax.Array:
        x = g.astype(jnp.bfloat16)
        x = x.T if x.shape[0] > x.shape[1] else x
        x = x / (jnp.linalg.norm(x) + 1e-7)
        for _ in range(3):
            a = x @ x.T
            x = 3.4 * x + (2 * a @ a - 4.7 * a) @ x
        return (x.T if g.shape[0] > g.shape[1] else x).astype(jnp.float32)

    return jax.tree.map(one, gradients)


def scaled(x: jax.Array) -> jax.Array:
    """An elementwise output."""
    return x * 2 + 1


def positive(x: jax.Array) -> jax.Array:
    """A sum of what no library converts."""
    return jnp.sum(x > 0, dtype=jnp.float32)


def counted(x: jax.Array) -> jax.Array:
    return jnp.sum(x.astype(jnp.float32), -1)


MATRICES = [f32(256, 1024), f32(1024, 256), f32(256, 256)] * 2
CASES = {
    "orthogonal": PeakCase(orthogonal, (MATRICES,), ([P(None, "data")] * 6,)),
    "output": PeakCase(scaled, (bf16(512, 512),), (P("data"),)),
    "booleans": PeakCase(positive, (f32(512, 512),), (P(),)),
    "integers": PeakCase(counted, (i32(512, 512),), (P(),)),
    "halves": PeakCase(counted, (jax.ShapeDtypeStruct((512, 512), jnp.float16),), (P(),)),
    "bytes": PeakCase(counted, (jax.ShapeDtypeStruct((512, 512), jnp.int8),), (P(),)),
    "brain floats": PeakCase(counted, (bf16(512, 512),), (P(),)),
}
