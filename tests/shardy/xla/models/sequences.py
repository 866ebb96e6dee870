"""Sequences without attention: state spaces, recurrences, spectra, encoders."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models


@models(
    data={"on": mesh(data=8), "batch": "data"},
    width={"on": mesh(data=2, tensor=4), "batch": "data", "tensor": "tensor"},
)
def diagonal(on: AbstractMesh, batch: Any, tensor: Any = None) -> jax.stages.Lowered:
    """A gated diagonal state space by an associative scan, trained."""
    width, inner = 256, 512

    def loss(params: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
        u, gate = x @ params["in"], jax.nn.silu(x @ params["gate"])
        decay = jax.nn.sigmoid(x @ params["decay"])

        def combine(a: Any, b: Any) -> Any:
            return a[0] * b[0], a[1] * b[0] + b[1]

        _, h = jax.lax.associative_scan(combine, (decay, (1 - decay) * u), axis=1)
        return jnp.mean(jnp.square((h * gate) @ params["out"] - wanted))

    params = {name: f32(width, inner) for name in ("in", "gate", "decay")}
    params["out"] = f32(inner, width)
    specs = {name: P(None, tensor) for name in params} | {"out": P(tensor, None)}
    state_specs = adam_state(specs, P())
    x = f32(32, 128, width)
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), x, x),
        (state_specs, P(batch), P(batch)),
        (state_specs, None),
        donate=0,
    )


@models(data={"on": mesh(data=8), "image": P("data")})
def spectral(on: AbstractMesh, image: P) -> jax.stages.Lowered:
    """Filters in the frequency domain, and a pointwise layer; forward and backward."""

    def loss(params: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
        spectrum = jnp.fft.rfft2(x, axes=(1, 2)) * params["filter"]
        y = jax.nn.gelu(jnp.fft.irfft2(spectrum, axes=(1, 2)) + x @ params["w"])
        return jnp.mean(jnp.square(y - wanted))

    params = {"filter": f32(64, 33, 32), "w": f32(32, 32)}
    x = f32(32, 64, 64, 32)
    whole = {"filter": P(), "w": P()}
    return lower(jax.value_and_grad(loss), on, (params, x, x), (whole, image, image), (None, whole))


@models(data={"on": mesh(data=8)})
def recurrent(on: AbstractMesh) -> jax.stages.Lowered:
    """A GRU over time by a scan; the last state is classified."""
    width, time = 256, 64

    def loss(params: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            z, r = jnp.split(jax.nn.sigmoid(x @ params["x"] + h @ params["h"]), 2, axis=-1)
            new = jnp.tanh(x @ params["xn"] + (r * h) @ params["hn"])
            return (1 - z) * h + z * new, None

        h, _ = jax.lax.scan(cell, jnp.zeros((x.shape[0], width)), x.transpose(1, 0, 2))
        return layers.cross_entropy(layers.dense(h, params["out"]), labels)

    params = {
        "x": f32(width, 2 * width),
        "h": f32(width, 2 * width),
        "xn": f32(width, width),
        "hn": f32(width, width),
        "out": layers.dense_shapes(width, 64),
    }
    state_specs = adam_state(jax.tree.map(lambda _: P(), params), P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(128, time, width), i32(128)),
        (state_specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(
    tensor={"on": mesh(data=2, tensor=4), "tensor": "tensor"},
    fsdp={"on": mesh(data=8), "fsdp": "data"},
)
def masked(on: AbstractMesh, tensor: Any = None, fsdp: Any = None) -> jax.stages.Lowered:
    """An encoder that is trained to fill in masked tokens; its table is tied to its head."""
    size, depth, vocab = 256, 2, 8192

    def loss(params: Tree, tokens: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
        x = params["table"][tokens] + params["position"]
        for p in params["layers"]:
            x = layers.layer_norm(x + layers.attend(x, x, p["attention"]), p["norm1"])
            y = layers.dense(jax.nn.gelu(layers.dense(x, p["up"])), p["down"])
            x = layers.layer_norm(x + y, p["norm2"])
        logits = x @ params["table"].T
        picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.sum((jax.nn.logsumexp(logits, -1) - picked) * mask) / jnp.sum(mask)

    layer = {
        "attention": layers.attention_shapes(size, 4),
        "norm1": layers.norm_shapes(size),
        "norm2": layers.norm_shapes(size),
        "up": layers.dense_shapes(size, 4 * size),
        "down": layers.dense_shapes(4 * size, size),
    }
    layer_specs = {
        "attention": layers.attention_specs(fsdp, tensor),
        "norm1": layers.norm_specs(),
        "norm2": layers.norm_specs(),
        "up": {"w": P(fsdp, tensor), "b": P(tensor)},
        "down": {"w": P(tensor, fsdp), "b": P()},
    }
    params = {"table": f32(vocab, size), "position": f32(128, size), "layers": [layer] * depth}
    specs = {"table": P(tensor, fsdp), "position": P(), "layers": [layer_specs] * depth}
    state_specs = adam_state(specs, P())
    tokens = i32(32, 128)
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), tokens, tokens, f32(32, 128)),
        (state_specs, P("data"), P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(tensor={"tensor": "tensor"})
def chunked(tensor: str) -> jax.stages.Lowered:
    """A state space by products within chunks and a scan over their states, trained."""
    batch, time, heads, head, size, chunk, width = 8, 512, 16, 64, 32, 64, 512
    count = time // chunk
    is_before = np.tril(np.ones((chunk, chunk), bool))[..., None]

    def loss(p: Tree, x: jax.Array) -> jax.Array:
        z = layers.layer_norm(x, p["norm"])
        rate = jax.nn.softplus(z @ p["rate"])
        u = jnp.einsum("btw,whd->bthd", z, p["in"]) * rate[..., None]
        parts = (u, z @ p["to"], z @ p["from"], -jnp.exp(p["decay"]) * rate)
        u, to, out, log = (one.reshape(batch, count, chunk, *one.shape[2:]) for one in parts)
        log = jnp.cumsum(log, axis=2)
        between = log[:, :, :, None] - log[:, :, None]
        within = jnp.exp(jnp.where(is_before, between, -jnp.inf))
        y = jnp.einsum("bcqn,bcsn,bcqsh,bcshd->bcqhd", out, to, within, u)
        states = jnp.einsum("bcsn,bcsh,bcshd->cbhnd", to, jnp.exp(log[:, :, -1:] - log), u)

        def carry(state: jax.Array, one: Any) -> tuple[jax.Array, jax.Array]:
            return state * jnp.exp(one[1])[..., None, None] + one[0], state

        ends = jnp.moveaxis(log[:, :, -1], 1, 0)
        _, states = jax.lax.scan(carry, jnp.zeros_like(states[0]), (states, ends))
        y = y + jnp.einsum("bcqn,cbhnd,bcqh->bcqhd", out, states, jnp.exp(log))
        y = jnp.einsum("bthd,hdw->btw", y.reshape(batch, time, heads, head), p["out"])
        return jnp.mean(jnp.square(x + y))

    params = {"norm": layers.norm_shapes(width), "in": f32(width, heads, head)}
    params |= {"rate": f32(width, heads), "decay": f32(heads), "out": f32(heads, head, width)}
    params |= {"to": f32(width, size), "from": f32(width, size)}
    specs = {"norm": layers.norm_specs(), "in": P(None, tensor), "rate": P(None, tensor)}
    specs |= {"decay": P(tensor), "out": P(tensor), "to": P(), "from": P()}
    state_specs = adam_state(specs, P())
    return lower(
        adam(loss),
        mesh(data=2, tensor=4),
        (adam_state(params, i32()), f32(batch, time, width)),
        (state_specs, P("data")),
        (state_specs, None),
        donate=0,
    )
