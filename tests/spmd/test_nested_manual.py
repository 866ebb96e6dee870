"""Manual computations in manual computations, loops and branches: devices compute what JAX does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import shardcore
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.spmd import runtime  # noqa: F401 # Asks for eight devices.

SHAPE = (8, 6, 4)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)


def nested(inner: Callable[[Any], Any], given: P, wanted: P, along: P) -> Callable[[Any], Any]:
    """``inner`` along "b" inside of a computation that is manual along "a"."""

    def outer(x: Any) -> Any:
        x = x + lax.axis_index("a")
        return jax.shard_map(inner, in_specs=given, out_specs=wanted, axis_names={"b"})(x)

    return jax.shard_map(outer, mesh=mesh(), in_specs=along, out_specs=along, axis_names={"a"})


def swapped(x: Any) -> Any:
    return lax.ppermute(x, "b", [(0, 1), (1, 0)]) + lax.axis_index("b")


SWAP = nested(swapped, P("b"), P("b"), P(None, "a"))


def three(x: Any) -> Any:
    def third(x: Any) -> Any:
        return lax.psum(x, "c") + x

    def second(x: Any) -> Any:
        summed = lax.psum(x, "b")
        inner = jax.shard_map(third, in_specs=P("c"), out_specs=P("c"), axis_names={"c"})
        return inner(summed) + x

    return nested(second, P(None, "b"), P(None, "b"), P(None, None, "a"))(x)


PROGRAMS = {
    "swap": SWAP,
    "three": three,
    "in a loop": lambda x: lax.scan(lambda c, _: (SWAP(c) / 2, c.sum()), x, None, length=3),
    "in a branch": lambda x: lax.cond(x.sum() > 0, SWAP, lambda x: x * 2, x),
    "around a loop": nested(
        lambda x: lax.fori_loop(0, 3, lambda _, c: lax.psum(c, "b") / 2 + c, x),
        P("b"),
        P("b"),
        P(None, "a"),
    ),
    "around a branch": nested(
        lambda x: lax.cond(
            lax.psum(x.sum(), "b") > 0, lambda x: lax.psum(x, "b") + x, lambda x: x * 2, x
        ),
        P("b"),
        P("b"),
        P(None, "a"),
    ),
    "around a sum of products": nested(
        lambda x: lax.psum(x @ x.transpose(0, 2, 1), "b"), P(None, None, "b"), P(), P("a")
    ),
    "around moves": nested(
        lambda x: jax.numpy.cumsum(jax.numpy.roll(x, 1, 1)[:, ::-1], 1),
        P(None, None, "b"),
        P(None, None, "b"),
        P("a"),
    ),
}


@pytest.mark.parametrize("spec", [P(), P("a", "c"), P("c", "b")], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_compute_what_jax_does(name: str, spec: P) -> None:
    sharding = NamedSharding(mesh(), spec)
    function = jax.jit(PROGRAMS[name], in_shardings=sharding)
    lowered = function.lower(jax.ShapeDtypeStruct(SHAPE, np.float32))
    result = shardcore.Module.parse(lowered.as_text()).propagate()
    given = np.random.default_rng(0).integers(-3, 4, SHAPE).astype(np.float32)
    wanted = jax.tree.leaves(function(given))
    for policy in ("least", "shardy", "xla"):
        partitioned = result.partition(policy)
        assert shardcore.prove(partitioned).is_proven
        for mine, theirs in zip(partitioned.simulate(given), wanted, strict=True):
            np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-5)
