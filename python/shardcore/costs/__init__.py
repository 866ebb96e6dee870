"""What a program costs: work, memory, communication, and the time of a step on given hardware.

=====================  ========================================================================
:mod:`~.program`       :class:`Cost`, the answer
:mod:`~.records`       the records that a cost has
:mod:`~.figures`       counts that do not depend on hardware
:mod:`~.rows`          the rows of a cost, made when they are first read
:mod:`~.kernels`       the kernels of a step
:mod:`~.scopes`        the sums by scope (JAX's ``named_scope``)
:mod:`~.memory`        the values in memory over time
:mod:`~.host`          memory, copies and computation on the host
:mod:`~.usage`         MFU, HFU, tokens or examples a second
:mod:`~.batch`         how many tokens or examples a step has
:mod:`~.build`         computes times from these figures
:mod:`~.rates`         times of ops on a chip
:mod:`~.combine`       collectives that are combined into one
:mod:`~.improve`       compiler passes that run before a program is counted
:mod:`~.links`         times of collectives on links, by :mod:`shardcore.calculus`
:mod:`~.chips`         the cost on every known chip
:mod:`~.longest`       the collectives that take longest
:mod:`~.compare`       differences between two costs, by line
=====================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardcore.costs.compare import Comparison, compare
from shardcore.costs.host import HostCost, HostTransfer
from shardcore.costs.kernels import AsyncCopies, Kernel
from shardcore.costs.memory import Lifetime, MemoryPoint, MemoryTimeline
from shardcore.costs.memory_analysis import MemoryAnalysis
from shardcore.costs.program import Cost
from shardcore.costs.records import (
    CollectiveCost,
    LiveValue,
    NotInStep,
    OpCost,
    Totals,
    UncountedOp,
)
from shardcore.costs.scopes import ScopeCost
from shardcore.costs.usage import Usage

if TYPE_CHECKING:
    from shardcore._core import Module, Result
    from shardcore.calculus.hardware import Hardware
    from shardcore.partition import Partitioned

__all__ = [
    "AsyncCopies",
    "CollectiveCost",
    "Comparison",
    "Cost",
    "HostCost",
    "HostTransfer",
    "Kernel",
    "Lifetime",
    "LiveValue",
    "MemoryAnalysis",
    "MemoryPoint",
    "MemoryTimeline",
    "NotInStep",
    "OpCost",
    "ScopeCost",
    "Totals",
    "UncountedOp",
    "Usage",
    "compare",
    "cost",
]


def cost(
    program: Module | Result | Partitioned,
    hardware: str | Hardware = "tpu-v5p",
    policy: str = "xla",
    *,
    topology: str | Sequence[int] | None = None,
    mapping: Mapping[str, Sequence[int]] | str | None = None,
    hardware_file: str | Path | None = None,
    exact: bool = False,
    efficiency: float = 1.0,
    one_way: bool = False,
    slices: int | None = None,
    dcn: float | None = None,
    tokens: int | None = None,
    combine: Mapping[str, int | str] | int | str | None = None,
    improve: str | None = None,
    compiler: str | None = None,
    keep_ports: bool = False,
) -> Cost:
    """Return time, memory and communication of one device, which runs the per-device program.

    An op that no rule can split, such as a custom call with an unknown target, is assumed to be
    computed on every device with all of its operands, as in XLA; ``Cost.uncounted`` lists it.

    Args:
        program: a module, which is propagated first; a propagation result; or a per-device program,
            which is counted as it is, whatever ``policy`` is.
        hardware: the chip, by name (:func:`shardcore.calculus.hardware_names`) or as an object.
        policy: the policy that makes the per-device program; see
            :meth:`shardcore.Result.partition`.
        topology: the torus, such as ``"4x4x4"``; by default each mesh axis is a physical axis.
        mapping: the physical axes of each mesh axis, ``{"x": (0, 1)}`` or ``"x=0,1"``; by default
            mesh axes take physical axes in order.
        hardware_file: a TOML file with other chips, or other figures of known ones.
        exact: count that a device already has its own block, ``(N - 1) / N`` on rings.
        efficiency: the fraction of a link's bandwidth that is reached.
        one_way: rings send in one direction only.
        slices: the number of tori, each of ``topology``, that the data center network connects; by
            default as many as pods are needed.
        dcn: bytes per second that each chip sends to other slices or nodes, in one direction; by
            default the chip's figure.
        tokens: the number of tokens of a step, over all devices; by default the size of the first
            integer argument with two dims, batch and time, or more; see :class:`Usage` for steps
            without one.
        combine: the most bytes of collectives that are combined into one, ``"30MiB"``, 0 for none,
            or by kind: ``{"all_reduce": "30MiB", "all_gather": 0}``; by default the chip's
            threshold.
        improve: comma-separated passes that run on the per-device program before it is counted, as
            compilers for accelerators do: ``"all-reduce-to-reduce-scatter"``,
            ``"hoist-loop-invariant-collectives{max-bytes=1000}"``, ``"merge-equal-collectives"``,
            ``"all-reduce-reassociate"``, ``"fuse-reshards"``, ``"remove-unused-ops"``. The passes
            of the modelled compiler run before these.
        compiler: the compiler whose fusion and memory assignment are modelled: ``"xla-tpu"``,
            ``"xla-gpu"``, ``"xla-cpu"``, or ``"none"``; by default the chip's compiler.
        keep_ports: under ``xla``, shard arguments and results without annotation as propagation
            does, as if they were annotated so. Otherwise they are sharded as XLA does, which
            differs where axes conflict and the order of ops decides.

    Raises:
        PartitionError: there is no per-device program (``unpartitionable``).
        ValueError: ``policy``, ``compiler``, a pass of ``improve``, or a kind or size in
            ``combine`` is unknown.
        PipelineError: a pass of ``improve`` has no such option.
        CalculusError: the chip is unknown (``unknown-hardware``), the mesh does not fit the
            topology (``invalid-topology``), or the efficiency is not in (0, 1]
            (``invalid-option``).
        VerificationError: the mapping names an axis that the mesh lacks (``unknown-axis``).
        ShardcoreError: as for :meth:`shardcore.Module.propagate`.
    """
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.collective_time import TimeOptions
    from shardcore.calculus.hardware import Hardware
    from shardcore.calculus.hardware import hardware as find_hardware
    from shardcore.costs.build import build
    from shardcore.costs.compilers import compiler_of
    from shardcore.costs.improve import passes_of
    from shardcore.partition.counted import local_program

    options = TimeOptions(exact, efficiency, one_way)
    if not isinstance(hardware, Hardware):
        hardware = find_hardware(hardware, hardware_file)
    own = compiler_of(hardware, compiler)
    return build(
        local_program(program, policy, keep_ports, passes_of(own, improve), own),
        hardware,
        options=options,
        topology=topology,
        mapping=mapping,
        slices=slices,
        dcn=dcn,
        tokens=tokens,
        combine=combine,
        improve=improve,
        compiler=compiler,
    )
