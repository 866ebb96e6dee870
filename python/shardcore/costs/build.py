"""Computes the cost of a program on given hardware from its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardcore._core import Figures, Module, Result
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.hardware import hardware as find_hardware
from shardcore.costs.figures import TrafficKind, WorkKind, traffic_kinds, work_kinds
from shardcore.costs.links import OPS, Links
from shardcore.costs.program import Cost
from shardcore.costs.records import LoopTrips, PeakOp, UncountedOp
from shardcore.costs.rows import Rows
from shardcore.errors import CalculusError, VerificationError
from shardcore.partition.counted import counted
from shardcore.partition.partitioned import Partitioned
from shardcore.why.trial import Trial

SATURATED = (
    "some figure is beyond what is counted, 2^96 bytes of a tensor or 2^128 in all: it is at least "
    "what is said"
)
"""The note of a cost with such figures."""

UNKNOWN_AXES = "the axes along which it runs are not known"
UNKNOWN_TIME = "its time is not known"
OFF_TOPOLOGY = "the mesh that it runs over does not lie on the topology"


def build(
    program: Module | Result | Partitioned,
    chip: str | Hardware,
    policy: str,
    *,
    topology: str | Sequence[int] | None,
    mapping: Mapping[str, Sequence[int]] | str | None,
    hardware_file: str | Path | None,
    options: TimeOptions,
) -> Cost:
    """Return the cost of ``program``; see :func:`shardcore.cost`."""
    local = partitioned(program, policy)
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, hardware_file)
    known = chip

    def count(local: Partitioned) -> Cost:
        links = Links(known, topology, mapping, options)
        links.check(mesh for mesh in local.source.meshes.values() if not mesh.is_maximal)
        return timed(local, known, links, count)

    return count(local)


def partitioned(program: Module | Result | Partitioned, policy: str) -> Partitioned:
    """Return the per-device program that ``policy`` makes of ``program``, to be counted.

    Raises:
        TypeError: ``program`` is none.
    """
    if isinstance(program, Partitioned):
        return program
    if not isinstance(program, (Module, Result)):
        raise TypeError(f"expected a Module or a Result, not {type(program).__name__}")
    result = program.propagate() if isinstance(program, Module) else program
    return counted(result, policy)


def timed(
    local: Partitioned, chip: Hardware, links: Links, count: Callable[[Partitioned], Cost]
) -> Cost:
    """Return the cost on ``chip`` of ``local``; ``count`` is how others are counted."""
    figures = local.figures
    rates = _Rates(chip)
    work = [(kind, *rates.seconds(kind)) for kind in work_kinds(figures)]
    sent = [_sent(kind, links) for kind in traffic_kinds(figures)]
    traffic = [(row.kind, row.bytes, row.seconds) for row in sent]
    arguments, outputs, aliased, peak, least_peak = figures.memory()
    at = figures.peak_op()
    rows = Rows(figures, work, traffic, Trial(local, count))
    uncounted = [UncountedOp(**row) for row in figures.uncounted()]
    if any(row.reason for row in sent):
        uncounted += _untimed(figures, sent)
    return Cost(
        hardware=chip,
        policy=local.policy,
        flops=sum(kind.flops * kind.count for kind, *_ in work),
        flops_counting_loops_once=sum(
            kind.flops * kind.count_counting_loops_once for kind, *_ in work
        ),
        transcendentals=sum(kind.transcendentals * kind.count for kind, *_ in work),
        hbm_bytes=sum(kind.bytes * kind.count for kind, *_ in work),
        argument_bytes=arguments,
        output_bytes=outputs,
        alias_bytes=aliased,
        peak_bytes=peak,
        least_peak_bytes=min(least_peak, peak),
        peak_op=None if at is None else PeakOp(**at),
        compute_seconds=sum(max(compute, memory) * kind.count for kind, compute, memory in work),
        comm_seconds=sum(seconds * kind.count for kind, _, seconds in traffic),
        rows=rows,
        uncounted=tuple(uncounted),
        loops=tuple(LoopTrips(**row) for row in figures.loops()),
        notes=(*links.notes, *([SATURATED] if figures.is_saturated else [])),
        is_saturated=figures.is_saturated,
    )


class _Rates:
    """How long ops take on a chip."""

    def __init__(self, chip: Hardware) -> None:
        self._chip = chip
        self._known: dict[str | None, float] = {}

    def seconds(self, kind: WorkKind) -> tuple[float, float]:
        """Seconds of computation and of memory traffic of one run; none for collectives."""
        if kind.is_collective:
            return 0.0, 0.0
        if kind.dtype not in self._known:
            known = kind.dtype is not None and is_dtype(kind.dtype)
            dtype = kind.dtype if known and kind.dtype else "bf16"
            self._known[kind.dtype] = self._chip.flops_per_second(dtype)
        compute = (kind.flops + kind.transcendentals) / self._known[kind.dtype]
        return compute, kind.bytes / self._chip.hbm_bytes_per_second


@dataclass(frozen=True)
class _Sent:
    """What a device sends in one run of some collectives."""

    kind: TrafficKind
    bytes: int = 0
    seconds: float = 0.0
    reason: str | None = None
    """Why the time is not known; ``None`` if it is."""


def _sent(kind: TrafficKind, links: Links) -> _Sent:
    """What a device sends in one run of collectives of ``kind``, and how long that takes."""
    if kind.kind not in OPS:
        return _Sent(kind, reason=UNKNOWN_TIME)
    if kind.mesh is None or kind.axes is None:
        return _Sent(kind, reason=UNKNOWN_AXES)
    try:
        return _Sent(kind, *links.cost(kind.kind, kind.mesh, tuple(kind.axes), kind.bytes))
    except (CalculusError, VerificationError):
        # Some mesh of the program lies on the topology, this one does not.
        return _Sent(kind, reason=OFF_TOPOLOGY)


def _untimed(figures: Figures, sent: Sequence[_Sent]) -> list[UncountedOp]:
    """The collectives whose time is not known."""
    found = []
    for row in figures.collectives():
        of = sent[row["kind"]]
        if of.reason is not None:
            count, place = row["count"], row["location"]
            num_bytes = of.kind.bytes * count
            found.append(
                UncountedOp(of.kind.kind, of.reason, "communication", count, num_bytes, place)
            )
    return found
