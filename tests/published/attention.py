"""Attention by a kernel: a custom call that says what it costs, one for each direction.

On TPUs it is a Pallas kernel with a cost estimate; on GPUs a call of a library, whose cost
``shardcore.cost_rule`` gives. What the kernels would compute is left out: only their costs count.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import shardcore
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P
from shardcore.rules import Signature

FORWARD, BACKWARD = "flash_attention_forward", "flash_attention_backward"
"""The targets of the calls on GPUs."""


def work(q: Any, k: Any, passes: float) -> tuple[int, int, int]:
    """FLOPs, exponentials and bytes of causal attention; the forward pass has two products."""
    batch, time, heads, head = q.shape
    pairs = batch * heads * time * k.shape[1] // 2
    return int(passes * 2 * head * pairs), pairs, 2 * 4 * (q.size + k.size)


def _pallas(passes: float, num_results: int, *operands: jax.Array) -> Any:
    flops, exponentials, moved = work(operands[0], operands[1], passes)

    def kernel(*refs: Any) -> None:
        for ref, source in zip(refs[-num_results:], refs, strict=False):
            ref[...] = source[...]

    return pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands[:num_results]],
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)] * len(operands),
        cost_estimate=pl.CostEstimate(
            flops=flops, transcendentals=exponentials, bytes_accessed=moved
        ),
    )(*operands)


def _library(target: str, num_results: int, *operands: jax.Array) -> Any:
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands[:num_results]]
    return jax.ffi.ffi_call(target, results)(*operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _attend(q: jax.Array, k: jax.Array, v: jax.Array, platform: str) -> jax.Array:
    return _forward(q, k, v, platform)[0]


def _forward(q: jax.Array, k: jax.Array, v: jax.Array, platform: str) -> Any:
    run = (
        functools.partial(_pallas, 2) if platform == "tpu" else functools.partial(_library, FORWARD)
    )
    (found,) = run(1, q, k, v)
    return found, (q, k, v, found)


def _backward(platform: str, kept: Any, gradient: jax.Array) -> Any:
    q, k, v, found = kept
    run = (
        functools.partial(_pallas, 5)
        if platform == "tpu"
        else functools.partial(_library, BACKWARD)
    )
    return tuple(run(3, q, k, v, found, gradient))


_attend.defvjp(_forward, _backward)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, spec: P, platform: str) -> jax.Array:
    """Causal attention of (batch, time, heads, head), each device its own batch and heads."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return _attend(q, k, v, platform).astype(jnp.bfloat16)

    return jax.shard_map(local, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)(q, k, v)


def register() -> None:
    """Register what the calls of the library cost."""
    for target, passes in ((FORWARD, 2), (BACKWARD, 5)):
        shardcore.cost_rule(target)(functools.partial(_estimate, passes))


def _estimate(passes: float, call: Signature) -> shardcore.CostEstimate:
    (batch, time, heads, head), (_, keys, groups, _) = (
        call.operand_types[0].shape,
        call.operand_types[1].shape,
    )
    pairs = batch * heads * time * keys // 2
    moved = 2 * 4 * batch * head * (time * heads + keys * groups)
    return shardcore.CostEstimate(int(passes * 2 * head * pairs), pairs, moved)
