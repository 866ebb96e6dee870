"""The figures of a program that do not depend on hardware, as ``rust/src/cost`` counts them."""

from __future__ import annotations

from dataclasses import dataclass

from shardcore._core import AxisRef, Mesh, Module, program_cost
from shardcore.costs.records import LiveValue, LoopTrips, PeakOp, UncountedOp


@dataclass(frozen=True)
class OpFigures:
    """Ops of one name, place, element type and cost. All figures are of one run of one of them."""

    name: str
    location: str | None
    dtype: str | None
    """The element type that they compute in, as MLIR writes it."""
    flops: int
    transcendentals: int
    bytes: int
    """Bytes read from and written to memory, with ops fused."""
    count: int
    """Number of runs of such ops."""
    count_counting_loops_once: int
    """Number of runs if each loop ran its body once."""
    is_collective: bool


@dataclass(frozen=True)
class CollectiveFigures:
    """One collective, before its time is known; see :class:`~shardcore.costs.CollectiveCost`."""

    value: str | None
    kind: str
    mesh: Mesh | None
    """``None`` where it is not known."""
    axes: list[AxisRef] | None
    """``None`` where they are not known."""
    devices: int
    """How many devices talk to each other; 1 where that is not known."""
    count: int
    bytes: int
    location: str | None
    cause: str | None
    cause_location: str | None
    operand_sharding: str | None
    result_sharding: str | None


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes of one device; see :class:`~shardcore.Cost`."""

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    peak_bytes: int
    peak_op: PeakOp | None
    live_at_peak: tuple[LiveValue, ...]


@dataclass(frozen=True)
class ProgramFigures:
    """The figures of a program for one device, without times."""

    ops: list[OpFigures]
    collectives: list[CollectiveFigures]
    uncounted: list[UncountedOp]
    loops: tuple[LoopTrips, ...]
    memory: MemoryFigures
    is_saturated: bool

    @staticmethod
    def of(module: Module) -> ProgramFigures:
        """Return the figures of ``module``, a program with explicit collectives."""
        found = program_cost(module)
        memory = found["memory"]
        peak, live = memory.pop("peak_op"), memory.pop("live_at_peak")
        return ProgramFigures(
            ops=[OpFigures(**row) for row in found["ops"]],
            collectives=[CollectiveFigures(**row) for row in found["collectives"]],
            uncounted=[UncountedOp(**row) for row in found["uncounted"]],
            loops=tuple(LoopTrips(**row) for row in found["loops"]),
            is_saturated=found["is_saturated"],
            memory=MemoryFigures(
                **memory,
                peak_op=None if peak is None else PeakOp(**peak),
                live_at_peak=tuple(LiveValue(**row) for row in live),
            ),
        )
