"""What no plan can do better: the least time, memory and bytes sent of a step on a mesh.

**Time.** Each op is computed by someone: the work of the program on one device, op by op the longer
of its FLOPs and its memory traffic, divided by the number of devices. Besides, products cannot all
be divided without communication; :mod:`~.relaxation` counts what they compute twice or send.

**Bytes.** What the relaxation counts of them, with computing for nothing.

**Memory.** Arguments are held from the start: the bytes of each, over the most devices that can
share it, those axes of the mesh whose product divides its dims.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from shardcore._core import Mesh, Module, Port
from shardcore.costs import Cost
from shardcore.plan.products import products
from shardcore.plan.relaxation import BYTES, Prices, least_extra

_SHARE = 0.9
"""The part of a device's share of what one device has at its peak that plans take at least: ops are
fused and ordered a little differently once they are divided."""
_MOST_AXES = 4
"""More axes than that are taken to divide every dim."""


def least(
    module: Module,
    alone: Cost,
    meshes: Iterable[Mesh],
    limit: float,
    seconds: Prices | None,
    time: float,
) -> float:
    """Return seconds, or bytes sent, that no plan over one of ``meshes`` is below.

    Args:
        module: the program as XLA propagates it.
        alone: the cost of the program without annotations.
        meshes: the meshes.
        limit: bytes that a device has.
        seconds: what counts seconds; without it bytes are counted.
        time: the seconds of the plan.
    """
    found = products(module, [1 if loop.trips is None else loop.trips for loop in alone.loops])
    ports = module.arguments()
    compute = alone.compute_seconds if seconds else 0.0
    counts = sorted({mesh.num_devices for mesh in meshes})
    prices, each = seconds or BYTES, time / len(counts)
    return min(
        compute / devices + least_extra(found, ports, devices, limit, prices, each)
        for devices in counts
    )


def least_bytes(ports: Sequence[Port], meshes: Iterable[Mesh]) -> int:
    """Return bytes of arguments that no plan over one of ``meshes`` is below."""
    return min(
        sum(_bytes(port, shards) for port, shards in zip(ports, _shards(ports, mesh), strict=True))
        for mesh in meshes
    )


def likely_bytes(alone: Cost, ports: Sequence[Port], meshes: Sequence[Mesh]) -> float:
    """Return bytes that it is not likely that a plan over one of ``meshes`` is below: its
    arguments, and its share of what else ``alone``, the program on one device, has at its peak."""
    inside = alone.peak_bytes - alone.argument_bytes
    devices = max(mesh.num_devices for mesh in meshes)
    return least_bytes(ports, meshes) + inside / devices * _SHARE


def _bytes(port: Port, shards: int) -> int:
    return -(-(port.bytes or 0) // shards)


def _shards(ports: Sequence[Port], mesh: Mesh) -> Iterable[int]:
    known: dict[tuple[int, ...], int] = {}
    for port in ports:
        shape = tuple(size or 1 for size in port.shape or ())
        if shape not in known:
            known[shape] = most_shards(shape, mesh)
        yield known[shape]


def most_shards(shape: Sequence[int], mesh: Mesh) -> int:
    """Return how many devices can share a tensor at most, its dims divided evenly."""
    sizes = [axis.size for axis in mesh.axes if axis.size > 1]
    if len(sizes) > _MOST_AXES:
        return mesh.num_devices
    most = 1
    for places in itertools.product((None, *range(len(shape))), repeat=len(sizes)):
        parts = [1] * len(shape)
        for place, size in zip(places, sizes, strict=True):
            if place is not None:
                parts[place] *= size
        if all(size % part == 0 for size, part in zip(shape, parts, strict=True)):
            count = 1
            for part in parts:
                count *= part
            most = max(most, count)
    return most
