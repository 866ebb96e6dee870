"""Under policy ``xla`` a device reduces the windows of its own shard of the result alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, lower, mesh
from tests.shardy.xla import compiled
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

MESH = mesh(data=2, tensor=4)


def far(x: jax.Array) -> jax.Array:
    """Windows that reach over several shards."""
    return lax.reduce_window(x, 1.0, lax.add, (1, 40), (1, 2), ((0, 0), (5, 1)))


def spread(x: jax.Array) -> jax.Array:
    """Windows of an input with holes."""
    padding = ((0, 0), (17, 16))
    return lax.reduce_window(x, -np.inf, lax.max, (1, 33), (1, 1), padding, (1, 2), (1, 3))


CASES: dict[str, tuple[Tree, int]] = {
    "sum": (lambda x: jnp.cumsum(x, 1), 64),
    "reversed": (lambda x: lax.cumsum(x, 1, reverse=True), 64),
    "largest": (lambda x: lax.cummax(x, 1), 64),
    "far": (far, 64),
}


@pytest.mark.parametrize("case", CASES)
def test_flops_are_those_of_xla(case: str) -> None:
    function, size = CASES[case]
    spec = P("data", "tensor")
    text = str(lower(lambda x: function(x) * 2, MESH, (f32(8, size),), (spec,), spec).as_text())
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    cost = result.cost()
    assert cost.flops_counting_loops_once == pytest.approx(compiled.flops(text), rel=0.05)
    assert {**sent_by_kind(cost)} == {**as_all_reduce(sent_bytes(text))}
    assert shardcore.prove(result.partition("xla")).is_proven


def test_windows_of_an_input_with_holes() -> None:
    """XLA of jaxlib 0.10.2 aborts on these."""
    spec = P("data", "tensor")
    text = str(lower(spread, MESH, (f32(8, 64),), (spec,), spec).as_text())
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    assert shardcore.prove(result.partition("xla")).is_proven


def test_shards_that_are_uneven_inside() -> None:
    def run(x: jax.Array) -> jax.Array:
        spec = jax.sharding.NamedSharding(MESH, P(None, "tensor"))
        y = lax.with_sharding_constraint(x[:, :61], spec)
        return lax.with_sharding_constraint(jnp.cumsum(y, 1), spec)[:, 1:]

    text = str(lower(run, MESH, (f32(4, 64),), (P(None, "tensor"),), P()).as_text())
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    assert shardcore.prove(result.partition("xla")).is_proven


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_convolutions_keep_the_holes_to_the_op(stride: int) -> None:
    """A gradient by input has holes between elements, which a product with each would count."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        def loss(x: jax.Array) -> jax.Array:
            numbers = ("NDHWC", "DHWIO", "NDHWC")
            strides = (2, stride, 1)
            y = lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=numbers)
            return jnp.sum(y * y)

        return jax.grad(loss)(x)

    on, spec = mesh(data=2, time=4), P("data", "time")
    arguments = (f32(4, 16, 8, 8, 16), f32(3, 3, 3, 16, 32))
    text = str(lower(run, on, arguments, (spec, P()), spec).as_text())
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    cost = result.cost()
    assert cost.flops_counting_loops_once == pytest.approx(compiled.flops(text), rel=0.05)
    for policy in ("xla", "least"):
        assert shardcore.prove(result.partition(policy)).is_proven
