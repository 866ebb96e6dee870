"""Losses with layers: scanned, unrolled, with experts; each by how its layers are wrapped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is done to the function of a layer."""


class Model(NamedTuple):
    """A loss and the shapes of its arguments."""

    loss: Callable[..., Any]
    """Of :data:`Wrap` first, then parameters and batch."""
    is_scan: bool
    shapes: Any

    @property
    def plain(self) -> Callable[..., Any]:
        """The loss without ``jax.checkpoint``."""
        return functools.partial(self.loss, lambda layer: layer)

    def arrays(self, seed: int = 0) -> Any:
        """Arguments with random values."""
        random = np.random.default_rng(seed)

        def make(shape: Any) -> jax.Array:
            if jnp.issubdtype(shape.dtype, jnp.integer):
                return jnp.asarray(random.integers(0, 16, shape.shape), shape.dtype)
            return jnp.asarray(random.standard_normal(shape.shape) * 0.2, shape.dtype)

        return jax.tree.map(make, self.shapes)


def of(dtype: Any, **shapes: tuple[int, ...]) -> dict[str, Any]:
    """Shapes by name."""
    return {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in shapes.items()}


def stacked(layers: int, shapes: dict[str, Any]) -> dict[str, Any]:
    """The shapes of so many layers, side by side."""
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct((layers, *s.shape), s.dtype), shapes)


def run(layer: Any, x: jax.Array, params: Any) -> jax.Array:
    """Layers one after the other: a scan over what is stacked, or a loop over a list."""
    if isinstance(params, list):
        for each in params:
            x = layer(x, each)
        return x
    return jax.lax.scan(lambda x, each: (layer(x, each), None), x, params)[0]


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + 1e-5)).astype(x.dtype) * scale


def attention(y: jax.Array, p: Any) -> jax.Array:
    q = jnp.einsum("btw,whd->bthd", y, p["q"])
    k = jnp.einsum("btw,whd->bthd", y, p["k"])
    v = jnp.einsum("btw,whd->bthd", y, p["v"])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9).astype(jnp.float32))
    context = jnp.einsum("bhts,bshd->bthd", weights.astype(y.dtype), v)
    return jnp.einsum("bthd,hdw->btw", context, p["out"])


def cross_entropy(logits: jax.Array, tokens: jax.Array) -> jax.Array:
    found = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(found, tokens[..., None], -1))


def gpt(
    layers: int = 4,
    width: int = 512,
    heads: int = 8,
    batch: int = 8,
    time: int = 512,
    vocab: int = 4096,
    dtype: Any = jnp.bfloat16,
    *,
    is_scan: bool = True,
) -> Model:
    """A decoder."""
    head = (width, heads, width // heads)
    own = of(dtype, q=head, k=head, v=head, out=(*head[1:], width))
    own |= of(dtype, norm=(width,), last=(width,), up=(width, 4 * width), down=(4 * width, width))

    def layer(x: jax.Array, p: Any) -> jax.Array:
        x = x + attention(norm(x, p["norm"]), p)
        hidden = norm(x, p["last"]) @ p["up"]
        return x + jax.nn.gelu(hidden) @ p["down"]

    def loss(wrap: Wrap, params: Any, tokens: jax.Array) -> jax.Array:
        x = run(wrap(layer), params["table"][tokens], params["layers"])
        return cross_entropy(x @ params["table"].T, tokens)

    every = stacked(layers, own) if is_scan else [own] * layers
    params = {"layers": every, **of(dtype, table=(vocab, width))}
    return Model(loss, is_scan, (params, jax.ShapeDtypeStruct((batch, time), jnp.int32)))


def mlp(layers: int = 6, width: int = 1024, batch: int = 8192, dtype: Any = jnp.bfloat16) -> Model:
    """Blocks one after the other, with gates, and values that have names already."""
    own = of(dtype, gate=(width, 4 * width), up=(width, 4 * width), down=(4 * width, width))

    def layer(x: jax.Array, p: Any) -> jax.Array:
        gate = checkpoint_name(x @ p["gate"], "gate")
        up = checkpoint_name(x @ p["up"], "up")
        return jnp.tanh(x + (jax.nn.silu(gate) * up) @ p["down"])

    def loss(wrap: Wrap, params: Any, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(run(wrap(layer), x, params).astype(jnp.float32)))

    return Model(loss, False, ([own] * layers, jax.ShapeDtypeStruct((batch, width), dtype)))


def experts(
    layers: int = 4,
    width: int = 512,
    experts: int = 8,
    batch: int = 8,
    time: int = 512,
    dtype: Any = jnp.bfloat16,
) -> Model:
    """Attention and experts, of which each token takes the best; layers are jitted."""
    head = (width, 8, width // 8)
    own = of(dtype, q=head, k=head, v=head, out=(*head[1:], width), norm=(width,))
    own |= of(dtype, router=(width, experts))
    own |= of(dtype, up=(experts, width, 2 * width), down=(experts, 2 * width, width))

    @jax.jit
    def layer(x: jax.Array, p: Any) -> jax.Array:
        x = x + attention(norm(x, p["norm"]), p)
        shares = jax.nn.softmax((x @ p["router"]).astype(jnp.float32))
        best = jax.nn.one_hot(jnp.argmax(shares, -1), shares.shape[-1]) * shares
        hidden = jnp.einsum("btw,ewf->btef", x, p["up"])
        found = jnp.einsum("btef,efw->btew", jax.nn.relu(hidden), p["down"])
        return x + jnp.einsum("btew,bte->btw", found, best.astype(x.dtype))

    def loss(wrap: Wrap, params: Any, x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        x = run(wrap(layer), x, params)
        return jnp.mean(jnp.square(x.astype(jnp.float32))), {"last": x[0, 0]}

    shape = jax.ShapeDtypeStruct((batch, time, width), dtype)
    return Model(loss, True, (stacked(layers, own), shape))


def rotated(x: jax.Array) -> jax.Array:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] * 1e4 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(
    layers: int = 24,
    width: int = 2048,
    heads: int = 16,
    groups: int = 4,
    inner: int = 5632,
    batch: int = 4,
    time: int = 2048,
    vocab: int = 32000,
    dtype: Any = jnp.bfloat16,
    *,
    is_scan: bool = True,
) -> Model:
    """A decoder with gates, rotated queries and keys, and several heads for each key."""
    each = width // heads
    own = of(
        dtype, q=(width, groups, heads // groups, each), out=(groups, heads // groups, each, width)
    )
    own |= of(dtype, k=(width, groups, each), v=(width, groups, each))
    own |= of(dtype, norm=(width,), last=(width,))
    own |= of(dtype, gate=(width, inner), up=(width, inner), down=(inner, width))

    def attend(y: jax.Array, p: Any) -> jax.Array:
        q = jnp.einsum("btw,wgnd->btgnd", y, p["q"])
        q = rotated(q.reshape(*q.shape[:2], heads, each)).reshape(q.shape)
        k = rotated(jnp.einsum("btw,wgd->btgd", y, p["k"]))
        v = jnp.einsum("btw,wgd->btgd", y, p["v"])
        scores = jnp.einsum("btgnd,bsgd->bgnts", q, k) * each**-0.5
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9).astype(jnp.float32))
        context = jnp.einsum("bgnts,bsgd->btgnd", weights.astype(y.dtype), v)
        return jnp.einsum("btgnd,gndw->btw", context, p["out"])

    def layer(x: jax.Array, p: Any) -> jax.Array:
        x = x + attend(norm(x, p["norm"]), p)
        y = norm(x, p["last"])
        gate, up = y @ p["gate"], y @ p["up"]
        return x + (jax.nn.silu(gate) * up) @ p["down"]

    def loss(wrap: Wrap, params: Any, tokens: jax.Array) -> jax.Array:
        x = run(wrap(layer), params["table"][tokens], params["layers"])
        return cross_entropy(x @ params["head"], tokens)

    every = stacked(layers, own) if is_scan else [own] * layers
    params = {"layers": every, **of(dtype, table=(vocab, width), head=(width, vocab))}
    return Model(loss, is_scan, (params, jax.ShapeDtypeStruct((batch, time), jnp.int32)))
