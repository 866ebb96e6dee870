"""Control flow and derivatives: loops, branches, rematerialization, custom gradients, batching."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh, program, variants

MESH = mesh(x=4, y=2)
BATCH, WIDTH = 8, 16
_x, _w = f32(BATCH, WIDTH), f32(WIDTH, WIDTH)


@variants(carry={"specs": (P("x"), None)}, weight={"specs": (None, P("y", "x"))})
def while_loop(specs: Tree) -> jax.stages.Lowered:
    """A fixpoint iteration that stops on convergence; one value of the carry is never changed."""

    def solve(x: jax.Array, w: jax.Array) -> jax.Array:
        def more(state: Tree) -> jax.Array:
            steps, x, old, _ = state
            return (steps < 50) & (jnp.max(jnp.abs(x - old)) > 1e-5)

        def advance(state: Tree) -> Tree:
            steps, x, _, w = state
            return steps + 1, jnp.tanh(x @ w), x, w

        return lax.while_loop(more, advance, (0, x, x + 1, w))[1]

    return lower(solve, MESH, (_x, _w), specs)


@variants(operands={"specs": (P("x"), P(None, "y"))}, inside={"specs": (None, None), "pin": True})
def branches(specs: Tree, pin: bool = False) -> jax.stages.Lowered:
    def run(x: jax.Array, w: jax.Array, which: jax.Array) -> Tree:
        def product(x: jax.Array) -> jax.Array:
            return constrain(x @ w, MESH, "x", "y") if pin else x @ w

        y = lax.switch(which, [product, jnp.sin, lambda x: x.at[0].set(0.0)], x)
        z = lax.cond(which > 1, lambda x, y: (x, y), lambda x, y: (y * 2, x), x, y)
        return y, z

    return lower(run, MESH, (_x, _w, i32()), (*specs, None))


@program
def nested_loops() -> jax.stages.Lowered:
    """A loop in a branch in a loop, all of them over the same values."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        def inner(_: int, x: jax.Array) -> jax.Array:
            return lax.cond(x.sum() > 0, lambda x: jnp.cos(x @ w), lambda x: x * 2, x)

        def outer(x: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = lax.fori_loop(0, 3, inner, x) * scale
            return x, x.sum(0)

        return lax.scan(outer, x, jnp.arange(4.0))[1]

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@program
def gradient_of_loops() -> jax.stages.Lowered:
    """Reverse mode through `scan` with a branch, forward mode through `while_loop`."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        def layer(x: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = lax.cond(i % 2 == 0, lambda x: jnp.tanh(x @ w), lambda x: x + 1, x)
            return x, jnp.mean(x)

        def loss(x: jax.Array) -> jax.Array:
            last, means = lax.scan(layer, x, jnp.arange(6))
            return jnp.sum(last) + jnp.sum(means)

        def grow(x: jax.Array) -> jax.Array:
            return lax.while_loop(lambda x: jnp.sum(x) < 1e3, lambda x: jnp.exp(x @ w), x)

        return jax.grad(loss)(x), jax.jvp(grow, (x,), (jnp.ones_like(x),))

    return lower(run, MESH, (_x, _w), (P("x"), P(None, "y")))


@variants(
    everything={"policy": None},
    dots_saved={"policy": jax.checkpoint_policies.dots_with_no_batch_dims_saveable},
    nothing_saved={"policy": jax.checkpoint_policies.nothing_saveable},
    names_saved={"policy": jax.checkpoint_policies.save_only_these_names("hidden")},
    offloaded={
        "policy": jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["hidden"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    },
)
def remat(policy: Tree) -> jax.stages.Lowered:
    @partial(jax.checkpoint, policy=policy)
    def block(x: jax.Array, w: jax.Array) -> jax.Array:
        h = checkpoint_name(jnp.sin(x @ w), "hidden")
        return x + jax.nn.gelu(h @ w.T)

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(block(block(x, w), w)))

    return lower(jax.value_and_grad(loss), MESH, (_w, _x), (P(None, "y"), P("x")))


@jax.custom_vjp
def _clipped(x: jax.Array) -> jax.Array:
    return jnp.where(x > 0, x, 0.1 * x)


def _clipped_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _clipped(x), x


def _clipped_backward(x: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    return (jnp.clip(jnp.where(x > 0, g, 0.1 * g), -1, 1),)


_clipped.defvjp(_clipped_forward, _clipped_backward)


@jax.custom_jvp
def _soft_sign(x: jax.Array) -> jax.Array:
    return x / (1 + jnp.abs(x))


@_soft_sign.defjvp
def _soft_sign_tangent(primals: Tree, tangents: Tree) -> Tree:
    (x,), (t,) = primals, tangents
    return _soft_sign(x), t / jnp.square(1 + jnp.abs(x))


@program
def custom_gradients() -> jax.stages.Lowered:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        x = lax.stop_gradient(_clipped(x @ w)) + _soft_sign(x @ w.T)
        return jnp.sum(jax.vmap(_clipped)(x))

    def run(w: jax.Array, x: jax.Array) -> Tree:
        return jax.value_and_grad(loss)(w, x), jax.jvp(_soft_sign, (x,), (x,))

    return lower(run, MESH, (_w, _x), (P(None, "y"), P("x")))


@program
def derivatives() -> jax.stages.Lowered:
    """Jacobians, a Hessian-vector product, gradients of each example, a meta-gradient."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(jnp.tanh(x @ w)))

    def adapted(w: jax.Array, x: jax.Array) -> jax.Array:
        return loss(w - 0.1 * jax.grad(loss)(w, x), x)

    def run(w: jax.Array, x: jax.Array) -> Tree:
        return (
            jax.jacfwd(loss)(w, x),
            jax.jacrev(lambda x: jnp.sin(x @ w).sum(0))(x),
            jax.jvp(partial(jax.grad(loss), x=x), (w,), (jnp.ones_like(w),))[1],
            jax.vmap(jax.grad(loss), in_axes=(None, 0))(w, x[:, None]),
            jax.grad(adapted)(w, x),
        )

    return lower(run, MESH, (_w, _x), (P(None, "y"), P("x")))


@variants(rows={"spec": P("x")}, columns={"spec": P(None, "x")})
def batched_control(spec: P) -> jax.stages.Lowered:
    """vmap turns branches into selections and gives a loop's condition a batch dim."""

    def one(x: jax.Array, w: jax.Array) -> jax.Array:
        x = lax.cond(x[0] > 0, jnp.sin, lambda x: x * 2, x)
        x = lax.while_loop(lambda x: jnp.sum(x) < 10, lambda x: jnp.exp(x @ w), x)
        return lax.fori_loop(0, 4, lambda i, x: x.at[i].add(x[i + 1]), x)

    return lower(jax.vmap(one, in_axes=(0, None)), MESH, (_x, _w), (spec, None))


@program
def mapped_batches() -> jax.stages.Lowered:
    """`lax.map` in batches, `fori_loop` with a traced bound, and `scan` in reverse with a gap."""

    def run(x: jax.Array, w: jax.Array, steps: jax.Array) -> Tree:
        y = lax.map(lambda row: jnp.tanh(row @ w), x, batch_size=3)
        z = lax.fori_loop(0, steps, lambda i, x: lax.dynamic_update_index_in_dim(x, x[i], 0, 0), x)
        _, sums = lax.scan(lambda c, r: (c + r, c), jnp.zeros(WIDTH), x[::2], reverse=True)
        return y, z, sums

    return lower(run, MESH, (_x, _w, i32()), (P("x"), P("y"), None))


@variants(plain={}, with_barrier={"barrier": True})
def many_carried(values: int = 12, barrier: bool = False) -> jax.stages.Lowered:
    """A loop that rotates its values: shardings travel around the back edge, one place a turn."""

    def run(xs: list[jax.Array], w: jax.Array) -> Tree:
        def advance(_: int, xs: list[jax.Array]) -> list[jax.Array]:
            xs = [*xs[1:], jnp.tanh(xs[0])]
            return lax.optimization_barrier(xs) if barrier else xs

        return [x @ w for x in lax.fori_loop(0, 5, advance, xs)]

    specs = [P("x") if at == 3 else P(None, "y") if at == 7 else None for at in range(values)]
    return lower(run, MESH, ([_x] * values, _w), (specs, None))


@program
def diffusion_sampler() -> jax.stages.Lowered:
    """A solver of an ordinary differential equation with an adaptive step."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        def flow(x: jax.Array, t: jax.Array) -> jax.Array:
            return jnp.tanh(x @ w) * t

        def advance(state: Tree) -> Tree:
            x, t, h = state
            k1 = flow(x, t)
            k2 = flow(x + h * k1, t + h)
            error = jnp.max(jnp.abs(k2 - k1)) * h
            good = error < 0.1
            x = jnp.where(good, x + h * (k1 + k2) / 2, x)
            return x, jnp.where(good, t + h, t), h * jnp.where(good, 1.5, 0.5)

        start = (x, jnp.zeros(()), jnp.full((), 0.1))
        return lax.while_loop(lambda state: state[1] < 1, advance, start)[0]

    return lower(run, MESH, (_x, _w), (P("x", "y"), None), P(None, "x"))
