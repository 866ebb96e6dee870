"""A step of training a decoder, rebuilt from a configuration of MaxText.

Layers are scanned and recomputed, parameters are kept in float32 and multiplied in bfloat16, Adam
updates them, attention is a kernel. Shardings are those of MaxText's ``logical_axis_rules``: batch
over ``data`` and ``fsdp``, heads, hidden units and vocabulary over ``tensor``, the other dim of
each weight over ``fsdp``, and activations between layers over ``tensor`` along their width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import shardcore.jax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.published.attention import attend

BATCH = ("data", "fsdp")
ROWS = P(BATCH, None, "tensor")
"""Of activations: batch, time, and the width, the hidden units or the heads."""


@dataclass(frozen=True)
class Decoder:
    """The sizes of a decoder, and how it is trained."""

    layers: int
    width: int
    heads: int
    inner: int
    kv_heads: int | None = None
    head: int = 128
    vocab: int = 32_000
    time: int = 2048
    remat: str = "full"
    """``full``, ``minimal`` (products are kept), ``context`` (and what attention computes) or
    ``qkv`` (only these products are kept)."""
    scan: bool = True
    """Whether layers are scanned."""
    iota: bool = True
    """Whether embeddings are looked up by a product."""

    @property
    def parameters(self) -> int:
        """The number of parameters but those of the norms."""
        keys = self.kv_heads or self.heads
        attention = self.width * self.head * 2 * (self.heads + keys)
        layer = attention + 3 * self.width * self.inner
        return self.layers * layer + 2 * self.width * self.vocab

    def step_flops(self, tokens: int) -> float:
        """FLOPs of a step as MaxText counted them: attention as if it were not causal."""
        return tokens * (
            6 * self.parameters + 12 * self.layers * self.time * self.heads * self.head
        )


def _policy(remat: str) -> Any:
    policies = jax.checkpoint_policies
    dots = policies.checkpoint_dots_with_no_batch_dims
    names = policies.save_only_these_names
    return {
        "full": policies.nothing_saveable,
        "minimal": dots,
        "context": policies.save_from_both_policies(dots, names("context")),
        "qkv": names("query", "key", "value", "out"),
    }[remat]


def specs(config: Decoder) -> dict[str, P]:
    """The shardings of the parameters."""
    column, row = P(None, "fsdp", "tensor"), P(None, "tensor", "fsdp")
    heads = P(None, "fsdp", "tensor", None)
    return {
        "embedding": P("tensor", "fsdp"),
        "logits": P("fsdp", "tensor"),
        "query": heads,
        "key": heads,
        "value": heads,
        "out": P(None, "tensor", None, "fsdp"),
        "gate": column,
        "up": column,
        "down": row,
        "norm_attention": P(None, "tensor"),
        "norm_mlp": P(None, "tensor"),
        "norm": P("tensor"),
    }


def shapes(config: Decoder) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters; those of layers are stacked."""
    depth, width, inner = config.layers, config.width, config.inner
    heads, keys = config.heads, config.kv_heads or config.heads
    return {
        "embedding": (config.vocab, width),
        "logits": (width, config.vocab),
        "query": (depth, width, heads, config.head),
        "key": (depth, width, keys, config.head),
        "value": (depth, width, keys, config.head),
        "out": (depth, heads, config.head, width),
        "gate": (depth, width, inner),
        "up": (depth, width, inner),
        "down": (depth, inner, width),
        "norm_attention": (depth, width),
        "norm_mlp": (depth, width),
        "norm": (width,),
    }


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + 1e-5)).astype(x.dtype) * scale.astype(x.dtype)


def _rotate(x: jax.Array) -> jax.Array:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] * 1e4 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def _place(x: jax.Array, spec: P) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, spec)


def _layer(x: jax.Array, p: dict[str, jax.Array], platform: str) -> jax.Array:
    def weight(name: str) -> jax.Array:
        return p[name].astype(jnp.bfloat16)

    heads = P(BATCH, None, "tensor", None)
    y = _place(_norm(x, p["norm_attention"]), ROWS)
    q, k, v = (
        _place(checkpoint_name(jnp.einsum("btw,whd->bthd", y, weight(name)), name), heads)
        for name in ("query", "key", "value")
    )
    y = attend(_rotate(q), _rotate(k), v, heads, platform)
    y = checkpoint_name(_place(y, heads), "context")
    x = x + checkpoint_name(_place(jnp.einsum("bthd,hdw->btw", y, weight("out")), ROWS), "out")
    y = _place(_norm(x, p["norm_mlp"]), ROWS)
    hidden = jax.nn.silu(y @ weight("gate")) * (y @ weight("up"))
    return _place(x + _place(_place(hidden, ROWS) @ weight("down"), ROWS), ROWS)


OUTSIDE = ("embedding", "logits", "norm")


def _loss(params: dict[str, jax.Array], tokens: jax.Array, config: Decoder, platform: str) -> Any:
    table = params["embedding"].astype(jnp.bfloat16)
    if config.iota:
        x = jax.nn.one_hot(tokens, config.vocab, dtype=jnp.bfloat16) @ table
    else:
        x = table[tokens]

    def layer(x: jax.Array, p: dict[str, jax.Array]) -> tuple[jax.Array, None]:
        return _layer(x, p, platform), None

    layer = jax.checkpoint(layer, policy=_policy(config.remat), prevent_cse=False)
    stacked = {name: p for name, p in params.items() if name not in OUTSIDE}
    x, _ = jax.lax.scan(layer, _place(x, ROWS), stacked, unroll=1 if config.scan else config.layers)
    logits = _norm(x, params["norm"]) @ params["logits"].astype(jnp.bfloat16)
    logits = _place(logits, ROWS).astype(jnp.float32)
    hot = jax.nn.one_hot(tokens, config.vocab, dtype=jnp.float32)
    return -jnp.mean(jnp.sum(hot * jax.nn.log_softmax(logits), axis=-1))


def _step(config: Decoder, platform: str) -> Callable[..., Any]:
    def step(state: Any, tokens: jax.Array) -> Any:
        params, first, second, count = state
        value, gradient = jax.value_and_grad(_loss)(params, tokens, config, platform)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradient)

        def updated(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return p - 3e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p)

        return (jax.tree.map(updated, params, first, second), first, second, count + 1), value

    return step


def lowered(config: Decoder, sizes: dict[str, int], batch: int, platform: str = "tpu") -> Any:
    """Lower a step on a mesh of ``data``, ``fsdp`` and ``tensor``, of ``batch`` sequences."""
    sizes = {name: sizes.get(name, 1) for name in ("data", "fsdp", "tensor")}
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes))
    placed = {name: NamedSharding(mesh, spec) for name, spec in specs(config).items()}
    arrays = {
        name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=placed[name])
        for name, shape in shapes(config).items()
    }
    count = jax.ShapeDtypeStruct((), jnp.int32)
    rows = NamedSharding(mesh, P(BATCH, None))
    tokens = jax.ShapeDtypeStruct((batch, config.time), jnp.int32, sharding=rows)
    state = (arrays, arrays, arrays, count)
    return shardcore.jax.lower(
        _step(config, platform),
        state,
        tokens,
        mesh=mesh,
        donate_argnums=0,
        out_shardings=((placed, placed, placed, P()), P()),
        platform=platform,
    )
