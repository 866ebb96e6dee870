"""Decoders that are trained: rotary embeddings, grouped heads, gated units, Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models, stacked, stacked_specs


@dataclass(frozen=True)
class Size:
    """The sizes of a decoder and of its batch."""

    depth: int = 2
    batch: int = 16
    time: int = 256
    width: int = 512
    heads: int = 8
    kv_heads: int = 4
    inner: int = 1408
    vocab: int = 4096

    @property
    def head(self) -> int:
        return self.width // self.heads


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def rotate(x: jax.Array) -> jax.Array:
    """Rotary embedding of (batch, time, heads, head)."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] * 1e4 ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attention(x: jax.Array, p: Tree) -> jax.Array:
    """Causal attention with several query heads to one head of keys and values."""
    q, k, v = (jnp.einsum("btw,whd->bthd", x, p[name]) for name in "qkv")
    batch, time, heads, head = q.shape
    q = rotate(q).reshape(batch, time, k.shape[2], -1, head)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, rotate(k)) * head**-0.5
    mask = jnp.tril(jnp.ones((time, time), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    y = jnp.einsum("bkgts,bskd->btkgd", weights, v).reshape(batch, time, heads, head)
    return jnp.einsum("bthd,hdw->btw", y, p["o"])


def layer_shapes(size: Size) -> Tree:
    return {
        "q": f32(size.width, size.heads, size.head),
        "k": f32(size.width, size.kv_heads, size.head),
        "v": f32(size.width, size.kv_heads, size.head),
        "o": f32(size.heads, size.head, size.width),
        "gate": f32(size.width, size.inner),
        "up": f32(size.width, size.inner),
        "down": f32(size.inner, size.width),
        "norm1": f32(size.width),
        "norm2": f32(size.width),
    }


def layer_specs(fsdp: Any, tensor: Any) -> Tree:
    heads, inner = P(fsdp, tensor, None), P(fsdp, tensor)
    return {
        **dict.fromkeys("qkv", heads),
        "o": P(tensor, None, fsdp),
        "gate": inner,
        "up": inner,
        "down": P(tensor, fsdp),
        "norm1": P(),
        "norm2": P(),
    }


def shapes(size: Size, scan: bool) -> Tree:
    one = layer_shapes(size)
    return {
        "embedding": f32(size.vocab, size.width),
        "layers": stacked(one, size.depth) if scan else [one] * size.depth,
        "norm": f32(size.width),
        "head": f32(size.width, size.vocab),
    }


def specs(size: Size, scan: bool, fsdp: Any, tensor: Any) -> Tree:
    one = layer_specs(fsdp, tensor)
    return {
        "embedding": P(tensor, fsdp),
        "layers": stacked_specs(one) if scan else [one] * size.depth,
        "norm": P(),
        "head": P(fsdp, tensor),
    }


def loss_of(
    pin: Callable[[jax.Array], jax.Array], scan: bool, remat: bool
) -> Callable[..., jax.Array]:
    """The loss of next tokens, with `pin` on the residual stream."""

    def layer(x: jax.Array, p: Tree) -> tuple[jax.Array, None]:
        x = pin(x + attention(rms_norm(x, p["norm1"]), p))
        y = rms_norm(x, p["norm2"])
        return pin(x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]), None

    body = jax.checkpoint(layer) if remat else layer

    def loss(params: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        x = pin(params["embedding"][tokens])
        if scan:
            x, _ = jax.lax.scan(body, x, params["layers"])
        else:
            for p in params["layers"]:
                x, _ = body(x, p)
        logits = rms_norm(x, params["norm"]) @ params["head"]
        picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)

    return loss


@models(
    data={"on": mesh(data=8), "batch": "data"},
    fsdp={"on": mesh(fsdp=8), "batch": "fsdp", "fsdp": "fsdp"},
    fsdp_free={"on": mesh(fsdp=8), "batch": "fsdp", "fsdp": "fsdp", "pins": False},
    tensor={"on": mesh(data=2, tensor=4), "batch": "data", "tensor": "tensor"},
    tensor_free={
        "on": mesh(data=2, tensor=4),
        "batch": "data",
        "tensor": "tensor",
        "pins": False,
    },
    fsdp_tensor={"on": mesh(fsdp=4, tensor=2), "batch": "fsdp", "fsdp": "fsdp", "tensor": "tensor"},
    sequence={"on": mesh(data=2, tensor=4), "batch": "data", "tensor": "tensor", "time": "tensor"},
    pods={"on": mesh(pod=2, fsdp=4), "batch": ("pod", "fsdp"), "fsdp": "fsdp"},
    scan_data={"on": mesh(data=8), "batch": "data", "scan": True},
    scan_fsdp={"on": mesh(fsdp=8), "batch": "fsdp", "fsdp": "fsdp", "scan": True},
    scan_tensor={"on": mesh(data=2, tensor=4), "batch": "data", "tensor": "tensor", "scan": True},
    scan_remat={
        "on": mesh(fsdp=4, tensor=2),
        "batch": "fsdp",
        "fsdp": "fsdp",
        "tensor": "tensor",
        "scan": True,
        "remat": True,
    },
    accumulated_data={"on": mesh(data=8), "batch": "data", "micro": 2},
    accumulated_fsdp={"on": mesh(fsdp=8), "batch": "fsdp", "fsdp": "fsdp", "micro": 2},
)
def llama(
    on: AbstractMesh,
    batch: Any,
    fsdp: Any = None,
    tensor: Any = None,
    time: Any = None,
    pins: bool = True,
    scan: bool = False,
    remat: bool = False,
    micro: int = 1,
) -> jax.stages.Lowered:
    size = Size(depth=4 if scan else 2)

    def pin(x: jax.Array) -> jax.Array:
        return constrain(x, on, batch, time, None) if pins else x

    tree = shapes(size, scan)
    tree_specs = adam_state(specs(size, scan, fsdp, tensor), P())
    tokens = i32(size.batch, size.time)
    return lower(
        adam(loss_of(pin, scan, remat), micro),
        on,
        (adam_state(tree, i32()), tokens, tokens),
        (tree_specs, P(batch), P(batch)),
        (tree_specs, None),
        donate=0,
    )


@models(
    tensor={"on": mesh(data=2, tensor=4), "batch": "data", "tensor": "tensor"},
    fsdp={"on": mesh(fsdp=8), "batch": "fsdp", "fsdp": "fsdp"},
)
def lora(on: AbstractMesh, batch: Any, fsdp: Any = None, tensor: Any = None) -> jax.stages.Lowered:
    """Adapters of rank 8 on queries and values are trained; the rest is frozen."""
    size, rank = Size(), 8
    adapter = {"a": f32(size.width, rank), "b": f32(rank, size.heads, size.head)}
    values = {"a": f32(size.width, rank), "b": f32(rank, size.kv_heads, size.head)}
    adapters = [{"q": adapter, "v": values}] * size.depth
    base_loss = loss_of(lambda x: constrain(x, on, batch, None, None), False, False)

    def loss(trained: Tree, base: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        def merged(p: Tree, t: Tree) -> Tree:
            return p | {n: p[n] + jnp.einsum("wr,rhd->whd", t[n]["a"], t[n]["b"]) for n in "qv"}

        layers = [merged(p, t) for p, t in zip(base["layers"], trained, strict=True)]
        return base_loss(base | {"layers": layers}, tokens, targets)

    one = {"a": P(), "b": P(None, tensor, None)}
    adapter_specs = adam_state([{"q": one, "v": one}] * size.depth, P())
    tokens = i32(size.batch, size.time)
    return lower(
        adam(loss),
        on,
        (adam_state(adapters, i32()), shapes(size, False), tokens, tokens),
        (adapter_specs, specs(size, False, fsdp, tensor), P(batch), P(batch)),
        (adapter_specs, None),
        donate=0,
    )


@models(tensor={"on": mesh(data=2, tensor=4)})
def distill(on: AbstractMesh) -> jax.stages.Lowered:
    """A small model learns the distribution of a larger one, both with sharded vocabularies."""
    teacher, student = Size(depth=1), Size(depth=1, width=256, heads=4, inner=704)

    def logits(params: Tree, tokens: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        for p in params["layers"]:
            x = x + attention(rms_norm(x, p["norm1"]), p)
            y = rms_norm(x, p["norm2"])
            x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
        return rms_norm(x, params["norm"]) @ params["head"]

    def loss(params: Tree, frozen: Tree, tokens: jax.Array) -> jax.Array:
        wanted = jax.nn.softmax(jax.lax.stop_gradient(logits(frozen, tokens)))
        return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(logits(params, tokens)), axis=-1))

    trained = adam_state(specs(student, False, None, "tensor"), P())
    return lower(
        adam(loss),
        on,
        (
            adam_state(shapes(student, False), i32()),
            shapes(teacher, False),
            i32(teacher.batch, teacher.time),
        ),
        (trained, specs(teacher, False, None, "tensor"), P("data")),
        (trained, None),
        donate=0,
    )
