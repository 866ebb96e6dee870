"""Optimizers whose updates are more than elementwise, and adapters of weights that stay."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, lower, mesh
from tests.shardy.xla.models.catalog import models
from tests.shardy.xla.models.llama import rms_norm

SIZES = (512, 1024, 1024, 256)
BATCH = P(("data", "fsdp"))


def _loss(weights: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return jnp.mean(jnp.square(x @ weights[-1] - wanted))


def _mean_square(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.mean(x * x))


@models(factored={"rows": P("fsdp"), "columns": P()})
def adafactor(rows: P, columns: P) -> jax.stages.Lowered:
    """Second moments as products of those of rows and columns."""

    def updated(p: jax.Array, r: jax.Array, c: jax.Array, g: jax.Array) -> tuple[jax.Array, ...]:
        square = g * g + 1e-30
        r, c = 0.99 * r + 0.01 * square.mean(1), 0.99 * c + 0.01 * square.mean(0)
        u = g * jax.lax.rsqrt(r / r.mean())[:, None] * jax.lax.rsqrt(c)
        rate = 1e-2 * jnp.maximum(1e-3, _mean_square(p))
        return p - rate * u / jnp.maximum(1.0, _mean_square(u)), r, c

    def step(state: Tree, x: jax.Array, wanted: jax.Array) -> tuple[Tree, jax.Array]:
        value, grads = jax.value_and_grad(_loss)(state["p"], x, wanted)
        rows = zip(state["p"], state["r"], state["c"], grads, strict=True)
        p, r, c = zip(*itertools.starmap(updated, rows), strict=True)
        return {"p": list(p), "r": list(r), "c": list(c)}, value

    pairs = list(itertools.pairwise(SIZES))
    state = {
        "p": [f32(a, b) for a, b in pairs],
        "r": [f32(a) for a, _ in pairs],
        "c": [f32(b) for _, b in pairs],
    }
    specs = {"p": [rows] * 3, "r": [rows] * 3, "c": [columns] * 3}
    arguments = (state, f32(1024, SIZES[0]), f32(1024, SIZES[-1]))
    on = mesh(data=2, fsdp=4)
    return lower(step, on, arguments, (specs, BATCH, BATCH), (specs, None), donate=0)


@models(columns={"spec": P(None, "fsdp")})
def muon(spec: P) -> jax.stages.Lowered:
    """Momentum that is made orthogonal by Newton and Schulz's iteration."""

    def orthogonal(g: jax.Array) -> jax.Array:
        x = g / (jnp.linalg.norm(g) + 1e-7)
        for _ in range(3):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x

    def step(state: Tree, x: jax.Array, wanted: jax.Array) -> tuple[Tree, jax.Array]:
        value, grads = jax.value_and_grad(_loss)(state["p"], x, wanted)
        m = [0.95 * m + g for m, g in zip(state["m"], grads, strict=True)]
        moves = [orthogonal(0.95 * m + g) for m, g in zip(m, grads, strict=True)]
        return {"p": [p - 0.02 * u for p, u in zip(state["p"], moves, strict=True)], "m": m}, value

    shapes = [f32(a, b) for a, b in itertools.pairwise(SIZES)]
    state, specs = {"p": shapes, "m": shapes}, {"p": [spec] * 3, "m": [spec] * 3}
    arguments = (state, f32(1024, SIZES[0]), f32(1024, SIZES[-1]))
    on = mesh(data=2, fsdp=4)
    return lower(step, on, arguments, (specs, BATCH, BATCH), (specs, None), donate=0)


@models(grid={"rows": "fsdp", "columns": "tensor"})
def adapters(rows: Any, columns: Any) -> jax.stages.Lowered:
    """Adapters of low rank beside weights that are sharded along two axes, with momentum."""
    width, inner, rank, depth = 512, 2048, 16, 3

    def loss(adapters: Tree, base: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
        for a, p in zip(adapters, base, strict=True):
            y = rms_norm(x, p["norm"])
            y = jax.nn.gelu(y @ p["up"] + (y @ a["up_in"]) @ a["up_out"])
            x = x + y @ p["down"] + (y @ a["down_in"]) @ a["down_out"]
        return jnp.mean(jnp.square(x - wanted))

    def step(state: Tree, base: Tree, x: jax.Array, wanted: jax.Array) -> Tree:
        grads = jax.grad(loss)(state["p"], base, x, wanted)
        m = jax.tree.map(lambda m, g: 0.9 * m + g, state["m"], grads)
        return {"p": jax.tree.map(lambda p, m: p - 0.1 * m, state["p"], m), "m": m}

    base = {"norm": f32(width), "up": f32(width, inner), "down": f32(inner, width)}
    base_specs = {"norm": P(), "up": P(rows, columns), "down": P(columns, rows)}
    small = {
        "up_in": f32(width, rank),
        "up_out": f32(rank, inner),
        "down_in": f32(inner, rank),
        "down_out": f32(rank, width),
    }
    small_specs = {
        "up_in": P(),
        "up_out": P(None, columns),
        "down_in": P(columns),
        "down_out": P(),
    }
    state = {"p": [small] * depth, "m": [small] * depth}
    state_specs = {"p": [small_specs] * depth, "m": [small_specs] * depth}
    x = f32(16, 128, width)
    return lower(
        step,
        mesh(fsdp=4, tensor=2),
        (state, [base] * depth, x, x),
        (state_specs, [base_specs] * depth, P(rows), P(rows)),
        state_specs,
        donate=0,
    )
