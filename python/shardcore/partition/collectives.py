"""The collectives of a program of one device."""

from __future__ import annotations

from shardcore._core import Module, collective_traffic
from shardcore.costs.records import CollectiveCost


def collectives(module: Module) -> tuple[CollectiveCost, ...]:
    """Return the collectives of ``module``, in program order, without times."""
    # The calculus is not imported with the package.
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.figures import ProgramFigures
    from shardcore.costs.links import OPS

    found = []
    for row in ProgramFigures.of(module).collectives:
        sent = wire_bytes(OPS[row.kind], row.bytes, row.devices) if row.kind in OPS else 0
        found.append(CollectiveCost.of(row, sent, 0.0))
    return tuple(found)


def sent_bytes(module: Module) -> int:
    """Return the bytes that a device sends in one run of ``module``: of all its collectives."""
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.links import OPS

    rows = collective_traffic(module)
    return sum(
        wire_bytes(OPS[kind], num_bytes, devices) * count
        for kind, devices, num_bytes, count in rows
        if kind in OPS
    )
