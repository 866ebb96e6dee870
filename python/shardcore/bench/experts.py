"""A mixture of experts on the tokens of a device.

Every expert gets the same number of tokens, so that shapes are static: rows are sorted by expert,
exchanged with the devices that hold the experts, multiplied, and sent back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from shardcore.bench.models import Experts
from shardcore.bench.op_by_op import stored
from shardcore.bench.parameters import EXPERT
from shardcore.bench.products import dense, grouped, products
from shardcore.bench.training import Training


def mixture(
    y: jax.Array,
    p: dict[str, jax.Array],
    experts: Experts,
    run: Training,
    activated: Callable[[jax.Array, jax.Array], jax.Array],
) -> jax.Array:
    """Return the output of the chosen experts for the tokens ``y`` of shape (batch, time, width).

    Args:
        y: the tokens of this device.
        p: ``router`` and the weights of the experts of this device.
        experts: the sizes of the experts.
        run: types, and the mesh axes that the experts are sharded over.
        activated: computes hidden units from one or two products.
    """
    axes, dtype = run.expert_axes, run.dtype
    tokens = y.reshape(-1, y.shape[-1])
    with jax.named_scope("moe_router"):
        logits = (tokens @ p["router"].astype(y.dtype)).astype(jnp.float32)
        weights, chosen = jax.lax.top_k(jax.nn.softmax(logits), experts.chosen)
    with jax.named_scope("moe_preprocess"):
        order = _sorted(chosen.reshape(-1))
        each = -(-order.size // experts.count)
        order = jax.lax.pad(order, 0, [(0, each * experts.count - order.size, 0)])
        inverse = _sorted(order)[: chosen.size]

    rows = _dispatch(tokens, order, inverse, experts.chosen, run)
    rows = rows.reshape(experts.count, each, -1)
    if axes:
        rows = jax.lax.all_to_all(rows, axes, split_axis=0, concat_axis=1, tiled=True)
    gate, up, down = (p[name].astype(y.dtype) for name in EXPERT)
    narrow = tuple(p.get(f"{name}_narrow") for name in EXPERT)
    spec = "ecw,ewf->ecf"
    multiply = grouped if run.platform == "tpu" else dense
    hidden = activated(*products((spec, spec), rows, (gate, up), narrow[:2], dtype, multiply))
    [rows] = products(("ecf,efw->ecw",), hidden, (down,), narrow[2:], dtype, multiply)
    if axes:
        rows = jax.lax.all_to_all(rows, axes, split_axis=1, concat_axis=0, tiled=True)
    rows = rows.reshape(-1, rows.shape[-1])
    if run.sorts_gradients:
        found = _undo(rows, order, inverse, run.platform)
    else:
        found = _taken(rows, inverse, run.platform)
    found = found.reshape(-1, experts.chosen, y.shape[-1])
    return jnp.sum(found * weights.astype(y.dtype)[..., None], axis=1).reshape(y.shape)


def _sorted(keys: jax.Array) -> jax.Array:
    """The places of ``keys`` in ascending order; as ``jnp.argsort``, whose ops are in no scope of
    its caller."""
    return jax.lax.sort((keys, jax.lax.iota(jnp.int32, keys.size)), num_keys=1)[1]


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _undo(rows: jax.Array, order: jax.Array, inverse: jax.Array, platform: str) -> jax.Array:
    """The rows in their order before sorting; the gradient is sorted by ``order``."""
    return _taken(rows, inverse, platform)


def _undo_forward(rows: jax.Array, order: jax.Array, inverse: jax.Array, platform: str) -> Any:
    return _taken(rows, inverse, platform), order


def _undo_backward(platform: str, order: jax.Array, gradient: jax.Array) -> Any:
    return _taken(gradient, order, platform), None, None


_undo.defvjp(_undo_forward, _undo_backward)


def _dispatch(
    x: jax.Array, order: jax.Array, inverse: jax.Array, copies: int, run: Training
) -> jax.Array:
    """``copies`` of each token, sorted; the gradient is unsorted and summed. MaxText's copies, on
    TPUs, are in memory."""

    def copied(x: jax.Array, order: jax.Array) -> jax.Array:
        if run.platform != "tpu" or copies == 1:
            return _taken(x, order // copies, run.platform)
        return _taken(stored(jnp.repeat(x, copies, axis=0)), order, run.platform)

    if not run.sorts_gradients:
        return copied(x, order)

    @jax.custom_vjp
    def dispatch(x: jax.Array, order: jax.Array, inverse: jax.Array) -> jax.Array:
        return copied(x, order)

    def forward(x: jax.Array, order: jax.Array, inverse: jax.Array) -> Any:
        return copied(x, order), inverse

    def backward(inverse: jax.Array, gradient: jax.Array) -> Any:
        back = _taken(gradient, inverse, run.platform).reshape(-1, copies, gradient.shape[-1])
        return jnp.sum(back, axis=1), None, None

    dispatch.defvjp(forward, backward)
    return dispatch(x, order, inverse)


def _taken(rows: jax.Array, places: jax.Array, platform: str) -> jax.Array:
    """The ``rows`` at ``places``. On TPUs a kernel of its own writes them to memory: XLA fuses no
    op with it that reads them. Libraries for GPUs add rows up, and convert them, as they read
    them."""
    found = rows[places]
    return jax.lax.optimization_barrier(found) if platform == "tpu" else found
