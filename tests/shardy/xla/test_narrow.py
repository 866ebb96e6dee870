"""How XLA for hosts stores `bf16`, which it computes as `f32`, and what it converts for a sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, mesh
from tests.shardy.xla.compare import costed
from tests.shardy.xla.measured import measure

DATA = mesh(data=8)


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
CASES: dict[str, tuple[Callable[..., Any], Tree, Tree]] = {
    "orthogonal": (orthogonal, (MATRICES,), ([P(None, "data")] * 6,)),
    "output": (scaled, (bf16(512, 512),), (P("data"),)),
    "booleans": (positive, (f32(512, 512),), (P(),)),
    "integers": (counted, (i32(512, 512),), (P(),)),
    "halves": (counted, (jax.ShapeDtypeStruct((512, 512), jnp.float16),), (P(),)),
    "bytes": (counted, (jax.ShapeDtypeStruct((512, 512), jnp.int8),), (P(),)),
    "brain floats": (counted, (bf16(512, 512),), (P(),)),
}


@pytest.mark.parametrize("case", CASES)
def test_peaks_are_those_of_xla(case: str) -> None:
    function, arguments, specs = CASES[case]
    text, cost = costed(function, DATA, arguments, specs)
    assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=0.1)
