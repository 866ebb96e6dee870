"""Computes the cost of a program on given hardware from its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardcore._core import Module, Result
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.hardware import hardware as find_hardware
from shardcore.costs.figures import CollectiveFigures, OpFigures, ProgramFigures
from shardcore.costs.links import OPS, Links
from shardcore.costs.program import Cost
from shardcore.costs.records import CollectiveCost, OpCost, UncountedOp
from shardcore.errors import CalculusError, VerificationError

SATURATED = (
    "some figure is beyond what is counted, 2^96 bytes of a tensor or 2^128 in all: it is at least "
    "what is said"
)
"""The note of a cost with such figures."""


def build(
    program: Module | Result,
    chip: str | Hardware,
    *,
    topology: str | Sequence[int] | None,
    mapping: Mapping[str, Sequence[int]] | str | None,
    hardware_file: str | Path | None,
    options: TimeOptions,
) -> Cost:
    """Return the cost of ``program``; see :func:`shardcore.cost`."""
    if not isinstance(program, (Module, Result)):
        raise TypeError(f"expected a Module or a Result, not {type(program).__name__}")
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, hardware_file)
    result = program.propagate() if isinstance(program, Module) else program
    module = result._collectives()
    links = Links(chip, topology, mapping, options)
    links.check(mesh for mesh in module.meshes.values() if not mesh.is_maximal)
    figures = ProgramFigures.of(module)
    collectives, untimed = _collectives(figures.collectives, links)
    ops = _ops(figures.ops, chip)
    return Cost(
        hardware=chip,
        flops=sum(row.flops for row in ops),
        flops_counting_loops_once=sum(
            row.flops * row.count_counting_loops_once for row in figures.ops
        ),
        transcendentals=sum(row.transcendentals for row in ops),
        hbm_bytes=sum(row.bytes for row in ops),
        argument_bytes=figures.memory.argument_bytes,
        output_bytes=figures.memory.output_bytes,
        alias_bytes=figures.memory.alias_bytes,
        peak_bytes=figures.memory.peak_bytes,
        peak_op=figures.memory.peak_op,
        live_at_peak=figures.memory.live_at_peak,
        collectives=collectives,
        ops=ops,
        uncounted=(*figures.uncounted, *untimed),
        loops=figures.loops,
        notes=(*links.notes, *([SATURATED] if figures.is_saturated else [])),
        is_saturated=figures.is_saturated,
    )


@dataclass
class _OpSums:
    """Sums over all runs of the ops of one name at one place."""

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    count: int = 0
    seconds: float = 0.0
    compute_seconds: float = 0.0
    memory_seconds: float = 0.0

    def add(self, row: OpFigures, compute: float, memory: float) -> None:
        """Add ``row``, of which one run takes ``compute`` and ``memory`` seconds."""
        self.flops += row.flops * row.count
        self.transcendentals += row.transcendentals * row.count
        self.bytes += row.bytes * row.count
        self.count += row.count
        self.seconds += max(compute, memory) * row.count
        self.compute_seconds += compute * row.count
        self.memory_seconds += memory * row.count


def _ops(rows: Sequence[OpFigures], chip: Hardware) -> tuple[OpCost, ...]:
    """The rows by name and place, the longest first."""
    rates: dict[str | None, float] = {}
    sums: dict[tuple[str, str | None], _OpSums] = defaultdict(_OpSums)
    for row in rows:
        compute = memory = 0.0
        if not row.is_collective:
            if row.dtype not in rates:
                known = row.dtype is not None and is_dtype(row.dtype)
                rates[row.dtype] = chip.flops_per_second(
                    row.dtype if known and row.dtype else "bf16"
                )
            compute = (row.flops + row.transcendentals) / rates[row.dtype]
            memory = row.bytes / chip.hbm_bytes_per_second
        sums[row.name, row.location].add(row, compute, memory)
    found = [OpCost(name, place, **vars(total)) for (name, place), total in sums.items()]
    return tuple(sorted(found, key=lambda row: -row.seconds))


def _collectives(
    rows: Sequence[CollectiveFigures], links: Links
) -> tuple[tuple[CollectiveCost, ...], list[UncountedOp]]:
    """The collectives with their times in seconds, and those whose time is not known."""
    found: list[CollectiveCost] = []
    untimed: list[UncountedOp] = []
    for row in rows:
        sent, seconds, reason = 0, 0.0, None
        if row.kind not in OPS:
            reason = "its time is not known"
        elif row.mesh is None or row.axes is None:
            reason = "the axes along which it runs are not known"
        else:
            try:
                sent, seconds = links.cost(row.kind, row.mesh, tuple(row.axes), row.bytes)
            except (CalculusError, VerificationError):
                # A reshard goes to another mesh; the topology and the mapping may not fit that one.
                if row.kind != "reshard":
                    raise
                reason = "the mesh that it goes to does not lie on the topology"
        if reason is not None:
            num_bytes = row.bytes * row.count
            untimed.append(
                UncountedOp(row.kind, reason, "communication", row.count, num_bytes, row.location)
            )
        found.append(CollectiveCost.of(row, sent, seconds))
    return tuple(found), untimed
