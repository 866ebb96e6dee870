"""The layers of a decoder and its loss, for both placements of activations.

Parameters are kept in float32 and multiplied in bfloat16. Layers are scanned, and rematerialized
according to :class:`~shardcore.bench.training.Remat`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from shardcore.bench import op_by_op
from shardcore.bench.experts import mixture
from shardcore.bench.latent import joined, parts, turned
from shardcore.bench.models import Layers
from shardcore.bench.op_by_op import stored
from shardcore.bench.parameters import EXPERT, named, shapes
from shardcore.bench.placement import ByConstraints, ByHand, Weights
from shardcore.bench.products import products

Placement = ByConstraints | ByHand


def narrow(name: str) -> str:
    """The name of the weight ``name`` in the run's narrow type, if it is converted once."""
    return f"{name}_narrow"


def fused(how: Placement, function: Callable[..., jax.Array], *operands: jax.Array) -> jax.Array:
    """``function(*operands)``, elementwise work of one kernel; with explicit collectives its
    backward pass keeps only the operands, as library kernels do."""
    by_hand = isinstance(how, ByHand)
    return (jax.checkpoint(function, prevent_cse=False) if by_hand else function)(*operands)


def activated(how: Placement, first: jax.Array, second: jax.Array | None = None) -> jax.Array:
    """The hidden units of a feed-forward network."""
    if how.run.op_by_op and second is not None:
        return op_by_op.gated(first, second)
    if second is None:
        return fused(how, jax.nn.gelu, first)
    return fused(how, lambda a, b: jax.nn.silu(a) * b, first, second)


def norm(how: Placement, x: jax.Array, scale: jax.Array) -> jax.Array:
    """An RMS norm."""
    return op_by_op.norm(x, scale) if how.run.op_by_op else fused(how, _norm, x, scale)


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


@jax.custom_vjp
def _cached(x: jax.Array) -> jax.Array:
    """``x``, which is in memory until its gradient is there."""
    return x


def _cached_backward(x: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    return (jax.lax.optimization_barrier((gradient, x))[0],)


_cached.defvjp(lambda x: (x, x), _cached_backward)


class _Layer:
    """One layer: its weights, and the placement of its activations."""

    def __init__(self, how: Placement, kind: Layers, p: Weights) -> None:
        self.how, self.kind, self.p, self.run = how, kind, p, how.run

    def weight(self, name: str) -> jax.Array:
        return self.p[name].astype(jnp.bfloat16)

    def products(self, spec: str, y: jax.Array, *names: str) -> list[jax.Array]:
        if self.run.op_by_op and len(names) > 1:
            # Gradients of ``y`` are added up by kernels of their own.
            return [self.products(spec, op_by_op.stored(y), name)[0] for name in names]
        weights = tuple(map(self.weight, names))
        known = tuple(self.p.get(narrow(name)) for name in names)
        specs, dtype = (spec,) * len(names), self.run.dtype
        place, parts = self.how.operand, self.how.parts
        found = products(specs, y, weights, known, dtype, place=place, parts=parts)
        return [
            y + self.weight(f"{name}_bias") if f"{name}_bias" in self.p else y
            for name, y in zip(names, found, strict=True)
        ]

    def turned(self, x: jax.Array) -> jax.Array:
        return op_by_op.turned(_rotate, x) if self.run.op_by_op else _rotate(x)

    def added(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return op_by_op.stored(x + y) if self.run.op_by_op else x + y

    def after(self, y: jax.Array, name: str) -> jax.Array:
        return norm(self.how, y, self.p[name]) if name in self.p else y

    def __call__(self, x: jax.Array, place: int) -> jax.Array:
        how, kind = self.how, self.kind
        if self.run.remat is not None and "layer_input" in self.run.remat.offloaded:
            x = checkpoint_name(x, "layer_input")
        with jax.named_scope("attn"):
            y = how.enter(how.rows(norm(how, x, self.p["norm_attention"])))
            y = self.attention(y) if kind.latent is None else self.latent_attention(y)
            y = how.rows(how.leave(self.products("bthd,hdw->btw", y, "out")[0]))
            x = self.added(x, self.after(checkpoint_name(y, "out"), "norm_after_attention"))
        with jax.named_scope("moe_router" if kind.experts else "mlp"):
            y = how.rows(norm(how, x, self.p["norm_mlp"]))
        y = self.network(y) if kind.experts is None else self.experts(y, place)
        return how.rows(self.added(x, self.after(y, "norm_after_mlp")))

    def attention(self, y: jax.Array) -> jax.Array:
        names = ("query", "key") if self.kind.shares_keys else ("query", "key", "value")
        found = self.products("btw,whd->bthd", y, *names)
        q, k, *rest = (
            self.how.heads(checkpoint_name(one, name))
            for one, name in zip(found, names, strict=True)
        )
        v = rest[0] if rest else k
        if not self.run.model.positions:
            q, k = self.turned(q), self.turned(k)
        if self.run.op_by_op:
            k, v = (op_by_op.repeated(one, self.kind.heads) for one in (k, v))
        return checkpoint_name(self.how.heads(self.how.attend(self.kind, q, k, v)), "context")

    def latent_attention(self, y: jax.Array) -> jax.Array:
        latent, how = self.kind.latent, self.how
        assert latent is not None
        short = y
        if latent.query:
            short = norm(how, y @ self.weight("query_down"), self.p["query_norm"])
        [q] = self.products("btl,lhd->bthd", short, "query")
        found = y @ self.weight("latent")
        common = norm(how, found[..., : latent.keys], self.p["latent_norm"])
        k, v = self.products("btl,lhd->bthd", common, "key", "value")
        q, k, v = (
            checkpoint_name(one, name)
            for one, name in zip((q, k, v), ("query", "key", "value"), strict=True)
        )
        common_heads = found[..., None, latent.keys :]
        plain = q.shape[-1] - latent.rotated
        if self.run.platform == "tpu":
            first, second = parts(q, plain)
            q = joined(first, turned(_rotate, second))
            k = joined(stored(k), turned(_rotate, common_heads))
            v = stored(v)
        else:
            rotated = jnp.broadcast_to(_rotate(common_heads), (*k.shape[:3], latent.rotated))
            k = jnp.concatenate([k, rotated], axis=-1)
            q = jnp.concatenate([q[..., :plain], _rotate(q[..., plain:])], axis=-1)
        q, k, v = map(how.heads, (q, k, v))
        return checkpoint_name(how.heads(how.attend(self.kind, q, k, v)), "context")

    def network(self, y: jax.Array) -> jax.Array:
        how = self.how
        y = how.enter(y)
        names = ("gate", "up") if self.run.model.gated else ("up",)
        found = self.products("btw,wf->btf", y, *names)
        hidden = activated(
            how, *(checkpoint_name(one, name) for one, name in zip(found, names, strict=True))
        )
        [down] = self.products("btf,fw->btw", how.rows(hidden), "down")
        down = checkpoint_name(down, "down")
        # No gradient needs it.
        return how.rows(how.leave(_cached(down) if self.run.op_by_op else down))

    def experts(self, y: jax.Array, place: int) -> jax.Array:
        experts, how = self.kind.experts, self.how
        assert experts is not None

        def route(y: jax.Array, p: Weights) -> jax.Array:
            return mixture(y, p, experts, self.run, functools.partial(activated, how))

        weights = {name: self.weight(name) for name in ("router", *EXPERT)}
        for name in EXPERT:
            if narrow(name) in self.p:
                weights[narrow(name)] = self.p[narrow(name)]
        found = how.mix(place, route, y, weights)
        if not experts.shared:
            return found
        with jax.named_scope("moe_router"):
            shared = self.network(y)
        return found + shared


def layers(how: Placement, x: jax.Array, params: Weights, kinds: Iterable[int]) -> jax.Array:
    """Run the layers of each of ``kinds`` on ``x`` of shape (batch, time, width); their weights are
    stacked, or if layers are unrolled a tuple with an array for each layer.
    """
    run = how.run
    known = shapes(run.model)
    for place in kinds:
        kind = run.model.kinds[place]
        own = {name for name, each in known.items() if each.kind == place}
        stacked = {
            name: params[named(name, place)]
            for plain in sorted(each.split(".")[0] for each in own)
            for name in (plain, narrow(plain))
            if named(name, place) in params
        }

        def layer(
            x: jax.Array, p: Weights, kind: Layers = kind, place: int = place
        ) -> tuple[jax.Array, None]:
            return _Layer(how, kind, p)(x, place), None

        body: Any = layer
        if run.remat is not None:
            body = jax.checkpoint(layer, policy=run.remat.policy(), prevent_cse=not run.scan)
        if run.scan:
            x, _ = jax.lax.scan(body, x, stacked)
            continue
        unstacked = (w if isinstance(w, tuple) else jnp.unstack(w) for w in stacked.values())
        for each in zip(*unstacked, strict=True):
            x, _ = body(x, dict(zip(stacked, each, strict=True)))
    return x


def table(params: Weights) -> jax.Array:
    """The embedding table, in bfloat16."""
    return params["embedding"].astype(jnp.bfloat16)


def logits_weight(params: Weights) -> jax.Array:
    """The weights of the logits, of shape (width, vocab)."""
    if "logits" in params:
        return params["logits"].astype(jnp.bfloat16)
    return table(params).T


def with_positions(x: jax.Array, params: Weights) -> jax.Array:
    """Add learned positions, if the model has them."""
    if "positions" not in params:
        return x
    return x + params["positions"][: x.shape[1]].astype(x.dtype)
