"""Computes the cost of a per-device program on given hardware from its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING

from shardcore._core import Figures
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.hardware import hardware as find_hardware
from shardcore.calculus.measured import Estimate, confidence
from shardcore.calculus.slices import networked
from shardcore.costs.combine import Runs, combined_runs, limits_of
from shardcore.costs.compilers import compiler_of
from shardcore.costs.figures import TrafficKind, WorkKind, traffic_kinds
from shardcore.costs.host import HostCost, achieved_seconds, host_cost, untimed, with_exposed
from shardcore.costs.improve import improved, passes_of
from shardcore.costs.links import LINKS, NETWORK, OPS, Links, Transfer
from shardcore.costs.program import Cost
from shardcore.costs.rates import MATRIX_UNITS, Rates, Times
from shardcore.costs.records import LoopTrips, UncountedOp
from shardcore.costs.residence import is_in_cache, mapping_seconds
from shardcore.costs.rows import Rows
from shardcore.costs.schedule import Schedule
from shardcore.errors import CalculusError, VerificationError
from shardcore.why.trial import Trial

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned

SATURATED = (
    "some figure is beyond what is counted, 2^96 bytes of a tensor or 2^128 in all: it is at least "
    "what is said"
)
"""The note on a cost with saturated figures."""

UNKNOWN_AXES = "the axes along which it runs are not known"
UNKNOWN_TIME = "its time is not known"
OFF_TOPOLOGY = "the mesh that it runs over does not lie on the topology"


def build(
    local: Partitioned,
    chip: str | Hardware,
    *,
    options: TimeOptions,
    topology: str | Sequence[int] | None = None,
    mapping: Mapping[str, Sequence[int]] | str | None = None,
    hardware_file: str | Path | None = None,
    slices: int | None = None,
    dcn: float | None = None,
    tokens: int | None = None,
    combine: Mapping[str, int | str] | int | str | None = None,
    improve: str | None = None,
    compiler: str | None = None,
) -> Cost:
    """Return the cost of ``local``; see :func:`shardcore.cost`."""
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, hardware_file)
    known = networked(chip, dcn)
    compiler = compiler_of(chip, compiler)
    passes = passes_of(compiler, improve)

    def count(local: Partitioned) -> Cost:
        local = improved(local, passes)
        links = Links(known, topology, mapping, options, slices)
        links.check(mesh for mesh in local.meshes if not mesh.is_maximal)
        found = timed(local, known, links, count, (limits_of(combine, known, compiler), compiler))
        return found if tokens is None else replace(found, tokens=tokens)

    return count(local)


def timed(
    local: Partitioned,
    chip: Hardware,
    links: Links,
    count: Callable[[Partitioned], Cost],
    limits_and_compiler: tuple[Mapping[str, int], str],
) -> Cost:
    """Return the cost on ``chip`` of ``local``. ``count`` computes the cost of other programs. The
    limits are the most bytes of combined collectives, by kind; the compiler is the one whose memory
    assignment is modelled.
    """
    limits, compiler = limits_and_compiler
    figures = local.figures(compiler, chip.facts)
    in_cache = is_in_cache(figures, compiler, chip)
    rates = Rates(chip, local.num_devices, in_cache=in_cache)
    distinct, counts = figures.work()
    work = rates.timed(distinct)
    kinds, times = [kind for kind, _ in work], [at for _, at in work]
    sent = [_sent(kind, links) for kind in traffic_kinds(figures)]
    traffic = [(row.kind, row.run.bytes) for row in sent]
    runs = combined_runs(figures, [(row.kind, row.run) for row in sent], links, limits)
    compute_seconds = sum(map(mul, [at.peak for at in times], counts))
    least = max(
        sum(map(mul, [at.compute for at in times], counts)),
        sum(map(mul, [at.least_memory for at in times], counts)),
    )
    mapping = mapping_seconds(local, figures, chip)
    achieved = [at.achieved for at in times]
    computation = _Computation(least, achieved, sum(map(mul, achieved, counts)), mapping)
    host = host_cost(figures, chip)
    step = _step(figures, computation, runs, (rates.chip, host))
    arguments, outputs, aliased = figures.memory(False)
    trial, slowest = Trial(local, count), _over_slowest(sent, links)
    rows = Rows(figures, work, traffic, trial, step, runs, slowest, compiler, rates)
    uncounted = [UncountedOp(**row) for row in figures.uncounted()]
    if any(row.reason for row in sent):
        uncounted += _untimed(figures, sent)
    uncounted += untimed(host, chip)
    return Cost(
        hardware=chip,
        policy=local.policy,
        compiler=compiler,
        shardy=local.module.shardy,
        flops=sum(map(mul, [kind.flops for kind in kinds], counts)),
        transcendentals=sum(map(mul, [kind.transcendentals for kind in kinds], counts)),
        hbm_bytes=sum(map(mul, [kind.bytes for kind in kinds], counts)),
        argument_bytes=arguments,
        output_bytes=outputs,
        alias_bytes=aliased,
        compute_seconds=compute_seconds,
        comm_seconds=step.communication,
        step_seconds=step.seconds,
        step_seconds_lower=step.lower,
        confidence=confidence(
            chip.measured,
            chip.name,
            local.num_devices,
            Estimate(step.seconds, step.lower, _in_products(work, counts)),
        ),
        exposed_seconds=sum(step.exposed),
        host=with_exposed(host, step.host_exposed),
        rows=rows,
        uncounted=tuple(uncounted),
        loops=tuple(LoopTrips(**row) for row in figures.loops()),
        notes=(*links.notes, *([SATURATED] if figures.is_saturated else [])),
        is_saturated=figures.is_saturated,
    )


_PRODUCTS = (*MATRIX_UNITS, "kernel")

NOTHING = Transfer(0, 0.0, 0.0, 0.0, LINKS, True, 1)
"""The transfer of a collective whose time is unknown."""


@dataclass(frozen=True)
class _Sent:
    """A kind of collectives, and one run of them."""

    kind: TrafficKind
    run: Transfer = NOTHING
    reason: str | None = None
    """Why the time is unknown; ``None`` if it is known."""


def _sent(kind: TrafficKind, links: Links) -> _Sent:
    """The bytes and seconds of one run of collectives of ``kind``."""
    if kind.kind not in OPS:
        return _Sent(kind, reason=UNKNOWN_TIME)
    if kind.mesh is None or kind.axes is None:
        return _Sent(kind, reason=UNKNOWN_AXES)
    try:
        return _Sent(kind, links.cost(kind.kind, kind.mesh, tuple(kind.axes), kind.bytes))
    except (CalculusError, VerificationError):
        # Another mesh of the program fits the topology, but this one does not.
        return _Sent(kind, reason=OFF_TOPOLOGY)


def _over_slowest(sent: Iterable[_Sent], links: Links) -> int:
    """The bytes that a device sends over the slowest kind of link of the mesh."""
    if not links.has_network:
        return sum(row.kind.count * row.run.bytes for row in sent)
    return round(sum(row.kind.count * row.run.network_bytes for row in sent))


@dataclass(frozen=True)
class _Computation:
    """The times of the ops of a program."""

    least: float
    """A lower bound of the seconds of all ops."""
    achieved: list[float]
    """Seconds of one run of each kind of ops."""
    total: float
    """Seconds of all their runs."""
    mapping: float
    """Seconds to map memory."""


def _step(
    figures: Figures,
    computation: _Computation,
    runs: Runs,
    chip_and_host: tuple[Hardware, HostCost],
) -> Schedule:
    """Schedule the program, and bound its time from below."""
    chip, host = chip_and_host
    shares = chip.achieved
    copies = achieved_seconds(host, chip)
    transfers = [
        (
            run.achieved,
            run.stream if run.overlaps else 0,
            float(run.chunks),
            run.in_products,
            run.slows,
        )
        for run in runs.runs
    ]
    point, exposed, host_exposed = figures.timeline(
        computation.achieved, transfers, runs.of_rows, shares.contention, copies
    )
    busy = [computation.least, host.busy_seconds]
    busy += [runs.total(partial(_fastest_on, stream)) for stream in (LINKS, NETWORK)]
    start = shares.step_seconds + computation.mapping
    seconds = start + point
    return Schedule(
        seconds,
        # Where nothing but one resource is used the two are equal, but for rounding.
        min(max(busy), seconds),
        runs.total(lambda run: run.seconds),
        start,
        computation.total,
        exposed,
        host_exposed,
    )


def _in_products(work: Iterable[tuple[WorkKind, Times]], counts: Iterable[int]) -> float:
    """Seconds of products and custom calls."""
    return sum(
        at.achieved * count
        for (kind, at), count in zip(work, counts, strict=True)
        if kind.unit in _PRODUCTS
    )


def _fastest_on(stream: int, run: Transfer) -> float:
    """The least seconds of ``run`` on ``stream``."""
    return run.fastest if run.stream == stream else 0.0


def _untimed(figures: Figures, sent: Sequence[_Sent]) -> list[UncountedOp]:
    """The collectives whose time is unknown."""
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
