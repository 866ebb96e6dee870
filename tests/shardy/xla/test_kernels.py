"""What XLA for hosts fuses, and what runs as one: each program has one such thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla import compiled
from tests.shardy.xla.measured import measure

DATA, GRID = mesh(data=8), mesh(data=2, tensor=4)
WIDTH = 256


def normalised(x: jax.Array, scale: jax.Array) -> jax.Array:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt(jnp.square(centered).mean(-1, keepdims=True) + 1e-5) * scale


def likelihood(p: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
    """A product of what is normalised, of which only sums are needed."""
    for w in p["layers"]:
        x = x + jax.nn.gelu(x @ w) @ w.T
    logs = jax.nn.log_softmax(normalised(x, p["scale"]) @ p["head"].T)
    return -jnp.take_along_axis(logs, labels[..., None], -1).mean()


def advantages(rewards: jax.Array, values: jax.Array, ends: jax.Array) -> tuple[Any, ...]:
    """A loop whose result is returned, and something else of the same size."""
    following = jnp.concatenate([values[1:], values[-1:]])
    errors = rewards + 0.99 * following * (1 - ends) - values

    def back(total: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, end = at
        total = error + 0.9 * (1 - end) * total
        return total, total

    found = lax.scan(back, jnp.zeros(rewards.shape[1]), (errors, ends), reverse=True)[1]
    return found, found + values


def critic(p: Tree, x: jax.Array, returns: jax.Array) -> jax.Array:
    """Gradients of a product with one column: they are products over one element."""

    def loss(p: Tree) -> jax.Array:
        hidden = jnp.tanh(jnp.tanh(x @ p["first"]) @ p["second"])
        value = (hidden @ p["value"])[..., 0]
        likely = jax.nn.log_softmax(hidden @ p["policy"])
        return jnp.square(value - returns).mean() + (jnp.exp(likely) * likely).sum(-1).mean()

    return jax.grad(loss)(p)


def memory(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Outer products that are added up, and read."""

    def step(state: jax.Array, at: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        q, k, v = at
        state = 0.9 * state + jnp.einsum("bhd,bhe->bhde", k, v)
        return state, jnp.einsum("bhd,bhde->bhe", q, state)

    width = q.shape[-1]
    return lax.scan(step, jnp.zeros((*q.shape[1:], width)), (q, k, v))[1]


def attraction(x: jax.Array, mass: jax.Array) -> jax.Array:
    """A sum of what is computed from sums of the same values."""

    def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        apart = x[None] - x[:, None]
        squares = jnp.square(apart).sum(-1) + 1e-2
        return x + 0.01 * (apart * (mass[None] / squares**1.5)[..., None]).sum(1), None

    return lax.scan(step, x, None, length=4)[0]


def ranks(rank: jax.Array, sources: jax.Array, targets: jax.Array) -> jax.Array:
    """A loop of which the places that it reads and writes are computed before it."""

    def step(_: int, rank: jax.Array) -> jax.Array:
        return 0.1 + 0.8 * jnp.zeros_like(rank).at[targets].add(rank[sources])

    return lax.fori_loop(0, 10, step, rank)


HEADS = f32(32, 16, 4, 32)
CRITIC = {
    "first": f32(64, 128),
    "second": f32(128, 128),
    "policy": f32(128, 8),
    "value": f32(128, 1),
}
HEAD = {"layers": [f32(WIDTH, WIDTH)] * 4, "scale": f32(WIDTH), "head": f32(2048, WIDTH)}
COLUMNS = P(None, "tensor")
HEAD_SPECS = {"layers": [COLUMNS] * 4, "scale": P(), "head": P()}
CASES: dict[str, tuple[Callable[..., Any], Any, Tree, Tree]] = {
    "likelihood": (
        likelihood,
        GRID,
        (HEAD, f32(32, 128, WIDTH), i32(32, 128)),
        (HEAD_SPECS, P("data"), P("data")),
    ),
    "advantages": (advantages, DATA, (f32(128, 512),) * 3, (P(None, "data"),) * 3),
    "critic": (
        critic,
        DATA,
        (CRITIC, f32(4096, 64), f32(4096)),
        (dict.fromkeys(CRITIC, P()), P("data"), P("data")),
    ),
    "attraction": (attraction, DATA, (f32(512, 3), f32(512)), (P("data"), P())),
    "ranks": (
        ranks,
        DATA,
        (f32(4096), i32(32768), i32(32768)),
        (P(), P("data"), P("data")),
    ),
    "memory": (memory, GRID, (HEADS,) * 3, (P(None, "data", "tensor"),) * 3),
}


@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_xla(case: str) -> None:
    function, on, arguments, specs = CASES[case]
    text = str(lower(function, on, arguments, specs, platform="cpu").as_text())
    cost = shardcore.Module.parse(text).propagate(legalize_chlo=True).cost()
    assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=0.1)
    assert cost.flops_counting_loops_once == pytest.approx(compiled.flops(text), rel=0.05)
