"""The collectives of a program of one device."""

from __future__ import annotations

from shardcore._core import Module
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
