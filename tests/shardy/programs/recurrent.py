"""Recurrences: LSTM and GRU by `scan`, state-space models by `associative_scan`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh, variants

BATCH, TIME, WIDTH, STATE, VOCAB = 8, 16, 32, 8, 64


def _lstm(p: Tree, x: jax.Array, reverse: bool = False) -> jax.Array:
    def cell(carry: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[Tree, jax.Array]:
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[0], p["h"].shape[0]))
    _, hs = jax.lax.scan(cell, (zeros, zeros), x.swapaxes(0, 1), reverse=reverse)
    return hs.swapaxes(0, 1)


@variants(
    data={"on": mesh(data=8)},
    hidden={"on": mesh(data=2, hidden=4), "hidden": "hidden"},
    weights_only={"on": mesh(data=2, hidden=4), "hidden": "hidden", "batch": None},
)
def lstm(
    on: AbstractMesh, hidden: str | None = None, batch: str | None = "data"
) -> jax.stages.Lowered:
    """Two layers, the second bidirectional, trained to predict the next token."""

    def loss(params: Tree, tokens: jax.Array) -> jax.Array:
        x = _lstm(params["first"], params["embedding"][tokens])
        x = jnp.concatenate(
            [_lstm(params["forward"], x), _lstm(params["backward"], x, reverse=True)], axis=-1
        )
        logits = layers.dense(x, params["head"])
        return layers.cross_entropy(logits[:, :-1], tokens[:, 1:])

    cell = {"x": f32(WIDTH, 4 * WIDTH), "h": f32(WIDTH, 4 * WIDTH), "b": f32(4 * WIDTH)}
    cell_specs = {"x": P(None, hidden), "h": P(None, hidden), "b": P(hidden)}
    names = ("first", "forward", "backward")
    params = dict.fromkeys(names, cell) | {
        "embedding": f32(VOCAB, WIDTH),
        "head": layers.dense_shapes(2 * WIDTH, VOCAB),
    }
    specs = dict.fromkeys(names, cell_specs) | {"embedding": None, "head": None}
    tokens_spec = None if batch is None else P(batch)
    arguments = (params, params, i32(BATCH, TIME))
    return lower(layers.sgd_momentum(loss), on, arguments, (specs, None, tokens_spec))


def _selective_scan(x: jax.Array, p: Tree) -> jax.Array:
    """A diagonal linear recurrence whose decay depends on the input, over the time dim."""
    rate = jax.nn.softplus(x @ p["rate"])
    decay = jnp.exp(-rate[..., None] * jnp.exp(p["decay"]))
    drive = (rate * x)[..., None] * (x @ p["in"])[:, :, None, :]

    def compose(a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]) -> Tree:
        return a[0] * b[0], b[0] * a[1] + b[1]

    _, states = jax.lax.associative_scan(compose, (decay, drive), axis=1)
    return jnp.einsum("btws,bts->btw", states, x @ p["out"]) + x * p["skip"]


def _causal_conv(x: jax.Array, w: jax.Array) -> jax.Array:
    """Depthwise over time, looking back only."""
    return jax.lax.conv_general_dilated(
        x,
        w,
        (1,),
        [(w.shape[0] - 1, 0)],
        dimension_numbers=("NWC", "WIO", "NWC"),
        feature_group_count=x.shape[-1],
    )


@variants(
    data={"on": mesh(data=8)},
    width={"on": mesh(data=2, width=4), "width": "width"},
    forward={"on": mesh(data=2, width=4), "width": "width", "train": False},
)
def state_space(
    on: AbstractMesh, width: str | None = None, train: bool = True, depth: int = 1
) -> jax.stages.Lowered:
    def loss(params: Tree, x: jax.Array, target: jax.Array) -> jax.Array:
        for p in params:
            y, gate = jnp.split(layers.layer_norm(x, p["norm"]) @ p["expand"], 2, axis=-1)
            y = jax.nn.silu(_causal_conv(y, p["conv"]))
            x = x + (_selective_scan(y, p) * jax.nn.silu(gate)) @ p["shrink"]
        return jnp.mean(jnp.square(x - target))

    block = {
        "norm": layers.norm_shapes(WIDTH),
        "expand": f32(WIDTH, 4 * WIDTH),
        "conv": f32(4, 1, 2 * WIDTH),
        "rate": f32(2 * WIDTH, 2 * WIDTH),
        "decay": f32(2 * WIDTH, STATE),
        "in": f32(2 * WIDTH, STATE),
        "out": f32(2 * WIDTH, STATE),
        "skip": f32(2 * WIDTH),
        "shrink": f32(2 * WIDTH, WIDTH),
    }
    specs = dict.fromkeys(block) | {
        "expand": P(None, width),
        "decay": P(width),
        "shrink": P(width, None),
    }
    x = f32(BATCH, TIME, WIDTH)
    params, param_specs = [block] * depth, [specs] * depth
    if not train:
        return lower(loss, on, (params, x, x), (param_specs, P("data"), None))
    step = layers.sgd_momentum(loss)
    return lower(step, on, (params, params, x, x), (param_specs, None, P("data"), None))


@variants(data={"on": mesh(data=4)}, hidden={"on": mesh(data=2, hidden=2), "hidden": "hidden"})
def gru_decoder(on: AbstractMesh, hidden: str | None = None) -> jax.stages.Lowered:
    """Greedy decoding until every sequence has ended: a `while_loop` that carries its output."""

    def cell(p: Tree, h: jax.Array, x: jax.Array) -> jax.Array:
        r, z = jnp.split(jax.nn.sigmoid(x @ p["x_gates"] + h @ p["h_gates"]), 2, axis=-1)
        n = jnp.tanh(x @ p["x_new"] + (r * h) @ p["h_new"])
        return (1 - z) * n + z * h

    def decode(p: Tree, h: jax.Array) -> jax.Array:
        def more(state: Tree) -> jax.Array:
            step, _, _, _, ended = state
            return (step < TIME) & ~ended.all()

        def advance(state: Tree) -> Tree:
            step, h, token, tokens, ended = state
            h = cell(p, h, p["embedding"][token])
            token = jnp.where(ended, 0, jnp.argmax(h @ p["embedding"].T, axis=-1))
            tokens = jax.lax.dynamic_update_index_in_dim(tokens, token, step, axis=1)
            return step + 1, h, token, tokens, ended | (token == 1)

        start = jnp.zeros(BATCH, jnp.int32)
        tokens = jnp.zeros((BATCH, TIME), jnp.int32)
        return jax.lax.while_loop(more, advance, (0, h, start, tokens, start > 0))[3]

    params = {
        "x_gates": f32(WIDTH, 2 * WIDTH),
        "h_gates": f32(WIDTH, 2 * WIDTH),
        "x_new": f32(WIDTH, WIDTH),
        "h_new": f32(WIDTH, WIDTH),
        "embedding": f32(VOCAB, WIDTH),
    }
    specs = dict.fromkeys(params) | {"x_gates": P(None, hidden), "embedding": P(hidden, None)}
    return lower(decode, on, (params, f32(BATCH, WIDTH)), (specs, P("data")))
