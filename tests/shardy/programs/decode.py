"""Serving: prefill and decode steps of a transformer that keeps keys and values in a cache."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh, variants

BATCH, LENGTH, WIDTH, HEADS, KEY_HEADS, HEAD, VOCAB = 8, 32, 32, 8, 2, 8, 96


def rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary position embedding over the last dim of (batch, time, heads, head)."""
    frequencies = 10_000 ** -(jnp.arange(0, HEAD, 2) / HEAD)
    angles = positions[..., None, None] * frequencies
    a, b = x[..., ::2], x[..., 1::2]
    turned = (a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles))
    return jnp.stack(turned, axis=-1).reshape(x.shape)


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def grouped_attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    """Several query heads to one head of keys and values."""
    batch, time = q.shape[:2]
    q = q.reshape(batch, time, KEY_HEADS, HEADS // KEY_HEADS, HEAD)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k) * HEAD**-0.5
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bkgts,bskd->btkgd", weights, v).reshape(batch, time, HEADS * HEAD)


def _model(
    params: Tree, cache: Tree, tokens: jax.Array, start: jax.Array, on: AbstractMesh
) -> tuple[jax.Array, Tree]:
    """Logits of the last token of each sequence, and the cache with the tokens' keys and values."""
    time = tokens.shape[1]
    positions = start[:, None] + jnp.arange(time)
    mask = (jnp.arange(LENGTH) <= positions[..., None])[:, None, None]
    x = params["embedding"][tokens]

    def put(old: jax.Array, new: jax.Array) -> jax.Array:
        write = jax.vmap(lambda o, n, at: jax.lax.dynamic_update_slice(o, n, (at, 0, 0)))
        return write(old, new, start)

    updated = []
    for p, kept in zip(params["blocks"], cache, strict=True):
        y = rms_norm(x, p["norms"][0])
        q, k, v = (jnp.einsum("btw,whd->bthd", y, p[name]) for name in ("q", "k", "v"))
        new = {"k": put(kept["k"], rotate(k, positions)), "v": put(kept["v"], v)}
        updated.append(new)
        y = grouped_attention(rotate(q, positions), new["k"], new["v"], mask)
        x = constrain(x + y @ p["out"], on, "data", None, None)
        y = rms_norm(x, p["norms"][1])
        x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
    return rms_norm(x[:, -1], params["norm"]) @ params["embedding"].T, updated


def _params(depth: int) -> Tree:
    block = {
        "norms": [f32(WIDTH)] * 2,
        "q": f32(WIDTH, HEADS, HEAD),
        "k": f32(WIDTH, KEY_HEADS, HEAD),
        "v": f32(WIDTH, KEY_HEADS, HEAD),
        "out": f32(HEADS * HEAD, WIDTH),
        "gate": f32(WIDTH, 64),
        "up": f32(WIDTH, 64),
        "down": f32(64, WIDTH),
    }
    return {"embedding": f32(VOCAB, WIDTH), "blocks": [block] * depth, "norm": f32(WIDTH)}


def _specs(depth: int, tensor: str | None) -> Tree:
    heads, inner = P(None, tensor, None), P(None, tensor)
    block = {
        "norms": None,
        "q": heads,
        "k": heads,
        "v": heads,
        "out": P(tensor, None),
        "gate": inner,
        "up": inner,
        "down": P(tensor, None),
    }
    return {"embedding": P(tensor, None), "blocks": [block] * depth, "norm": None}


@variants(
    tensor={"on": mesh(data=4, tensor=2)},
    prefill={"on": mesh(data=4, tensor=2), "time": 16},
    sequence_cache={"on": mesh(data=2, tensor=2, cache=2), "cache_axis": "cache"},
    data={"on": mesh(data=8), "tensor": None},
)
def decode_step(
    on: AbstractMesh,
    tensor: str | None = "tensor",
    cache_axis: str | None = None,
    time: int = 1,
    depth: int = 2,
) -> jax.stages.Lowered:
    def step(params: Tree, cache: Tree, tokens: jax.Array, start: jax.Array) -> Tree:
        logits, cache = _model(params, cache, tokens, start, on)
        best, candidates = jax.lax.top_k(logits, 4)
        return candidates[:, 0], best[:, 0], cache, start + time

    kept = f32(BATCH, LENGTH, KEY_HEADS, HEAD)
    cache = [{"k": kept, "v": kept}] * depth
    cache_spec = P("data", cache_axis, tensor, None)
    arguments = (_params(depth), cache, i32(BATCH, time), i32(BATCH))
    in_specs = (_specs(depth, tensor), cache_spec, P("data"), P("data"))
    return lower(step, on, arguments, in_specs, donate=1)


@variants(greedy={"on": mesh(data=2, tensor=2)})
def generate(on: AbstractMesh, new_tokens: int = 4) -> jax.stages.Lowered:
    """Prefill and then a scan of decode steps, sampling with a key carried along."""

    def run(params: Tree, prompt: jax.Array, seed: jax.Array) -> jax.Array:
        kept = jnp.zeros((BATCH, LENGTH, KEY_HEADS, HEAD))
        cache = [{"k": kept, "v": kept}] * len(params["blocks"])
        start = jnp.zeros(BATCH, jnp.int32)
        logits, cache = _model(params, cache, prompt, start, on)

        def advance(carry: Tree, key: jax.Array) -> tuple[Tree, jax.Array]:
            logits, cache, at = carry
            token = jax.random.categorical(key, logits)
            logits, cache = _model(params, cache, token[:, None], at, on)
            return (logits, cache, at + 1), token

        keys = jax.random.split(jax.random.key(seed), new_tokens)
        _, tokens = jax.lax.scan(advance, (logits, cache, start + prompt.shape[1]), keys)
        return tokens.T

    arguments = (_params(2), i32(BATCH, 8), jax.ShapeDtypeStruct((), jnp.uint32))
    return lower(run, on, arguments, (_specs(2, "tensor"), P("data"), None))


@variants(data={"on": mesh(data=2, tensor=4)})
def beam_search(on: AbstractMesh, beams: int = 4) -> jax.stages.Lowered:
    """One step: extend, keep the best beams, and reorder the cache by gathering."""

    def step(scores: jax.Array, cache: jax.Array, x: jax.Array, w: jax.Array) -> Tree:
        extended = scores[..., None] + jax.nn.log_softmax(x @ w)
        best, flat = jax.lax.top_k(extended.reshape(BATCH, -1), beams)
        parent, token = jnp.divmod(flat, VOCAB)
        cache = jnp.take_along_axis(cache, parent[:, :, None, None], axis=1)
        return best, token, cache

    arguments = (
        f32(BATCH, beams),
        f32(BATCH, beams, LENGTH, WIDTH),
        f32(BATCH, beams, WIDTH),
        f32(WIDTH, VOCAB),
    )
    in_specs = (None, P("data", None, None, "tensor"), P("data"), P(None, "tensor"))
    return lower(step, on, arguments, in_specs, donate=1)


@variants(constrained={"on": mesh(data=2, tensor=4)})
def llama_train(on: AbstractMesh, depth: int = 2) -> jax.stages.Lowered:
    """The same blocks trained: rotary embeddings, grouped heads and gated units, backward too."""

    def loss(params: Tree, tokens: jax.Array) -> jax.Array:
        positions = jnp.arange(LENGTH)
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        x = params["embedding"][tokens]
        for p in params["blocks"]:
            y = rms_norm(x, p["norms"][0])
            q, k, v = (jnp.einsum("btw,whd->bthd", y, p[name]) for name in ("q", "k", "v"))
            y = grouped_attention(rotate(q, positions), rotate(k, positions), v, mask)
            x = constrain(x + y @ p["out"], on, "data", None, None)
            y = rms_norm(x, p["norms"][1])
            y = constrain(jax.nn.silu(y @ p["gate"]) * (y @ p["up"]), on, "data", None, "tensor")
            x = x + y @ p["down"]
        logits = rms_norm(x, params["norm"]) @ params["embedding"].T
        return layers.cross_entropy(logits[:, :-1], tokens[:, 1:])

    params = _params(depth)
    tokens = i32(BATCH, LENGTH)
    in_specs = (None, None, P("data"))
    return lower(layers.sgd_momentum(loss), on, (params, params, tokens), in_specs)
