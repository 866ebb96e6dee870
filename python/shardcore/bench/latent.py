"""What MaxText computes between the products of latent attention and its kernel, on TPUs.

No op of it is in the kernel of a product, nor in that of attention, as programs show that libtpu
0.0.42 compiles for a v5p: halves of heads are copied out of the products' results and joined, and
pairs of elements are rotated in float32, for which they are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from shardcore.bench.op_by_op import stored


def parts(x: jax.Array, width: int) -> tuple[jax.Array, jax.Array]:
    """The first ``width`` elements of each head, and the others."""
    return stored(x[..., :width]), stored(x[..., width:])


def turned(rotate: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """``x`` with its neighbouring elements rotated as pairs, by ``rotate`` of all first and all
    second elements."""
    pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
    apart = stored(jnp.swapaxes(pairs, -1, -2)).reshape(x.shape)
    return stored(rotate(apart.astype(jnp.float32)).astype(x.dtype))


def joined(first: jax.Array, second: jax.Array) -> jax.Array:
    """Heads of both parts; what is common to all heads is repeated for each."""
    if second.shape != (*first.shape[:-1], second.shape[-1]):
        second = stored(jnp.broadcast_to(second, (*first.shape[:-1], second.shape[-1])))
    return stored(jnp.concatenate([first, second], axis=-1))
