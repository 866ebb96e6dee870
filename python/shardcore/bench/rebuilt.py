"""Converts rows of measured steps to training configurations, or gives the reason why it cannot."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from shardcore.bench.kernels import Blocks
from shardcore.bench.models import MODELS, Model
from shardcore.bench.products import NARROW
from shardcore.bench.rows import Row
from shardcore.bench.training import AXES, Remat, Training
from shardcore.calculus.hardware import hardware

_KEPT = {"query": "query", "key": "key", "value": "value", "out": "out", "out_proj": "out"}
_KEPT |= {"mlpwo": "down", "decoder_layer_input": "layer_input"}
_EVERY_SECOND = ("query", "value", "context", "gate", "down")
"""What torchtitan's selective op recomputation keeps: attention, and every second product."""


class NotBuiltError(Exception):
    """No program can be built for the row; the message is the reason."""


def model_of(row: Row) -> Model:
    """Return the model of ``row``, with the vocabulary that was used in training.

    Raises:
        NotBuiltError: the model is unknown, or has other sizes.
    """
    known = MODELS.get(row.model)
    if known is None:
        raise NotBuiltError(f"the layers of {row.model} are not modelled")
    if not row.columns["layers"]:
        raise NotBuiltError("its sizes are not given")
    sizes = (row.number_of("layers"), row.number_of("hidden"))
    if sizes != (known.depth, known.width):
        raise NotBuiltError(f"{row.model} has {known.depth} layers of width {known.width}")
    return replace(known, vocab=row.number_of("vocab"))


def training_of(row: Row) -> Training:
    """Return the training configuration of ``row``.

    Raises:
        NotBuiltError: a part of it is not supported.
    """
    model, column = model_of(row), row.columns
    by_hand = not column["fsdp"] or row.number_of("pp") > 1
    is_tpu = row.chip.startswith("tpu")
    if row.dtype not in (*NARROW, "bf16", "fp16"):
        raise NotBuiltError(f"products of {row.dtype} are not modelled")
    kept = (option for option in row.options if option.endswith(("=device", "=offload")))
    remat = _remat("; ".join([column["remat"], *kept]))
    sizes = _by_hand(row) if by_hand else _by_constraints(row)
    shards = math.prod(sizes.get(axis, 1) for axis in ("data", "fsdp", "expert"))
    batch = row.number_of("global_batch")
    if batch % shards:
        raise NotBuiltError(f"a batch of {batch} is not divided over {shards} devices")
    return Training(
        model,
        sizes,
        batch,
        row.number_of("seq"),
        remat,
        "tpu" if is_tpu else "cuda",
        _dtype(row, is_tpu),
        # Megatron-LM, torchtitan, and MaxText's runs on GPUs unroll layers in Python.
        scan=is_tpu,
        iota="use_iota_embed" in row.options,
        sorts_gradients="use_custom_sort_vjp=false" not in row.options,
        flash="arXiv 2205.05198" not in column["source"],
        blocks=_blocks(row) if is_tpu else Blocks(),
        local_blocks=_blocks(row, ("local_", "")) if is_tpu else Blocks(),
        narrow_attention="fp8_dot_product_attention" in row.options,
        by_hand=by_hand,
        sequence_parallel=column["remat"] != "full" or "2205.05198" not in column["source"],
        microbatches=batch // shards // row.number_of("microbatch") if by_hand else 1,
        interleave=row.number_of("vp"),
        # Counts of the experts' tokens are read by the host, which then launches their products.
        eager=by_hand
        and any(kind.experts for kind in model.kinds)
        and "cuda_graph_impl=full_iteration" not in row.options,
        graphs=row.option("cuda_graph_scope"),
        at_once=2 if "moe_a2a_overlap" in row.options else 1,
        op_by_op="training.compile=false" in row.options,
        loss_op_by_op=row.is_torchtitan,
        splits_collectives="tp_comm_overlap" in row.options,
    )


def _dtype(row: Row, is_tpu: bool) -> str:
    """The operand type of products, with how a run scales to it."""
    if row.dtype != "fp8":
        return row.dtype
    if is_tpu:
        return "fp8_full"
    return "fp8_dynamic" if row.is_torchtitan else "fp8"


def _blocks(row: Row, prefixes: tuple[str, ...] = ("",)) -> Blocks:
    """The blocks of the attention kernel of a run on TPUs, by the options of MaxText that begin
    with one of ``prefixes``, of which the first goes before."""

    def option(name: str) -> int:
        found = (value for prefix in prefixes for value in row.option(f"{prefix}sa_block_{name}"))
        return int(next(found, 512))

    tile = hardware(row.chip).achieved.tile[2]
    return Blocks.of(option, "sa_use_fused_bwd_kernel" in row.options, tile)


def _by_constraints(row: Row) -> dict[str, int]:
    data, tensor, context = (row.number_of(name) for name in ("dp", "tp", "cp"))
    # Some sources count devices, two per chip; some count another axis separately.
    fsdp = row.number_of("chips") // (data * tensor * context)
    sizes = {"data": data, "fsdp": fsdp, "tensor": tensor}
    return {**sizes, "context": context} if context > 1 else sizes


def _by_hand(row: Row) -> dict[str, int]:
    stage, tensor, context = (row.number_of(name) for name in ("pp", "tp", "cp"))
    experts = row.number_of("ep")
    data = row.number_of("chips") // (stage * tensor * context)
    if experts % tensor and experts > 1:
        raise NotBuiltError(f"experts over {experts} devices do not contain tp={tensor}")
    expert = max(experts // tensor, 1)
    if data % expert:
        raise NotBuiltError(f"{data} replicas are not divided over {expert} groups of experts")
    sizes = dict(zip(AXES, (stage, data // expert, 1, expert, context, tensor), strict=True))
    needed = {"data", *(["expert"] if experts > 1 else [])}
    return {name: size for name, size in sizes.items() if size > 1 or name in needed}


def _remat(text: str) -> Remat | None:
    """The rematerialization in the column ``remat``."""
    if text in ("", "none"):
        return None
    if text == "full":
        return Remat()
    if text == "minimal_flash":
        return Remat(("context",), products=True)
    if text == "selective":
        return Remat(_EVERY_SECOND)
    if text == "selective + sequence parallel":
        return Remat(("query", "key", "value", "out", "gate", "up", "down"))
    saved: list[str] = []
    offloaded: list[str] = []
    for names, place in re.findall(r"([\w,]+)=(offload|device)", text):
        known = [_KEPT[name] for name in names.split(",")]
        (saved if place == "device" else offloaded).extend(known)
    return Remat(tuple(saved), tuple(offloaded))
