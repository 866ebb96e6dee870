"""Attention to more than one device holds: rings, exchanged heads, rolling caches, two encoders."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models
from tests.shardy.xla.models.llama import rms_norm

BATCH, TIME, HEADS, HEAD, WIDTH, PARTS = 4, 1024, 8, 64, 512, 4


def _ring(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention of one part of a sequence; keys and values go round."""
    batch, time, heads, _ = q.shape
    turn = [(i, (i + 1) % PARTS) for i in range(PARTS)]

    def step(state: Any, _: None) -> tuple[Any, None]:
        k, v, most, total, y = state
        scores = jnp.einsum("bthd,bshd->bhts", q, k) * HEAD**-0.5
        new = jnp.maximum(most, scores.max(-1))
        weights, old = jnp.exp(scores - new[..., None]), jnp.exp(most - new)
        y = y * old[..., None] + jnp.einsum("bhts,bshd->bhtd", weights, v)
        k, v = (jax.lax.ppermute(part, "parts", turn) for part in (k, v))
        return (k, v, new, total * old + weights.sum(-1), y), None

    rows = (batch, heads, time)
    start = (jnp.full(rows, -jnp.inf), jnp.zeros(rows), jnp.zeros((*rows, HEAD)))
    start = jax.lax.pcast(start, ("data", "parts"), to="varying")
    (_, _, _, total, y), _ = jax.lax.scan(step, (k, v, *start), None, length=PARTS)
    return jnp.moveaxis(y / total[..., None], 1, 2)


@models(ring={"is_ring": True}, exchanged={"is_ring": False})
def parts(is_ring: bool) -> jax.stages.Lowered:
    """A sequence in parts: a ring by hand, or constraints that exchange the time for heads."""
    on = mesh(data=2, parts=PARTS)
    spec = P("data", "parts")
    ring = jax.shard_map(_ring, mesh=on, in_specs=(spec,) * 3, out_specs=spec)

    def exchanged(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        q, k, v = (constrain(one, on, "data", None, "parts") for one in (q, k, v))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) * HEAD**-0.5
        y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
        return constrain(y, on, "data", "parts")

    def loss(p: Tree, x: jax.Array) -> jax.Array:
        q, k, v = (jnp.einsum("btw,whd->bthd", x, p[name]) for name in "qkv")
        y = (ring if is_ring else exchanged)(q, k, v)
        return jnp.mean(jnp.square(x + jnp.einsum("bthd,hdw->btw", y, p["o"])))

    params = dict.fromkeys("qkv", f32(WIDTH, HEADS, HEAD)) | {"o": f32(HEADS, HEAD, WIDTH)}
    specs = dict.fromkeys(params, P())
    arguments = (params, f32(BATCH, TIME, WIDTH))
    return lower(jax.value_and_grad(loss), on, arguments, (specs, spec), (None, specs))


@models(cache={"tensor": "tensor"})
def rolling(tensor: str) -> jax.stages.Lowered:
    """One token through layers whose caches keep the last tokens; the head is the embedding."""
    batch, window, heads, kv_heads, width, inner, depth = 16, 512, 16, 4, 1024, 4096, 2

    def layer(x: jax.Array, p: Tree, cache: Tree, at: jax.Array) -> tuple[jax.Array, Tree]:
        y = rms_norm(x, p["norm1"])
        q, *new = (jnp.einsum("bw,whd->bhd", y, p[name]) for name in "qkv")
        slot = at % window
        keys, values = (
            jax.lax.dynamic_update_slice_in_dim(cache[name], one[:, None], slot, 1)
            for name, one in zip("kv", new, strict=True)
        )
        grouped = q.reshape(batch, kv_heads, -1, HEAD)
        scores = jnp.einsum("bkgd,bskd->bkgs", grouped, keys) * HEAD**-0.5
        scores = jnp.where((slot - jnp.arange(window)) % window <= at, scores, -1e9)
        y = jnp.einsum("bkgs,bskd->bkgd", jax.nn.softmax(scores), values)
        x = x + jnp.einsum("bhd,hdw->bw", y.reshape(batch, heads, HEAD), p["o"])
        y = rms_norm(x, p["norm2"])
        return x + jax.nn.gelu(y @ p["up"]) @ p["down"], {"k": keys, "v": values}

    def step(params: Tree, caches: Tree, tokens: jax.Array, at: jax.Array) -> Tree:
        x = params["embedding"][tokens]
        new = []
        for p, cache in zip(params["layers"], caches, strict=True):
            x, cache = layer(x, p, cache, at)
            new.append(cache)
        return jnp.argmax(rms_norm(x, params["norm"]) @ params["embedding"].T, -1), new

    own = {
        "norm1": f32(width),
        "norm2": f32(width),
        "q": f32(width, heads, HEAD),
        "k": f32(width, kv_heads, HEAD),
        "v": f32(width, kv_heads, HEAD),
        "o": f32(heads, HEAD, width),
        "up": f32(width, inner),
        "down": f32(inner, width),
    }
    own_specs = dict.fromkeys(["q", "k", "v", "up"], P(None, tensor))
    own_specs |= {"norm1": P(), "norm2": P(), "o": P(tensor), "down": P(tensor)}
    params = {"embedding": f32(8192, width), "layers": [own] * depth, "norm": f32(width)}
    specs = {"embedding": P(tensor), "layers": [own_specs] * depth, "norm": P()}
    cache = dict.fromkeys("kv", f32(batch, window, kv_heads, HEAD))
    caches = [dict.fromkeys("kv", P("data", None, tensor))] * depth
    return lower(
        step,
        mesh(data=2, tensor=4),
        (params, [cache] * depth, i32(batch), i32()),
        (specs, caches, P("data"), P()),
        (P("data"), caches),
        donate=1,
    )


@models(tensor={"tensor": "tensor"})
def speech(tensor: str) -> jax.stages.Lowered:
    """Convolutions over time, an encoder, and a decoder that attends to it; trained."""
    heads, inner, vocab = 8, 2048, 8192

    def over_time(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
        numbers = ("NTC", "TIO", "NTC")
        y = jax.lax.conv_general_dilated(x, w, (stride,), "SAME", dimension_numbers=numbers)
        return jax.nn.gelu(y)

    def units(x: jax.Array, p: Tree) -> jax.Array:
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"]

    def loss(p: Tree, sound: jax.Array, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = over_time(over_time(sound, p["first"], 1), p["second"], 2)
        x = units(x + layers.attend(x, x, p["encoder"]), p["encoder_units"])
        y = p["embedding"][tokens]
        mask = np.tril(np.ones((tokens.shape[1],) * 2, bool))
        y = y + layers.attend(y, y, p["decoder"], mask)
        y = units(y + layers.attend(y, x, p["cross"]), p["decoder_units"])
        logs = jax.nn.log_softmax(y @ p["embedding"].T)
        return -jnp.mean(jnp.take_along_axis(logs, labels[..., None], -1))

    attentions, both = ("encoder", "decoder", "cross"), ("encoder_units", "decoder_units")
    params = dict.fromkeys(attentions, layers.attention_shapes(WIDTH, heads))
    params |= {name: {"up": f32(WIDTH, inner), "down": f32(inner, WIDTH)} for name in both}
    params |= {"first": f32(3, 80, WIDTH), "second": f32(3, WIDTH, WIDTH)}
    params |= {"embedding": f32(vocab, WIDTH)}
    specs: Tree = dict.fromkeys(attentions, layers.attention_specs(None, tensor))
    specs |= {name: {"up": P(None, tensor), "down": P(tensor)} for name in both}
    specs |= {"first": P(None, None, tensor), "second": P(None, tensor), "embedding": P(tensor)}
    state_specs = adam_state(specs, P())
    return lower(
        adam(loss),
        mesh(tensor=8),
        (adam_state(params, i32()), f32(8, 256, 80), i32(8, 64), i32(8, 64)),
        (state_specs, P(), P(), P()),
        (state_specs, None),
        donate=0,
    )
