"""Products with weights, in bfloat16 or in a narrower type to which both operands are scaled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

NARROW = {
    "fp8": jnp.float8_e4m3fn,
    "fp8_full": jnp.float8_e4m3fn,
    "fp8_dynamic": jnp.float8_e4m3fn,
    "mxfp8": jnp.float8_e4m3fn,
    "nvfp4": jnp.float4_e2m1fn,
}
"""The operand types for each ``dtype`` of a run; ``fp8_full`` is what MaxText calls so,
``fp8_dynamic`` the dynamic scaling of tensors in torchao."""

BLOCKS = {"mxfp8": 32, "nvfp4": 16}
"""Elements per scale; for other types a tensor has one."""

IN_RANGE = ("nvfp4",)
"""Types whose scales of blocks are narrow too, so that a tensor has a scale besides: its largest
element, for which it is read once more (arXiv 2509.25149)."""

DYNAMIC = ("fp8_dynamic",)
"""Types in which the scale of activations and gradients is the largest element that a device has,
for which they are read once more; activations are kept in bfloat16 and scaled again for gradients
of weights, and both operands of these copied, as the matrix units of GPUs sum 8-bit types along
rows only (torchao's ``Float8Linear``). Scales of weights are found once a step, of the shards."""

BY_CHANNEL = ("fp8_full",)
"""Types in which gradients have a scale for each channel of the result, so that they are scaled for
each product; weights and activations have known scales."""


Multiply = Callable[[str, jax.Array, jax.Array], jax.Array]
"""Computes the ``jnp.einsum`` of two operands; of a narrow type, with results in bfloat16."""

Place = Callable[[jax.Array], jax.Array]
"""Says where an array is."""

_ROWS = "btw"
"""The dims of activations between layers, of which a device may have a part of the tokens."""


def dense(spec: str, a: jax.Array, b: jax.Array) -> jax.Array:
    """Compute a product, or a batch of them, in one op."""
    return jnp.einsum(spec, a, b, preferred_element_type=_result_type(a))


def grouped(spec: str, a: jax.Array, b: jax.Array) -> jax.Array:
    """Compute a product for each group in a kernel of grouped products.

    The first dim of each array is that of the groups, the second one of ``a`` their rows, as in
    ``ecw,ewf->ecf`` and, where rows are summed over, ``ecw,ecf->ewf``.
    """
    (left, right), result = spec.split("->")[0].split(","), spec.split("->")[1]
    count, rows = a.shape[:2]
    sizes = jnp.full((count,), rows, jnp.int32)
    contracted = next(dim for dim in left if dim not in result)
    are_rows = contracted == left[1]
    dims = jax.lax.RaggedDotDimensionNumbers(
        ((([0], [0]) if are_rows else ([1], [right.index(contracted)])), ([], [])),
        lhs_ragged_dimensions=[0],
        rhs_group_dimensions=[] if are_rows else [0],
    )
    flat = a.reshape(-1, a.shape[-1])
    found = jax.lax.ragged_dot_general(
        flat,
        b.reshape(-1, b.shape[-1]) if are_rows else b,
        sizes,
        dims,
        preferred_element_type=_result_type(a),
    )
    return found if are_rows else found.reshape(count, rows, -1)


def _result_type(operand: jax.Array) -> Any:
    return jnp.bfloat16 if operand.dtype in NARROW.values() else operand.dtype


def _as_it_is(x: jax.Array) -> jax.Array:
    return x


def products(
    specs: tuple[str, ...],
    x: jax.Array,
    weights: tuple[jax.Array, ...],
    narrow: tuple[jax.Array | None, ...],
    dtype: str,
    multiply: Multiply = dense,
    place: Place = _as_it_is,
    parts: int = 1,
) -> tuple[jax.Array, ...]:
    """Return the products of ``x`` with ``weights``; ``x`` is scaled only once.

    Args:
        specs: the ``jnp.einsum`` specs of the products.
        x: the left operand.
        weights: the right operands, which get the gradients.
        narrow: the weights converted by :func:`scaled`, or ``None`` to convert them here.
        dtype: the operand type in both directions.
        multiply: computes a product.
        place: places the operands of a narrow type that are activations between layers, or their
            gradients.
        parts: into how many devices a sequence is divided, of which each finds its own scale.
    """
    if dtype not in NARROW:
        return tuple(multiply(spec, x, w) for spec, w in zip(specs, weights, strict=True))
    known = tuple(
        jax.lax.stop_gradient(scaled(w, dtype)) if n is None else n
        for w, n in zip(weights, narrow, strict=True)
    )
    return _narrow(specs, dtype, multiply, place, parts, x, weights, known)


Arrays = tuple[jax.Array, ...]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _narrow(
    specs: tuple[str, ...],
    dtype: str,
    multiply: Multiply,
    place: Place,
    parts: int,
    x: jax.Array,
    weights: Arrays,
    narrow: Arrays,
) -> Arrays:
    return _forward(specs, dtype, multiply, place, parts, x, weights, narrow)[0]


def _forward(
    specs: tuple[str, ...],
    dtype: str,
    multiply: Multiply,
    place: Place,
    parts: int,
    x: jax.Array,
    weights: Arrays,
    narrow: Arrays,
) -> Any:
    given, x = x, _in_range(x, dtype, parts)
    small = _in_blocks(x, dtype)
    whole = _placed(specs[0].split(",")[0], small, place)
    found = tuple(multiply(spec, whole, w) for spec, w in zip(specs, narrow, strict=True))
    return found, (given if dtype in DYNAMIC else _over_tokens(x, small, dtype), narrow)


def _backward(
    specs: tuple[str, ...],
    dtype: str,
    multiply: Multiply,
    place: Place,
    parts: int,
    kept: Any,
    gradients: Arrays,
) -> Any:
    x, weights = kept
    if dtype in DYNAMIC:
        x = _in_blocks(_in_range(x, dtype, parts), dtype)
    x = _placed(specs[0].split(",")[0], x, place)
    of_x, of_weights = None, []
    for spec, w, gradient in zip(specs, weights, gradients, strict=True):
        operands, result = spec.split("->")
        left, right = operands.split(",")
        gradient = _in_range(gradient, dtype, parts)
        small = _in_channels(gradient, dtype, -1)
        whole = _placed(result, small, place)
        part = multiply(f"{result},{right}->{left}", whole, w)
        of_x = part if of_x is None else of_x + part
        if dtype in BY_CHANNEL:
            across = _placed(result, _in_channels(gradient, dtype, 1), place)
        elif dtype in BLOCKS:
            across = _placed(result, _over_tokens(gradient, small, dtype), place)
        else:
            across = whole
        if dtype in DYNAMIC:
            sums = [dim for dim in left if dim not in right]
            (left, one), (result, other) = _turned(left, x, sums), _turned(result, across, sums)
            of_weights.append(multiply(f"{left},{result}->{right}", one, other))
        else:
            of_weights.append(multiply(f"{left},{result}->{right}", x, across))
    return of_x, tuple(of_weights), None


_narrow.defvjp(_forward, _backward)


def _placed(dims: str, x: jax.Array, place: Place) -> jax.Array:
    return place(x) if dims == _ROWS else x


def _turned(dims: str, x: jax.Array, last: list[str]) -> tuple[str, jax.Array]:
    """The order of ``dims`` with those of ``last`` at the end, and a copy of ``x`` in it."""
    order = sorted(dims, key=lambda dim: dim in last)
    found = jnp.transpose(x, [dims.index(dim) for dim in order])
    return "".join(order), jax.lax.optimization_barrier(found)


def _over_tokens(x: jax.Array, small: jax.Array, dtype: str) -> jax.Array:
    """``x`` for a sum over tokens, its second dim: scales of blocks have to lie along it."""
    if dtype not in BLOCKS:
        return small
    return jnp.swapaxes(_in_blocks(jnp.swapaxes(x, 1, -1), dtype), 1, -1)


def scaled(x: jax.Array, dtype: str) -> jax.Array:
    """``x`` in the narrow type of ``dtype``; each block of its last dim is divided by its largest
    element."""
    return _in_blocks(_in_range(x, dtype), dtype)


def _in_range(x: jax.Array, dtype: str, parts: int | None = None) -> jax.Array:
    """``x`` over its largest element, which is found before, if types have such scales; of
    activations that of each of ``parts`` of a sequence."""
    if dtype in DYNAMIC and parts is not None:
        whole = x.reshape(x.shape[0], parts, x.shape[1] // parts, -1)
        return (whole / jnp.max(jnp.abs(whole), axis=(2, 3), keepdims=True)).reshape(x.shape)
    return x / jnp.max(jnp.abs(x)) if dtype in IN_RANGE else x


def _in_channels(x: jax.Array, dtype: str, dim: int) -> jax.Array:
    """``x`` in the narrow type; over its largest element along ``dim``, if channels have scales."""
    if dtype in BY_CHANNEL:
        x = x / jnp.max(jnp.abs(x), axis=dim, keepdims=True)
    return _in_blocks(x, dtype)


def _in_blocks(x: jax.Array, dtype: str) -> jax.Array:
    block = BLOCKS.get(dtype)
    if block is None or x.shape[-1] % block:
        return x.astype(NARROW[dtype])
    blocks = x.reshape(*x.shape[:-1], x.shape[-1] // block, block)
    largest = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True)
    return (blocks / largest).reshape(x.shape).astype(NARROW[dtype])
