"""What a layer computes beside its products and attention, as PyTorch runs it without
``torch.compile``: each op, forward and backward, is a kernel that reads and writes memory.

The ops are those of torchtitan's Llama (``torchtitan/models/llama/model.py`` of December 2024) and
of their gradients in PyTorch (``derivatives.yaml``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

_EPSILON = 1e-5


@jax.custom_vjp
def stored(x: jax.Array) -> jax.Array:
    """``x``, and its gradient, which are in memory: no op that reads them is in the kernel of the
    op that makes them."""
    return _stored(x)


def _stored(x: jax.Array) -> jax.Array:
    return jax.lax.optimization_barrier(x)


stored.defvjp(lambda x: (_stored(x), None), lambda _, gradient: (_stored(gradient),))


@jax.custom_vjp
def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """``(x.float() * rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)).type_as(x) * scale``."""
    return _norm_forward(x, scale)[0]


def _norm_forward(x: jax.Array, scale: jax.Array) -> Any:
    wide = _stored(x.astype(jnp.float32))
    mean = jnp.mean(_stored(jnp.square(wide)), axis=-1, keepdims=True)
    root = _stored(jax.lax.rsqrt(mean + _EPSILON))
    narrow = _stored(_stored(wide * root).astype(x.dtype))
    return _stored(narrow * scale.astype(x.dtype)), (wide, root, narrow, scale)


def _norm_backward(kept: Any, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    wide, root, narrow, scale = kept
    of_scale = jnp.sum(_stored(gradient * narrow), axis=tuple(range(gradient.ndim - 1)))
    of_narrow = _stored(gradient * scale.astype(gradient.dtype))
    of_found = _stored(of_narrow.astype(jnp.float32))
    of_root = jnp.sum(_stored(of_found * wide), axis=-1, keepdims=True)
    of_mean = _stored(-0.5 * of_root * root**3)
    of_square = _stored(jnp.broadcast_to(of_mean / wide.shape[-1], wide.shape))
    through_square = _stored(of_square * _stored(2 * wide))
    of_wide = _stored(_stored(of_found * root) + through_square)
    return _stored(of_wide.astype(gradient.dtype)), of_scale.astype(scale.dtype)


norm.defvjp(_norm_forward, _norm_backward)


def turned(rotate: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """``rotate(x)``, a product of complex numbers in float32."""
    wide = stored(x.astype(jnp.float32))
    return stored(stored(rotate(wide)).astype(x.dtype))


def repeated(x: jax.Array, heads: int) -> jax.Array:
    """``x`` of shape (batch, time, heads, head) with each head repeated, so that there are
    ``heads``: kernels of attention have as many of keys as of queries."""
    return x if x.shape[2] == heads else stored(jnp.repeat(x, heads // x.shape[2], axis=2))


def gated(first: jax.Array, second: jax.Array) -> jax.Array:
    """``silu(first) * second``."""
    silu = jax.checkpoint(jax.nn.silu, prevent_cse=False)
    return stored(stored(silu(first)) * second)
