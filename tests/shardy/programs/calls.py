"""Functions that call functions: shared, nested, doubling, annotated at their borders."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import (
    Tree,
    constrain,
    device_mesh,
    f32,
    lower,
    mesh,
    named,
    program,
    variants,
)

MESH = mesh(x=4, y=2)
BATCH, WIDTH = 8, 16
_x, _w = f32(BATCH, WIDTH), f32(WIDTH, WIDTH)


@jax.jit
def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ w)


@jax.jit
def pair(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    return layer(layer(x, w), v)


@partial(jax.jit, inline=False)
def quad(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    return pair(pair(x, w, v), v, w)


@variants(
    batch={"specs": (P("x"), None, None)},
    weights={"specs": (None, P("y", "x"), P("x", "y"))},
    out={"specs": (None, None, None), "out": P("y", "x")},
)
def shared_functions(specs: Tree, out: P | None = None) -> jax.stages.Lowered:
    """One body, many calls: each call gets its own copy, and equal copies become one again."""

    def run(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        return quad(x, w, v) + pair(x.T @ x @ w, v, w)[:BATCH] + layer(x, v)

    return lower(run, MESH, (_x, _w, _w), specs, out)


@program
def calls_that_differ() -> jax.stages.Lowered:
    """The same function under shardings that conflict: the copies must not be merged."""

    def run(x: jax.Array, y: jax.Array, w: jax.Array) -> Tree:
        return layer(x, w), layer(y, w), layer(x, w), layer(constrain(x, MESH, "y", "x"), w)

    return lower(run, MESH, (_x, _x, _w), (P("x"), P(None, "y"), None))


@variants(same={"outer": P("x")}, other={"outer": P("y")})
def annotated_callee(outer: P) -> jax.stages.Lowered:
    """The called function has shardings of its own at its border."""
    inner = jax.jit(
        lambda x, w: jnp.sin(x @ w),
        in_shardings=named(MESH, (P("x", None), P(None, "y"))),
        out_shardings=named(MESH, P("x", "y")),
    )

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return inner(inner(x, w), w) + 1

    return lower(run, MESH, (_x, _w), (outer, None))


@program
def calls_in_loops() -> jax.stages.Lowered:
    """Calls in the bodies of a loop and of a branch, and a loop in the called function."""

    @jax.jit
    def settle(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, x: layer(x, w), x)

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        def body(x: jax.Array, scale: jax.Array) -> tuple[jax.Array, None]:
            return jax.lax.cond(scale > 1, lambda x: settle(x, w), lambda x: layer(x, w), x), None

        return jax.lax.scan(body, settle(x, w), jnp.arange(3.0))[0]

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@program
def calls_and_gradients() -> jax.stages.Lowered:
    """Forward and backward of one function called often: two bodies, each with many calls."""

    def loss(ws: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in ws:
            x = quad(x, w, w.T)
        return jnp.sum(jax.nn.softmax(x))

    return lower(jax.value_and_grad(loss), MESH, ([_w] * 3, _x), ([P("y"), None, None], P("x")))


@variants(shallow={"depth": 3}, deep={"depth": 6})
def doubling_calls(depth: int) -> jax.stages.Lowered:
    """Each function calls the next one twice."""

    def level(at: int) -> Tree:
        below = level(at - 1) if at else jnp.sin

        def double(x: jax.Array) -> jax.Array:
            return below(x) + below(x * 2)

        double.__name__ = f"level_{at}"
        return jax.jit(double)

    return lower(level(depth), MESH, (_x,), (P("x", "y"),))


@program
def many_results() -> jax.stages.Lowered:
    """A function with several results, some unused, one of them its own argument."""

    @jax.jit
    def split(x: jax.Array, w: jax.Array) -> Tree:
        y = x @ w
        return y, x, y.sum(0), jnp.zeros((3, 3)), w.T

    def run(x: jax.Array, w: jax.Array) -> Tree:
        y, same, total, _, turned = split(x, w)
        again = split(y, turned)
        return same, total, again[0], again[3]

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@program
def library_functions() -> jax.stages.Lowered:
    """jax.numpy functions that are jitted themselves, called on several shapes."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        a = jnp.where(x > 0, jnp.clip(x, 0, 1), jnp.var(x, 0))
        b = jnp.einsum("bi,ij,bj->b", x, w, x)
        c = jax.nn.silu(jnp.roll(w, 1, 0)) + jnp.tril(w)
        d = jnp.linalg.norm(x, axis=1) + jnp.interp(b, jnp.arange(8.0), x[:, 0])
        return a, b, c, d, jnp.floor_divide(x, 3), jnp.nan_to_num(jax.nn.softmax(x @ c))

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@program
def mesh_of_permuted_devices() -> jax.stages.Lowered:
    """A mesh of real devices in an order that is not theirs, so that it lists device ids."""
    on = device_mesh([0, 4, 2, 6, 1, 5, 3, 7])
    return lower(pair, on, (_x, _w, _w), (P("x"), P(None, "y"), None), platform="cpu")
