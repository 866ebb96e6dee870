"""Attention kernels: custom calls with known costs, one for each direction.

On TPUs it is a Pallas kernel with a cost estimate; on GPUs a library call, whose cost is registered
with ``shardcore.cost_rule``. The kernels compute nothing: only their costs matter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import shardcore
from shardcore.rules import Signature

if TYPE_CHECKING:
    from shardcore.bench.training import Training
    from shardcore.calculus.hardware import Hardware

ATTENTION = 0.75
"""The share of FLOP/s that kernels for TPUs reach, in whole blocks and tiles.

For 2^20 pairs of a v6e, libtpu 0.0.42 compiles splash attention to 3264 bundles in the forward pass
and 5744 in the backward pass, for heads of 128 as for those of 256; full tiles take 2046 and 5116.
For a v5p it makes 4940 and 9243, where tiles take 4096 and 10,240: some take several cycles."""

FORWARD, BACKWARD = "flash_attention_forward", "flash_attention_backward"
"""The custom call targets on GPUs."""

SOFTMAX = "masked_softmax_forward", "masked_softmax_backward"
"""The targets of the softmax of scores that are stored in memory."""


Block = tuple[int, int]
"""The number of queries, and of keys."""


class Blocks(NamedTuple):
    """The blocks of keys and queries that a kernel for TPUs computes as a whole (splash attention,
    by MaxText's options and their defaults)."""

    forward: Block = (512, 512)
    """``sa_block_q`` and ``sa_block_kv``."""
    keys: Block = (512, 512)
    """For the gradient of keys and values, ``sa_block_q_dkv`` and ``sa_block_kv_dkv``."""
    queries: Block | None = (512, 512)
    """For the gradient of queries, ``sa_block_q_dq`` and ``sa_block_kv_dq``; ``None`` with
    ``sa_use_fused_bwd_kernel``, where one kernel computes all gradients."""
    tile: int = 1
    """The side of a tile of the matrix unit, of which heads fill whole ones."""

    @classmethod
    def of(cls, option: Callable[[str], int], is_fused: bool, tile: int) -> Blocks:
        """Return the blocks by MaxText's options, given their values by what follows ``sa_block_``
        in their names."""
        forward, keys, queries = (
            (option(f"q{end}"), option(f"kv{end}")) for end in ("", "_dkv", "_dq")
        )
        return cls(forward, keys, None if is_fused else queries, tile)


class Kernel(NamedTuple):
    """The kernel that computes attention."""

    platform: str
    """``tpu`` or ``cuda``."""
    keys: float | None = None
    """The mean number of keys that a query attends to; ``None``: half of all keys."""
    is_narrow: bool = False
    """On GPUs: whether products are in an 8-bit float type."""


class Work(NamedTuple):
    """The FLOPs and bytes of one direction."""

    flops: int
    exponentials: int
    bytes: int


def seen(time: int, windows: tuple[int | None, ...]) -> float | None:
    """Return the mean number of ``time`` keys that a query attends to, over layers with
    ``windows``.

    >>> seen(4096, (None,)) is None, seen(4096, (1024, None))
    (True, 1472.0)
    """
    if all(window is None or window >= time for window in windows):
        return None
    sums = [
        time / 2 if window is None or window >= time else window - window**2 / (2 * time)
        for window in windows
    ]
    return sum(sums) / len(sums)


def work(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], keys: float | None, forward: bool
) -> Work:
    """Return the work of attention for arrays (batch, time, heads, head) of these shapes.

    The forward pass has two products, the backward pass five, one of them recomputed.
    """
    batch, time, heads, head = q
    pairs = batch * heads * time * k[1] // 2
    if keys is not None:
        pairs = int(batch * heads * time * keys)
    products = head + v[3] if forward else 3 * head + 2 * v[3]
    moved = 8 * batch * head * (time * heads + k[1] * k[2])
    return Work(2 * products * pairs, pairs, moved)


def in_blocks(time: int, windows: tuple[int | None, ...], block: Block) -> float:
    """Return the mean number of keys, of ``time``, that are computed for a query, if a ``block`` is
    computed unless the causal mask and the window leave nothing of it; over layers with
    ``windows``.

    >>> in_blocks(8192, (None,), (2048, 2048)), in_blocks(4096, (1024,), (1024, 1024))
    (5120.0, 1792.0)
    """
    rows, keys = (min(size, time) for size in block)
    starts = range(0, time, rows)
    blocks = sum(
        -(-(start + rows) // keys) - max(start - (window or time) + 1, 0) // keys
        for window in windows
        for start in starts
    )
    return blocks * keys / len(starts) / len(windows)


def block_flops(
    heads: tuple[int, int], keys: Callable[[Block], float], blocks: Blocks
) -> tuple[float, float]:
    """Return the FLOPs of a query, with whole blocks of keys in which heads fill whole tiles: those
    of the forward pass, and those of the backward pass.

    Args:
        heads: the widths of a head of keys and of values.
        keys: the mean number of keys that are computed in blocks of a size.
        blocks: the blocks and tiles. If the gradient of queries has a kernel of its own, that
            computes two products once more.
    """
    wide, value = (-(-width // blocks.tile) * blocks.tile for width in heads)
    forward = 2 * (wide + value) * keys(blocks.forward)
    if blocks.queries is None:
        return forward, 2 * (3 * wide + 2 * value) * keys(blocks.keys)
    again = 2 * (2 * wide + value) * keys(blocks.queries)
    return forward, 4 * (wide + value) * keys(blocks.keys) + again


def with_attention(chip: Hardware, run: Training) -> Hardware:
    """Return ``chip``, a TPU, with the share of FLOP/s that the attention kernels of ``run`` reach,
    of those that they declare."""
    declared = computed = 0.0
    # Layers recompute their attention, if they recompute anything.
    forwards = 1 if run.remat is None or "context" in run.remat.saved else 2
    for kind in run.model.kinds:
        value = kind.head if kind.latent is None else kind.latent.value
        shape = (1, run.time, kind.heads, kind.head)
        blocks = run.blocks if None in kind.windows else run.local_blocks
        keys = seen(run.time, kind.windows)
        known = [
            work(shape, shape, (*shape[:3], value), keys, forward).flops
            for forward in (True, False)
        ]
        computed_keys = functools.partial(in_blocks, run.time, kind.windows)
        found = block_flops((kind.head, value), computed_keys, blocks)
        declared += kind.depth * (forwards * known[0] + known[1])
        queries = run.time * kind.heads * kind.depth
        computed += queries * (forwards * found[0] + found[1])
    share = ATTENTION * declared / computed
    return replace(chip, achieved=replace(chip.achieved, kernels=share))


def _run(kernel: Kernel, results: list[jax.Array], forward: bool, operands: Any) -> Any:
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results]
    if kernel.platform != "tpu":
        keys = np.float64(-1.0 if kernel.keys is None else kernel.keys)
        if kernel.is_narrow:
            operands = [x.astype(jnp.float8_e4m3fn) for x in operands]
        return jax.ffi.ffi_call(FORWARD if forward else BACKWARD, shapes)(*operands, keys=keys)
    q, k, v, *_ = (x.shape for x in operands)
    cost = work(q, k, v, kernel.keys, forward)

    def body(*refs: Any) -> None:
        for ref in refs[len(operands) :]:
            ref[...] = jnp.zeros(ref.shape, ref.dtype)

    return pl.pallas_call(
        body,
        out_shape=shapes,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)] * len(operands),
        cost_estimate=pl.CostEstimate(
            flops=cost.flops, transcendentals=cost.exponentials, bytes_accessed=cost.bytes
        ),
    )(*operands)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def flash_attention(q: jax.Array, k: jax.Array, v: jax.Array, kernel: Kernel) -> jax.Array:
    """Causal attention of (batch, time, heads, head), on one device."""
    return _forward(q, k, v, kernel)[0]


def _forward(q: jax.Array, k: jax.Array, v: jax.Array, kernel: Kernel) -> Any:
    like = q if q.shape[3] == v.shape[3] else jnp.zeros((*q.shape[:3], v.shape[3]), q.dtype)
    (found,) = _run(kernel, [like], True, (q, k, v))
    return found, (q, k, v, found)


def _backward(kernel: Kernel, kept: Any, gradient: jax.Array) -> Any:
    return tuple(_run(kernel, list(kept[:3]), False, (*kept, gradient)))


flash_attention.defvjp(_forward, _backward)


def plain_attention(q: jax.Array, k: jax.Array, v: jax.Array, platform: str) -> jax.Array:
    """Causal attention that stores its scores in memory, as before flash attention.

    On GPUs, scaling, mask and softmax are one library call, as in Megatron-LM, which reads and
    writes the scores once.
    """
    groups = q.shape[2] // k.shape[2]
    if groups > 1:
        k, v = jnp.repeat(k, groups, axis=2), jnp.repeat(v, groups, axis=2)
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    weights = _library_softmax(scores) if platform == "cuda" else _softmax(scores, q.shape[3])
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def _softmax(scores: jax.Array, head: int) -> jax.Array:
    time, keys = scores.shape[-2:]
    mask = jnp.arange(time)[:, None] >= jnp.arange(keys)
    wide = jnp.where(mask, scores.astype(jnp.float32) / np.sqrt(head), -1e4)
    return jax.nn.softmax(wide, axis=-1).astype(scores.dtype)


@jax.custom_vjp
def _library_softmax(scores: jax.Array) -> jax.Array:
    return _softmax_forward(scores)[0]


def _softmax_forward(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    like = jax.ShapeDtypeStruct(scores.shape, scores.dtype)
    weights = jax.ffi.ffi_call(SOFTMAX[0], like)(scores)
    return weights, weights


def _softmax_backward(weights: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    like = jax.ShapeDtypeStruct(weights.shape, weights.dtype)
    return (jax.ffi.ffi_call(SOFTMAX[1], like)(weights, gradient),)


_library_softmax.defvjp(_softmax_forward, _softmax_backward)


@functools.cache
def register() -> None:
    """Register the costs of the library calls."""
    for target in (FORWARD, BACKWARD):
        shardcore.cost_rule(target)(functools.partial(_estimate, target == FORWARD))
    for target in SOFTMAX:
        shardcore.cost_rule(target)(_softmax_estimate)


def _estimate(forward: bool, call: Signature) -> shardcore.CostEstimate:
    q, k, v = (each.shape for each in call.operand_types[:3] if each is not None)
    keys = call.attributes.get("mhlo.backend_config", {}).get("keys", -1.0)
    return shardcore.CostEstimate(*work(q, k, v, None if keys < 0 else keys, forward))


def _softmax_estimate(call: Signature) -> shardcore.CostEstimate:
    """Maximum, sum and quotients, or the gradient: about five FLOPs per element."""
    shapes = [each.shape for each in (*call.operand_types, *call.result_types) if each is not None]
    size = math.prod(shapes[0])
    return shardcore.CostEstimate(5 * size, size, 2 * size * len(shapes))
