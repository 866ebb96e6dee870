"""From the figures of a program to its cost on given hardware."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shardcore._core import Module, Result, program_cost
from shardcore.calculus.axes import axis_text
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.hardware import hardware as find_hardware
from shardcore.costs.links import OPS, Links
from shardcore.costs.program import Cost
from shardcore.costs.records import (
    CollectiveCost,
    LiveValue,
    LoopTrips,
    OpCost,
    PeakOp,
    UncountedOp,
)


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
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, hardware_file)
    result = program.propagate() if isinstance(program, Module) else program
    tables = program_cost(result._collectives())
    links = Links(tables["meshes"], chip, topology, mapping, options)
    uncounted = [UncountedOp(*row) for row in tables["uncounted"]]
    collectives = tuple(_collectives(tables["collectives"], links, uncounted))
    memory = tables["memory"]
    ops = _ops(tables["ops"], chip)
    return Cost(
        hardware=chip,
        flops=sum(row.flops for row in ops),
        flops_counting_loops_once=sum(row[3] * row[7] for row in tables["ops"]),
        transcendentals=sum(row.transcendentals for row in ops),
        hbm_bytes=sum(row.bytes for row in ops),
        argument_bytes=memory["argument_bytes"],
        output_bytes=memory["output_bytes"],
        alias_bytes=memory["alias_bytes"],
        peak_bytes=memory["peak_bytes"],
        peak_op=None if memory["peak_op"] is None else PeakOp(*memory["peak_op"]),
        live_at_peak=tuple(LiveValue(*row) for row in memory["live"]),
        collectives=collectives,
        ops=ops,
        uncounted=tuple(uncounted),
        loops=tuple(LoopTrips(*row) for row in tables["loops"]),
        notes=links.notes,
    )


def _ops(rows: Sequence[tuple[Any, ...]], chip: Hardware) -> tuple[OpCost, ...]:
    """The rows by name and place, the longest first."""
    rates: dict[str | None, float] = {}
    sums: dict[tuple[str, str | None], list[float]] = defaultdict(
        lambda: [0, 0, 0, 0, 0.0, 0.0, 0.0]
    )
    for name, place, dtype, flops, transcendentals, traffic, count, _, is_collective in rows:
        total = sums[name, place]
        total[0] += flops * count
        total[1] += transcendentals * count
        total[2] += traffic * count
        total[3] += count
        if is_collective:
            continue
        if dtype not in rates:
            known = dtype is not None and is_dtype(dtype)
            rates[dtype] = chip.flops_per_second(dtype if known and dtype else "bf16")
        compute = (flops + transcendentals) / rates[dtype]
        memory = traffic / chip.hbm_bytes_per_second
        total[4] += max(compute, memory) * count
        total[5] += compute * count
        total[6] += memory * count
    found = [
        OpCost(name, place, int(t[0]), int(t[1]), int(t[2]), t[4], t[5], t[6], int(t[3]))
        for (name, place), t in sums.items()
    ]
    return tuple(sorted(found, key=lambda row: -row.seconds))


def _collectives(
    rows: Sequence[tuple[Any, ...]], links: Links, uncounted: list[UncountedOp]
) -> list[CollectiveCost]:
    """The collectives with their times; those without one are added to ``uncounted``."""
    found = []
    for value, kind, mesh, axes, count, num_bytes, place, *rest in rows:
        sent, seconds = 0, 0.0
        if kind in OPS and mesh is not None and axes is not None:
            sent, seconds = links.cost(kind, mesh, tuple(axes), num_bytes)
        else:
            reason = (
                "the axes along which it runs are not known"
                if kind in OPS
                else "its time is not known"
            )
            uncounted.append(UncountedOp(kind, reason, count, place))
        names = () if axes is None else tuple(axis_text(links.axis(mesh, axis)) for axis in axes)
        found.append(
            CollectiveCost(kind, names, count, num_bytes, sent, seconds, value, place, *rest)
        )
    return found
