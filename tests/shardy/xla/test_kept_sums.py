"""Under policy ``xla`` who needs a sum whole takes it before devices cut their shards out of it."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import shardcore
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import f32, i32, lower, mesh
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

MESH = mesh(x=8)


def summed(a: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows of a sum, and the sum by shards."""
    total = a.sum(0)
    return jnp.sin(total), total[ids]


def summed_twice(a: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The whole is needed before and behind ops that need the number of the device."""
    total = a.sum(0)
    return jnp.sin(total) + jnp.arange(64.0)[:, None], jnp.sort(total, 0)[ids] + total[ids]


def largest(a: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same with another reducer."""
    most = a.max(0)
    return jnp.sin(most), most[ids]


def product(a: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a product XLA's partitioner keeps the shard alone."""
    total = jnp.einsum("abc->bc", a @ jnp.ones((16, 16)))
    return jnp.sin(total), total[ids]


def alone(a: jax.Array, _: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Nobody needs the whole."""
    total = a.sum(0)
    return jnp.sin(total), jnp.cos(total)


def text_of(function: Callable[..., object]) -> str:
    row = P("x")
    arguments = (f32(128, 64, 16), i32(512))
    return str(lower(function, MESH, arguments, (row, row), (row, row)).as_text())


@pytest.mark.parametrize("case", [summed, summed_twice, largest, product, alone])
def test_sent_as_under_xla(case: Callable[..., object]) -> None:
    text = text_of(case)
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    assert {**sent_by_kind(result.cost(compiler="none"))} == {**as_all_reduce(sent_bytes(text))}
    assert shardcore.prove(result.partition("xla")).is_proven


def test_the_sum_and_the_cut_are_a_reduce_scatter_where_nobody_needs_the_whole() -> None:
    local = shardcore.Module.parse(text_of(alone)).propagate().partition("xla")
    assert [row.kind for row in local.collectives] == ["reduce_scatter"]
    kept = shardcore.Module.parse(text_of(summed)).propagate().partition("xla")
    assert [row.kind for row in kept.collectives] == ["all_reduce"]
