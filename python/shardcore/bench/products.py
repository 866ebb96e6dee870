"""Products with weights, in bfloat16 or in a narrower type to which both operands are scaled."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

NARROW = {
    "fp8": jnp.float8_e4m3fn,
    "mxfp8": jnp.float8_e4m3fn,
    "nvfp4": jnp.float4_e2m1fn,
}
"""The operand types for each ``dtype`` of a run."""

BLOCKS = {"mxfp8": 32, "nvfp4": 16}
"""Elements per scale; for other types the scale of the tensor is known beforehand."""


def products(
    specs: tuple[str, ...],
    x: jax.Array,
    weights: tuple[jax.Array, ...],
    narrow: tuple[jax.Array | None, ...],
    dtype: str,
) -> tuple[jax.Array, ...]:
    """Return the products of ``x`` with ``weights``; ``x`` is scaled only once.

    Args:
        specs: the ``jnp.einsum`` specs of the products.
        x: the left operand.
        weights: the right operands, which get the gradients.
        narrow: the weights converted by :func:`scaled`, or ``None`` to convert them here.
        dtype: the operand type in both directions.
    """
    if dtype not in NARROW:
        return tuple(jnp.einsum(spec, x, w) for spec, w in zip(specs, weights, strict=True))
    known = tuple(
        jax.lax.stop_gradient(scaled(w, dtype)) if n is None else n
        for w, n in zip(weights, narrow, strict=True)
    )
    return _narrow(specs, dtype, x, weights, known)


Arrays = tuple[jax.Array, ...]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _narrow(
    specs: tuple[str, ...], dtype: str, x: jax.Array, weights: Arrays, narrow: Arrays
) -> Arrays:
    return _forward(specs, dtype, x, weights, narrow)[0]


def _forward(
    specs: tuple[str, ...], dtype: str, x: jax.Array, weights: Arrays, narrow: Arrays
) -> Any:
    small = scaled(x, dtype)
    found = tuple(_einsum(spec, small, w) for spec, w in zip(specs, narrow, strict=True))
    return found, (_over_tokens(x, small, dtype), narrow)


def _backward(specs: tuple[str, ...], dtype: str, kept: Any, gradients: Arrays) -> Any:
    x, weights = kept
    of_x, of_weights = None, []
    for spec, w, gradient in zip(specs, weights, gradients, strict=True):
        operands, result = spec.split("->")
        left, right = operands.split(",")
        small = scaled(gradient, dtype)
        part = _einsum(f"{result},{right}->{left}", small, w)
        of_x = part if of_x is None else of_x + part
        across = _over_tokens(gradient, small, dtype)
        of_weights.append(_einsum(f"{left},{result}->{right}", x, across))
    return of_x, tuple(of_weights), None


_narrow.defvjp(_forward, _backward)


def _einsum(spec: str, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.einsum(spec, a, b, preferred_element_type=jnp.bfloat16)


def _over_tokens(x: jax.Array, small: jax.Array, dtype: str) -> jax.Array:
    """``x`` for a sum over tokens, its second dim: scales of blocks have to lie along it."""
    if dtype not in BLOCKS:
        return small
    return jnp.swapaxes(scaled(jnp.swapaxes(x, 1, -1), dtype), 1, -1)


def scaled(x: jax.Array, dtype: str) -> jax.Array:
    """``x`` in the narrow type of ``dtype``; each block of its last dim is divided by its largest
    element."""
    block = BLOCKS.get(dtype)
    if block is None or x.shape[-1] % block:
        return x.astype(NARROW[dtype])
    blocks = x.reshape(*x.shape[:-1], x.shape[-1] // block, block)
    largest = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True)
    return (blocks / largest).reshape(x.shape).astype(NARROW[dtype])
