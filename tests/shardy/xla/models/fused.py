"""Projections in one product, of which parts are sliced, and decoders that several losses share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models
from tests.shardy.xla.models.llama import rms_norm

BATCH, TIME, WIDTH, HEADS, INNER, VOCAB, DEPTH = 16, 128, 256, 8, 512, 2048, 2


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention of (batch, time, heads, head)."""
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    mask = jnp.tril(jnp.ones((q.shape[1],) * 2, bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def fused_layer(x: jax.Array, p: Tree) -> jax.Array:
    """A layer whose queries, keys and values are one product, and whose gates and units are."""
    parts = jnp.split(x @ p["qkv"], 3, -1)
    q, k, v = (part.reshape(*part.shape[:2], HEADS, -1) for part in parts)
    x = x + attend(q, k, v).reshape(x.shape) @ p["o"]
    gate, up = jnp.split(x @ p["gate_up"], 2, -1)
    return x + (jax.nn.silu(gate) * up) @ p["down"]


@models(train={"is_trained": True}, forward={"is_trained": False})
def fused(is_trained: bool) -> jax.stages.Lowered:
    """Layers with fused projections, of which each shard has parts of several results."""

    def forward(layers: Tree, x: jax.Array) -> jax.Array:
        for p in layers:
            x = fused_layer(x, p)
        return x

    def loss(layers: Tree, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(forward(layers, x)))

    own = {"qkv": f32(WIDTH, 3 * WIDTH), "o": f32(WIDTH, WIDTH)}
    own |= {"gate_up": f32(WIDTH, 2 * INNER), "down": f32(INNER, WIDTH)}
    by_columns, by_rows = P(None, "tensor"), P("tensor")
    specs = [{"qkv": by_columns, "o": by_rows, "gate_up": by_columns, "down": by_rows}] * DEPTH
    return lower(
        jax.value_and_grad(loss) if is_trained else forward,
        mesh(data=2, tensor=4),
        ([own] * DEPTH, f32(BATCH, TIME, WIDTH)),
        (specs, P("data")),
        (None, specs) if is_trained else None,
        platform="cpu",
    )


@models(grid={"fsdp": "data", "tensor": "tensor"}, vocabulary={"fsdp": None, "tensor": "tensor"})
def preferences(fsdp: str | None, tensor: str) -> jax.stages.Lowered:
    """Two answers, each told by a model and by a frozen one; the first is to be preferred."""

    def told(p: Tree, tokens: jax.Array) -> jax.Array:
        x = p["embedding"][tokens]
        for layer in p["layers"]:
            y = rms_norm(x, layer["norm"])
            q, k, v = (jnp.einsum("btw,whd->bthd", y, layer[name]) for name in "qkv")
            x = x + jnp.einsum("bthd,hdw->btw", attend(q, k, v), layer["o"])
            x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
        logs = jax.nn.log_softmax((x @ p["embedding"].T)[:, :-1])
        return jnp.take_along_axis(logs, tokens[:, 1:, None], -1).sum((1, 2))

    def loss(p: Tree, frozen: Tree, better: jax.Array, worse: jax.Array) -> jax.Array:
        gain = told(p, better) - told(p, worse) - told(frozen, better) + told(frozen, worse)
        return -jax.nn.log_sigmoid(0.1 * gain).mean()

    def step(state: Tree, frozen: Tree, better: jax.Array, worse: jax.Array) -> Tree:
        return adam(lambda p, *batch: loss(p, frozen, *batch))(state, better, worse)

    heads = f32(WIDTH, HEADS, WIDTH // HEADS)
    own = dict.fromkeys("qkv", heads) | {"o": f32(HEADS, WIDTH // HEADS, WIDTH)}
    own |= {"up": f32(WIDTH, INNER), "down": f32(INNER, WIDTH), "norm": f32(WIDTH)}
    own_specs = dict.fromkeys("qkv", P(fsdp, tensor)) | {"o": P(tensor, None, fsdp)}
    own_specs |= {"up": P(fsdp, tensor), "down": P(tensor, fsdp), "norm": P()}
    params = {"embedding": f32(VOCAB, WIDTH), "layers": [own] * DEPTH}
    specs = {"embedding": P(tensor, fsdp), "layers": [own_specs] * DEPTH}
    tokens, state_specs = i32(BATCH, TIME), adam_state(specs, P())
    return lower(
        step,
        mesh(data=4, tensor=2),
        (adam_state(params, i32()), params, tokens, tokens),
        (state_specs, specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
        platform="cpu",
    )
