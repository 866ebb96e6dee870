"""How a model is trained: mesh, batch, types, what is recomputed; and where its arrays are.

A mesh has those of the axes ``stage``, ``data``, ``fsdp``, ``expert``, ``context`` and ``tensor``
that the run has. ``expert`` is the part of the data parallelism over which experts are divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from shardcore.bench.models import Model
from shardcore.bench.parameters import Parameter, is_expert, shapes

AXES = ("stage", "data", "fsdp", "expert", "context", "tensor")
"""The axes of meshes, the slowest first."""


@dataclass(frozen=True)
class Remat:
    """What layers keep for the backward pass; the rest is computed again."""

    saved: tuple[str, ...] = ()
    """Of ``query``, ``key``, ``value``, ``context`` (what attention computes), ``out``, ``gate``,
    ``up``, ``down``: products, by the names of their weights."""
    offloaded: tuple[str, ...] = ()
    """Those that the host keeps; of these and ``layer_input``, which is always kept."""
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
    """A configuration of training."""

    model: Model
    sizes: Mapping[str, int]
    """Devices along each axis of the mesh."""
    batch: int
    """Sequences of a step, of all devices."""
    time: int
    """Tokens of a sequence."""
    remat: Remat | None = Remat()
    """``None``: everything is kept."""
    platform: str = "tpu"
    """``tpu`` or ``cuda``."""
    dtype: str = "bf16"
    """The type of the operands of products in layers; see :mod:`shardcore.bench.products`."""
    scan: bool = True
    """Whether layers are scanned."""
    iota: bool = True
    """Whether embeddings are looked up by a product."""
    flash: bool = True
    """Whether a kernel computes attention."""
    by_hand: bool = False
    """Whether collectives are written by hand, as in Megatron: data parallelism gathers weights
    and scatters gradients once a step, layers are divided over stages. Otherwise the partitioner
    makes them of shardings, as in MaxText."""
    sequence_parallel: bool = True
    """By hand: whether activations between layers are divided over ``tensor``."""
    microbatches: int = 1
    """How many parts the batch of a device is computed in, one after the other."""
    interleave: int = 1
    """By hand: how many pieces of layers a stage has."""

    @property
    def mesh(self) -> AbstractMesh:
        """The mesh, without devices."""
        axes = [name for name in AXES if name in self.sizes]
        sizes, types = tuple(self.sizes[name] for name in axes), (AxisType.Auto,) * len(axes)
        return AbstractMesh(sizes, tuple(axes), axis_types=types)

    def present(self, *axes: str) -> tuple[str, ...]:
        """Those of ``axes`` that the mesh has."""
        return tuple(name for name in axes if name in self.sizes)

    @property
    def batch_axes(self) -> tuple[str, ...]:
        """The axes over which sequences are divided."""
        return self.present("data", "fsdp", "expert")

    @property
    def time_axis(self) -> str | None:
        """The axis over which the tokens of a sequence are divided."""
        return "context" if "context" in self.sizes else None

    @property
    def replicas(self) -> tuple[str, ...]:
        """The axes along which devices have the same weights in a step."""
        axes = ("data", "fsdp", "expert", "context") if self.by_hand else ("fsdp", "context")
        return self.present(*axes)

    @property
    def expert_axes(self) -> tuple[str, ...]:
        """The axes over which experts are divided."""
        return self.present("expert", "tensor") if "expert" in self.sizes else ()

    def gathered(self, name: str) -> tuple[str, ...]:
        """The axes along which the weight ``name`` is gathered before it is used."""
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
