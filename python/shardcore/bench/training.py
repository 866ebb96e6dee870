"""Training configurations: mesh, batch, types, rematerialization; and the shardings of arrays.

A mesh has those of the axes ``stage``, ``data``, ``fsdp``, ``expert``, ``context`` and ``tensor``
that the run uses. ``expert`` is the part of the data parallelism that experts are sharded over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from shardcore.bench.kernels import Blocks
from shardcore.bench.models import Model
from shardcore.bench.parameters import Parameter, is_expert, shapes

AXES = ("stage", "data", "fsdp", "expert", "context", "tensor")
"""The axes of meshes, slowest first."""


@dataclass(frozen=True)
class Remat:
    """The values that layers keep for the backward pass; all others are recomputed."""

    saved: tuple[str, ...] = ()
    """The kept products, by the names of their weights: any of ``query``, ``key``, ``value``,
    ``context`` (the output of attention), ``out``, ``gate``, ``up``, ``down``."""
    offloaded: tuple[str, ...] = ()
    """The kept values that are offloaded to the host; may include ``layer_input``, which is always
    kept."""
    products: bool = False
    """Whether all products without batch dims are kept."""

    def policy(self) -> Any:
        """The policy for ``jax.checkpoint``."""
        policies = jax.checkpoint_policies
        if self.offloaded:
            return policies.save_and_offload_only_these_names(
                names_which_can_be_saved=list(self.saved),
                names_which_can_be_offloaded=list(self.offloaded),
                offload_src="device",
                offload_dst="pinned_host",
            )
        dots = policies.checkpoint_dots_with_no_batch_dims
        names = policies.save_only_these_names(*self.saved)
        if self.products:
            return policies.save_from_both_policies(dots, names) if self.saved else dots
        return names if self.saved else policies.nothing_saveable


@dataclass(frozen=True)
class Training:
    """A training configuration."""

    model: Model
    sizes: Mapping[str, int]
    """Devices along each axis of the mesh."""
    batch: int
    """Sequences per step, over all devices."""
    time: int
    """Tokens per sequence."""
    remat: Remat | None = Remat()
    """``None`` if everything is kept."""
    platform: str = "tpu"
    """``tpu`` or ``cuda``."""
    dtype: str = "bf16"
    """The operand type of products in layers; see :mod:`shardcore.bench.products`."""
    scan: bool = True
    """Whether layers run in a ``jax.lax.scan``."""
    iota: bool = True
    """Whether embeddings are looked up by a product with a one-hot array."""
    sorts_gradients: bool = True
    """Whether gradients of the rows of experts are sorted, as the rows are; otherwise they are
    added where the rows came from, by scatters."""
    flash: bool = True
    """Whether a kernel computes attention."""
    blocks: Blocks = field(default_factory=Blocks)
    """On TPUs: the blocks of the attention kernel."""
    local_blocks: Blocks = field(default_factory=Blocks)
    """On TPUs: the blocks of the attention kernel of layers with windows."""
    narrow_attention: bool = False
    """On GPUs: whether the kernel multiplies in an 8-bit float type."""
    by_hand: bool = False
    """Whether collectives are explicit, as in Megatron-LM: data parallelism gathers weights and
    reduce-scatters gradients once per step, and layers are divided over stages. Otherwise the
    partitioner inserts them, as in MaxText."""
    sequence_parallel: bool = True
    """With explicit collectives: whether activations between layers are sharded over ``tensor``."""
    microbatches: int = 1
    """The number of micro-batches that the batch of a device is computed in, one after the
    other."""
    interleave: int = 1
    """With explicit collectives: the number of chunks of layers per stage."""
    at_once: int = 1
    """With explicit collectives: the number of microbatches that are computed at a time, so that
    collectives of one overlap with the ops of another."""

    eager: bool = False
    """Whether the host launches each kernel, and each product of an expert, while the device
    waits."""
    graphs: tuple[str, ...] = ()
    """The scopes whose kernels the host replays as graphs; see :mod:`shardcore.bench.launches`."""
    op_by_op: bool = False
    """Whether each elementwise op is a kernel of its own, as in PyTorch without ``torch.compile``:
    see :mod:`shardcore.bench.op_by_op`. Then all of the kept values stay in memory until the
    backward pass of their layer, even those that it does not read, as those of PyTorch's selective
    checkpointing."""
    loss_op_by_op: bool = False
    """Whether the loss is computed op by op on logits in float32, as by
    ``torch.nn.functional.cross_entropy``, and not in one kernel."""
    splits_collectives: bool = False
    """With explicit collectives: whether those of tensor parallelism overlap with the products next
    to them, chunk by chunk."""

    @property
    def mesh(self) -> AbstractMesh:
        """The mesh, without devices."""
        axes = [name for name in AXES if name in self.sizes]
        sizes, types = tuple(self.sizes[name] for name in axes), (AxisType.Auto,) * len(axes)
        return AbstractMesh(sizes, tuple(axes), axis_types=types)

    def present(self, *axes: str) -> tuple[str, ...]:
        """The ``axes`` that the mesh has."""
        return tuple(name for name in axes if name in self.sizes)

    @property
    def alternates(self) -> bool:
        """With explicit collectives: whether a stage alternates between forward and backward
        passes; if not, all microbatches are in flight at a time."""
        stages = self.sizes.get("stage", 1)
        return stages == 1 or self.microbatches > stages

    @property
    def batch_axes(self) -> tuple[str, ...]:
        """The axes that shard the batch."""
        return self.present("data", "fsdp", "expert")

    @property
    def time_axis(self) -> str | None:
        """The axis that shards the tokens of a sequence."""
        return "context" if "context" in self.sizes else None

    @property
    def replicas(self) -> tuple[str, ...]:
        """The axes along which devices use the same weights in a step."""
        axes = ("data", "fsdp", "expert", "context") if self.by_hand else ("fsdp", "context")
        return self.present(*axes)

    @property
    def expert_axes(self) -> tuple[str, ...]:
        """The axes that shard the experts."""
        return self.present("expert", "tensor") if "expert" in self.sizes else ()

    def gathered(self, name: str) -> tuple[str, ...]:
        """The axes along which the weight ``name`` is gathered before use."""
        used = self.expert_axes if is_expert(name) else ()
        return tuple(axis for axis in self.replicas if axis not in used)

    def spec(self, name: str, parameter: Parameter) -> P:
        """The sharding of the parameter ``name``, of its moments and of its gradient."""
        gathered = self.gathered(name)
        inside = None if is_expert(name) and self.expert_axes else "tensor"
        axes: dict[str, Any] = {
            "layers": "stage" if "stage" in self.sizes else None,
            "embed": gathered[0] if len(gathered) == 1 else gathered or None,
            "norm": (gathered or None) if self.by_hand else "tensor",
            "heads": "tensor",
            "inner": "tensor",
            "vocab": "tensor",
            "expert": self.expert_axes or None,
            "expert_inner": inside,
        }
        known = {
            dim: None if one == "tensor" and not self.present(one) else one
            for dim, one in axes.items()
        }
        return P(*(known.get(dim) for dim in parameter.dims))

    def specs(self) -> dict[str, P]:
        """The shardings of the parameters by name."""
        return {name: self.spec(name, each) for name, each in shapes(self.model).items()}
