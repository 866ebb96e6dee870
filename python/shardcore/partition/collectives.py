"""The collectives of a per-device program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore._core import Module, collective_traffic
from shardcore.costs.records import CollectiveCost

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.partition.partitioned import Partitioned


def collectives(local: Partitioned) -> tuple[CollectiveCost, ...]:
    """Return the collectives of ``local``, in program order, without times."""
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.figures import traffic_kinds
    from shardcore.costs.links import OPS
    from shardcore.costs.rows import Rows
    from shardcore.why.trial import Trial

    kinds = [
        (row, wire_bytes(OPS[row.kind], row.bytes, row.devices) if row.kind in OPS else 0)
        for row in traffic_kinds(local.figures())
    ]
    return Rows(local.figures(), (), kinds, Trial(local, _default_cost)).collectives


def _default_cost(local: Partitioned) -> Cost:
    from shardcore.calculus.collective_time import TimeOptions
    from shardcore.costs.build import build

    return build(local, "tpu-v5p", options=TimeOptions())


def sent_bytes(module: Module) -> int:
    """Return the bytes that a device sends in one run of ``module``, over all its collectives."""
    from shardcore.calculus.collective_time import wire_bytes
    from shardcore.costs.links import OPS

    rows = collective_traffic(module)
    return sum(
        wire_bytes(OPS[kind], num_bytes, devices) * count
        for kind, devices, num_bytes, count in rows
        if kind in OPS
    )
