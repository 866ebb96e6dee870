"""Lower bounds for every plan: the least time, memory and sent bytes of a step on a mesh.

**Time.** Every op has to be computed somewhere: the bound is the work of the program on one device,
for each op the longer of compute and memory time, divided by the number of devices. In addition,
not all products can be divided without communication; :mod:`~.relaxation` bounds what they compute
redundantly or send.

**Bytes.** The relaxation's bytes, if computation is free.

**Memory.** Arguments are live from the start: the bound is the bytes of each, divided by the most
devices that can share it, those of mesh axes whose product divides its dims.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from shardcore._core import Mesh, Module, Port
from shardcore.costs import Cost
from shardcore.plan.objective import Wanted
from shardcore.plan.products import products
from shardcore.plan.relaxation import BYTES, Prices, least_extra, seconds_of

_SHARE = 0.9
"""A plan's peak is at least this part of an even share of the one-device peak: once divided, ops
are fused and ordered a little differently."""
_MOST_AXES = 4
"""With more axes than this, each dim is assumed to be divisible."""


def of(wanted: Wanted, alone: Cost, ports: Sequence[Port], module: Callable[[], Module]) -> float:
    """Return a figure that no plan is below, of what is minimized.

    Args:
        wanted: what the plan is for.
        alone: the cost of the program without annotations.
        ports: its arguments.
        module: returns the program propagated as XLA does.
    """
    meshes = wanted.meshes
    if wanted.minimize == "memory":
        return least_bytes(ports, meshes)
    if wanted.minimize == "slowest-link":
        return 0.0
    if wanted.minimize == "step":
        # What products send may overlap with what is computed.
        return alone.compute_seconds / max(mesh.num_devices for mesh in meshes)
    seconds = seconds_of(wanted.chip, wanted.options) if wanted.minimize == "time" else None
    return least(module(), alone, meshes, wanted.limit, seconds, wanted.seconds)


def least(
    module: Module,
    alone: Cost,
    meshes: Iterable[Mesh],
    limit: float,
    seconds: Prices | None,
    time: float,
) -> float:
    """Return a lower bound, in seconds or sent bytes, for every plan over one of ``meshes``.

    Args:
        module: the program propagated as XLA does.
        alone: the cost of the program without annotations.
        meshes: the meshes.
        limit: bytes of memory of a device.
        seconds: the prices for a bound in seconds; without it the bound is in bytes.
        time: the time limit of planning, in seconds.
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
    """Return a lower bound for the bytes of the arguments, for every plan over one of
    ``meshes``."""
    return min(
        sum(_bytes(port, shards) for port, shards in zip(ports, _shards(ports, mesh), strict=True))
        for mesh in meshes
    )


def likely_bytes(alone: Cost, ports: Sequence[Port], meshes: Sequence[Mesh]) -> float:
    """Return bytes that a plan over one of ``meshes`` is unlikely to go below: its arguments, and
    its share of the rest of the peak of ``alone``, the program on one device."""
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
    """Return the most devices that can share a tensor, with dims divided evenly."""
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
