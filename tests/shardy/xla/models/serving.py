"""Serving: prefill and decode with a cache of keys and values, sampling, retrieval."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import models
from tests.shardy.xla.models.llama import Size, attention, rms_norm, shapes, specs

SIZE = Size(depth=4, batch=16, time=1024)


def _decode_layer(x: jax.Array, p: Tree, cache: Tree, at: jax.Array) -> tuple[jax.Array, Tree]:
    """One token through a layer; its key and value go into the cache at `at`."""
    y = rms_norm(x, p["norm1"])
    q, k, v = (jnp.einsum("bw,whd->bhd", y, p[name]) for name in "qkv")
    keys = jax.lax.dynamic_update_slice(cache["k"], k[:, None], (0, at, 0, 0))
    values = jax.lax.dynamic_update_slice(cache["v"], v[:, None], (0, at, 0, 0))
    batch, heads, head = q.shape
    grouped = q.reshape(batch, k.shape[1], -1, head)
    scores = jnp.einsum("bkgd,bskd->bkgs", grouped, keys) * head**-0.5
    mask = jnp.arange(keys.shape[1]) <= at
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    y = jnp.einsum("bkgs,bskd->bkgd", weights, values).reshape(batch, heads, head)
    x = x + jnp.einsum("bhd,hdw->bw", y, p["o"])
    y = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"], {"k": keys, "v": values}


@models(
    tensor={"on": mesh(data=2, tensor=4), "cache": P("data", None, "tensor", None)},
    data={"on": mesh(data=8), "tensor": None, "cache": P("data")},
    length={"on": mesh(data=2, length=4), "tensor": None, "cache": P("data", "length")},
    scan={"on": mesh(data=2, tensor=4), "cache": P("data", None, "tensor", None), "scan": True},
)
def decode(
    on: AbstractMesh, cache: P, tensor: Any = "tensor", scan: bool = False
) -> jax.stages.Lowered:
    """One greedy step."""

    def step(params: Tree, caches: Tree, tokens: jax.Array, at: jax.Array) -> Tree:
        x = params["embedding"][tokens]
        if scan:

            def body(x: jax.Array, one: Any) -> tuple[jax.Array, Tree]:
                return _decode_layer(x, *one, at)

            x, new = jax.lax.scan(body, x, (params["layers"], caches))
        else:
            new = []
            for p, kept in zip(params["layers"], caches, strict=True):
                x, kept = _decode_layer(x, p, kept, at)
                new.append(kept)
        logits = rms_norm(x, params["norm"]) @ params["head"]
        return jnp.argmax(logits, axis=-1), new, at + 1

    one = f32(SIZE.batch, SIZE.time, SIZE.kv_heads, SIZE.head)
    kept, kept_specs = {"k": one, "v": one}, {"k": cache, "v": cache}
    caches: Tree = [kept] * SIZE.depth
    cache_specs: Tree = [kept_specs] * SIZE.depth
    if scan:
        stack = f32(SIZE.depth, *one.shape)
        caches = {"k": stack, "v": stack}
        cache_specs = dict.fromkeys("kv", P(None, *cache))
    return lower(
        step,
        on,
        (shapes(SIZE, scan), caches, i32(SIZE.batch), i32()),
        (specs(SIZE, scan, None, tensor), cache_specs, P("data"), P()),
        (P("data"), cache_specs, P()),
        donate=1,
    )


@models(
    tensor={"on": mesh(data=2, tensor=4), "tensor": "tensor"},
    fsdp={"on": mesh(data=8), "fsdp": "data"},
)
def prefill(on: AbstractMesh, tensor: Any = None, fsdp: Any = None) -> jax.stages.Lowered:
    """Logits of the last token of each prompt."""

    def run(params: Tree, tokens: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        for p in params["layers"]:
            x = x + attention(rms_norm(x, p["norm1"]), p)
            y = rms_norm(x, p["norm2"])
            x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
        return rms_norm(x[:, -1], params["norm"]) @ params["head"]

    size = Size()
    arguments = (shapes(size, False), i32(size.batch, size.time))
    return lower(run, on, arguments, (specs(size, False, fsdp, tensor), P("data")), P("data"))


@models(corpus={"on": mesh(data=8), "spec": P("data", None)})
def retrieve(on: AbstractMesh, spec: P) -> jax.stages.Lowered:
    """The closest 16 of many documents, which are sharded."""

    def run(documents: jax.Array, queries: jax.Array) -> Tree:
        return jax.lax.top_k(queries @ documents.T, 16)

    return lower(run, on, (f32(65536, 256), f32(64, 256)), (spec, P()), P())


@models(vocabulary={"on": mesh(data=2, tensor=4)})
def sample(on: AbstractMesh) -> jax.stages.Lowered:
    """A token by temperature and the largest 40 logits of a sharded vocabulary."""

    def run(x: jax.Array, head: jax.Array, seed: jax.Array) -> jax.Array:
        best, index = jax.lax.top_k(x @ head / 0.7, 40)
        choice = jax.random.categorical(jax.random.key(seed), best)
        return jnp.take_along_axis(index, choice[:, None], axis=-1)[:, 0]

    arguments = (f32(64, 1024), f32(1024, 8192), jax.ShapeDtypeStruct((), jnp.uint32))
    return lower(run, on, arguments, (P("data"), P(None, "tensor"), P()), P("data"))
