"""The collectives of a program of one device."""

from __future__ import annotations

from shardcore._core import Figures, Module, Origin, collective_traffic
from shardcore.costs.records import CollectiveCost


def collectives(figures: Figures) -> tuple[CollectiveCost, ...]:
    """Return the collectives of ``figures``, in program order, without times."""
    # The calculus is not imported with the package.
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.figures import traffic_kinds
    from shardcore.costs.links import OPS
    from shardcore.costs.rows import Rows

    kinds = [
        (row, wire_bytes(OPS[row.kind], row.bytes, row.devices) if row.kind in OPS else 0, 0.0)
        for row in traffic_kinds(figures)
    ]
    return Rows(figures, (), kinds).collectives


def sent_bytes(module: Module, origin: Origin) -> int:
    """Return the bytes that a device sends in one run of ``module``: of all its collectives."""
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.links import OPS

    rows = collective_traffic(module, origin)
    return sum(
        wire_bytes(OPS[kind], num_bytes, devices) * count
        for kind, devices, num_bytes, count in rows
        if kind in OPS
    )
