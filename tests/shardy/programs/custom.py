"""Programs with things of their own: custom partitioning rules, callbacks, host memory, layouts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import (
    Tree,
    constrain,
    device_mesh,
    f32,
    lower,
    mesh,
    program,
    variants,
)

try:
    from jax.experimental.shard_alike import shard_alike as alike
except ImportError:
    alike = None

MESH = mesh(x=4, y=2)
BATCH, WIDTH = 8, 16
_x, _w = f32(BATCH, WIDTH), f32(WIDTH, WIDTH)


def _with_rule(function: Any, rule: Any, **sizes: int) -> Any:
    wrapped = custom_partitioning(function)
    wrapped.def_partition(
        partition=lambda mesh, arguments, result: (mesh, function, None, None),
        infer_sharding_from_operands=None,
        sharding_rule=rule,
        **sizes,
    )
    return wrapped


RULES = {
    "matmul": (lambda x, w: x @ w, "i k, k j -> i j", {}),
    "batched": (lambda x, w: x + w[0], "... j, k j -> ... j", {}),
    "grouped": (
        lambda x, w: (x.reshape(BATCH, 4, 4) * w[0].reshape(4, 4)).reshape(BATCH, WIDTH),
        "b (h d), k (h d) -> b (h d)",
        {"h": 4, "d": 4},
    ),
    "opaque": (lambda x, w: jnp.sort(x @ w), "i j, k l -> m n", {}),
    "reduced": (
        lambda x, w: x @ w,
        "i k, k j -> i j",
        {"reduction_factors": ("k",), "need_replication_factors": ("j",)},
    ),
}


@variants(**{name: {"name": name} for name in RULES})
def custom_rule(name: str) -> jax.stages.Lowered:
    function, rule, sizes = RULES[name]
    wrapped = _with_rule(function, rule, **sizes)

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(wrapped(jnp.sin(x), w))

    return lower(run, device_mesh(range(8)), (_x, _w), (P("x"), P(None, "y")))


@program
def callbacks() -> jax.stages.Lowered:
    """Calls back into Python, one with and one without side effects."""

    def run(x: jax.Array) -> Tree:
        y = jax.pure_callback(lambda x: x, jax.typeof(x), x * 2, vmap_method="sequential")
        jax.debug.callback(lambda x: None, y.sum())
        return jnp.sin(y), constrain(y, on, None, "y")

    on = device_mesh(range(8))
    return lower(run, on, (_x,), (P("x"),), platform="cpu")


def shard_alike() -> jax.stages.Lowered:
    """Values tied together in sharding groups."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        a, b = alike(jnp.sin(x), jnp.zeros((BATCH, WIDTH)))
        c, d = alike(w * 2, jnp.ones((WIDTH, WIDTH)))
        return a @ c, b @ d

    return lower(run, MESH, (_x, _w), (P("x"), P("y")))


# JAX 0.12 makes no sharding groups.
if alike is not None:
    program(shard_alike)


@variants(all={"spec": (P.UNCONSTRAINED, P.UNCONSTRAINED)}, half={"spec": ("x", P.UNCONSTRAINED)})
def open_constraints(spec: tuple[Any, ...]) -> jax.stages.Lowered:
    def run(x: jax.Array, w: jax.Array) -> Tree:
        y = constrain(x @ w, MESH, *spec)
        return constrain(y @ w, MESH, "y", None), y

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@program
def results_used_twice() -> jax.stages.Lowered:
    """One value under several constraints, returned more than once, next to an argument."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        y = x @ w
        rows, columns = constrain(y, MESH, "x", None), constrain(y, MESH, None, "x")
        return rows, columns, y, y, x, rows + columns, jnp.zeros((BATCH, WIDTH)), 3.0

    return lower(run, MESH, (_x, _w), (None, None), (P("x"), *[None] * 3, P("y"), *[None] * 3))


@program
def outputs_that_do_not_divide() -> jax.stages.Lowered:
    """Dims that the mesh's axes do not divide, in the middle and at the border."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        y = jnp.concatenate([x, x[:, :3]], axis=1)
        return y[:6], y.T[:7], jnp.pad(w, ((0, 1), (0, 1))), (x @ w)[:, 1:].reshape(-1)

    return lower(run, MESH, (_x, _w), (P("x", "y"), P("y", "x")))


@program
def conflicting_annotations() -> jax.stages.Lowered:
    """Everything wants the same axis; which of them gets it depends on the order of visits."""

    def run(x: jax.Array, w: jax.Array, v: jax.Array) -> Tree:
        a = x @ w
        b = jnp.einsum("bi,bj->ij", a, x)
        c = b @ v + w.T
        d = jnp.concatenate([a, x @ v], axis=0)
        return c, d, a * jnp.sum(d, 0), jnp.einsum("bi,ci->bc", a, d)

    return lower(run, MESH, (_x, _w, _w), (P("x"), P("x", "y"), P("y", "x")), P(None, "x"))


@program
def many_meshes() -> jax.stages.Lowered:
    """Constraints on two meshes of the same devices, differing in the names of their axes only."""
    other = mesh(a=2, b=2, c=2)

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return constrain(jnp.sin(x @ w), other, ("a", "b"), "c") * 2

    return lower(run, MESH, (_x, _w), (None, P(None, "y")))
