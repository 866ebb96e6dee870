"""The loss of a decoder: the cross-entropy of its logits, in one kernel or op by op.

The logits of a device may be those of a part of the vocabulary, if collectives are explicit; then
``axes`` are the axes of the mesh along which devices have the other parts.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from shardcore.bench.placement import summed


def in_one_kernel(logits: jax.Array, tokens: jax.Array, axes: tuple[str, ...] = ()) -> jax.Array:
    """The loss of each token; only reductions over the vocabulary are stored."""
    logits = logits.astype(jnp.float32)
    largest, place = _largest(logits, axes), _place(logits, tokens, axes)
    logits = logits - largest
    hit = jnp.sum(jnp.where(_is_own(logits, place), logits, 0.0), axis=-1)
    total = jnp.sum(jnp.exp(logits), axis=-1)
    if axes:
        hit, total = summed(hit, axes), summed(total, axes)
    return jnp.log(total) - hit


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def op_by_op(logits: jax.Array, tokens: jax.Array, axes: tuple[str, ...] = ()) -> jax.Array:
    """The loss of each token, as ``torch.nn.functional.cross_entropy(logits.float(), tokens)``
    computes it: logits in float32, their log-softmax, which the backward pass reads, and the
    gradients of both are arrays in memory."""
    return _forward(logits, tokens, axes)[0]


def _forward(logits: jax.Array, tokens: jax.Array, axes: tuple[str, ...]) -> tuple[Any, Any]:
    wide, _ = _in_memory(logits.astype(jnp.float32), logits)
    shifted = wide - _largest(wide, axes)
    total = jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True)
    total = summed(total, axes) if axes else total
    log_softmax, _ = _in_memory(shifted - jnp.log(total), wide)
    place = _place(wide, tokens, axes)
    hit = jnp.sum(jnp.where(_is_own(wide, place), log_softmax, 0.0), axis=-1)
    loss = -(summed(hit, axes) if axes else hit)
    return loss, (log_softmax, place, jnp.zeros((), logits.dtype))


def _backward(axes: tuple[str, ...], kept: Any, gradient: jax.Array) -> tuple[jax.Array, None]:
    log_softmax, place, like = kept
    own = jnp.where(_is_own(log_softmax, place), -gradient[..., None], 0.0)
    own, log_softmax = _in_memory(own, log_softmax)
    total = jnp.sum(own, axis=-1, keepdims=True)
    total = summed(total, axes) if axes else total
    found, *_ = _in_memory(own - jnp.exp(log_softmax) * total, own, log_softmax)
    return found.astype(like.dtype), None


def _in_memory(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    """The arrays, which are in memory at the same time: none is written over another."""
    return jax.lax.optimization_barrier(arrays)


op_by_op.defvjp(_forward, _backward)


def _largest(logits: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The largest logit of each token."""
    largest = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return jax.lax.pmax(largest, axes) if axes else largest


def _place(logits: jax.Array, tokens: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The indices of ``tokens`` in the device's part of the vocabulary."""
    if not axes:
        return tokens
    [axis] = axes
    return tokens - jax.lax.axis_index(axis) * logits.shape[-1]


def _is_own(logits: jax.Array, place: jax.Array) -> jax.Array:
    """Whether each logit is that of the token at ``place``."""
    return jnp.arange(logits.shape[-1]) == place[..., None]
