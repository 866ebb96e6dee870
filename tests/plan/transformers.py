"""Training steps of the layers that alpa's tests shard: BERT's, and one with experts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.shardy.programs.registry import f32

RATE = 1e-2


def dense(p: Any, x: jax.Array) -> jax.Array:
    return x @ p["kernel"] + p["bias"]


def normalized(p: Any, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-12)
    return (x - mean) * scale * p["scale"] + p["bias"]


def attention(p: Any, x: jax.Array, heads: int) -> jax.Array:
    """Self-attention after which the residual is normalized."""
    batch, length, width = x.shape
    qkv = dense(p["qkv"], x).reshape(batch, length, width, 3)
    q, k, v = (qkv[..., part].reshape(batch, length, heads, width // heads) for part in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return normalized(p["norm"], x + dense(p["out"], mixed.reshape(batch, length, width)))


def bert_layer(p: Any, x: jax.Array, heads: int) -> jax.Array:
    x = attention(p["attention"], x, heads)
    return normalized(p["norm"], x + dense(p["down"], jax.nn.gelu(dense(p["up"], x))))


def gating(gates: jax.Array) -> jax.Array:
    """How much of each token each place of each expert gets: GSE to GSEC.

    Each token goes to one expert; what does not find a place there is dropped.
    """
    tokens, experts = gates.shape[1:]
    capacity = 2 * tokens // experts
    chosen = jax.nn.one_hot(jnp.argmax(gates, -1), experts)
    place = (jnp.cumsum(chosen, axis=1) - 1) * chosen
    chosen = chosen * (place < capacity)
    weight = (gates * chosen).sum(-1)
    place = jax.nn.one_hot(place.sum(-1).astype(jnp.int32), capacity)
    return jnp.einsum("gs,gse,gsc->gsec", weight, chosen, place)


def moe_layer(p: Any, x: jax.Array, heads: int, tokens: int) -> jax.Array:
    """Attention, then experts that groups of ``tokens`` tokens are sent to."""
    x = attention(p["attention"], x, heads)
    grouped = x.reshape(-1, tokens, x.shape[-1])
    combine = gating(jax.nn.softmax(jnp.einsum("gsm,me->gse", grouped, p["gate"])))
    mask = (combine > 0).astype(x.dtype)
    sent = jnp.einsum("gsec,gsm->egcm", mask, grouped)
    hidden = jax.nn.relu(jnp.einsum("egcm,emh->egch", sent, p["up"]))
    back = jnp.einsum("egch,ehm->gecm", hidden, p["down"])
    out = jnp.einsum("gsec,gecm->gsm", combine, back).reshape(x.shape)
    return normalized(p["norm"], x + out)


def step(layer: Any) -> Any:
    """A step of Adam on the squared error of layers one after the other."""

    def adam(state: Any, x: jax.Array, y: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            out = x
            for number in range(len(params)):
                out = layer(params[f"layer_{number}"], out)
            return jnp.mean((out - y) ** 2)

        grads = jax.grad(loss)(state["params"])
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["v"], grads)
        params = jax.tree.map(
            lambda p, m, v: p - RATE * m / (jnp.sqrt(v) + 1e-8), state["params"], m, v
        )
        return {"params": params, "m": m, "v": v}

    return adam


def _dense(rows: int, columns: int) -> Any:
    return {"kernel": f32(rows, columns), "bias": f32(columns)}


def _norm(width: int) -> Any:
    return {"scale": f32(width), "bias": f32(width)}


def _attention(width: int) -> Any:
    return {"qkv": _dense(width, 3 * width), "out": _dense(width, width), "norm": _norm(width)}


def bert_of(layers: int, batch: int, length: int, width: int) -> tuple[Any, ...]:
    """The arguments of a step of BERT's layers."""
    layer = {
        "attention": _attention(width),
        "up": _dense(width, 4 * width),
        "down": _dense(4 * width, width),
        "norm": _norm(width),
    }
    return _arguments({f"layer_{n}": layer for n in range(layers)}, batch, length, width)


def moe_of(batch: int, length: int, width: int, experts: int) -> tuple[Any, ...]:
    """The arguments of a step of a layer with experts."""
    layer = {
        "attention": _attention(width),
        "gate": f32(width, experts),
        "up": f32(experts, width, 4 * width),
        "down": f32(experts, 4 * width, width),
        "norm": _norm(width),
    }
    return _arguments({"layer_0": layer}, batch, length, width)


def _arguments(params: Any, batch: int, length: int, width: int) -> tuple[Any, ...]:
    x = f32(batch, length, width)
    return {"params": params, "m": params, "v": params}, x, x
