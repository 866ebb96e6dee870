"""Memory of lookups with gradients, which scatter what they add up, beside XLA's for hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, mesh
from tests.shardy.xla import compiled
from tests.shardy.xla.compare import costed
from tests.shardy.xla.measured import measure

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


CASES: dict[str, tuple[Callable[..., Any], Tree, Tree, float]] = {
    "looked up twice": (
        looked_up_twice,
        (f32(65536, 64), i32(256), i32(512)),
        (P("model"), P("data"), P()),
        0.01,
    ),
    "next tokens": (
        next_tokens,
        (f32(1000, 256), f32(256, 1000), i32(8, 1024)),
        (P("model"), P(None, "model"), P("data")),
        0.08,
    ),
    "classes": (
        classes,
        (f32(512, 16384), f32(2048, 512), i32(2048)),
        (P(None, "model"), P("data"), P("data")),
        0.01,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_peaks_are_those_of_xla(case: str) -> None:
    function, arguments, specs, tolerance = CASES[case]
    text, cost = costed(function, MESH, arguments, specs)
    assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=tolerance)
    assert cost.flops_counting_loops_once == pytest.approx(compiled.flops(text), rel=0.02)
