"""The figures of a per-device program that do not depend on hardware, and those of its collectives.

``rust/src/cost`` counts them; rows become Python objects when somebody looks at them.
"""

from __future__ import annotations

from typing import NamedTuple

from shardcore._core import AxisRef, Figures, Mesh


class KernelKind(NamedTuple):
    """Kernels that take equally long. All figures are of one run of one of them."""

    dtype: str | None
    """The element type that they compute in, as MLIR writes it."""
    unit: str
    """What computes them: see :class:`WorkKind`."""
    sizes: tuple[int, int, int, int] | None
    """Of a product: batch, rows, columns, and the size that is summed over."""
    flops: int
    transcendentals: int
    read_bytes: int
    cached_bytes: int
    """Of the bytes that are read those that the cache has."""
    written_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes that they read and write."""
        return self.read_bytes + self.written_bytes


class WorkKind(NamedTuple):
    """Ops that take equally long. All figures are of one run of one of them."""

    dtype: str | None
    """The element type that they compute in, as MLIR writes it."""
    unit: str
    """What computes them: ``product``, ``convolution``, ``kernel``, ``vector``, ``sort``, or
    ``scattered`` for those that read or write out of order."""
    sizes: tuple[int, int, int, int] | None
    """Of a product: batch, rows, columns, and the size that is summed over."""
    flops: int
    transcendentals: int
    host_flops: int
    """Flops that XLA for hosts computes in addition."""
    bytes: int
    """Bytes read from and written to memory, with ops fused."""
    is_collective: bool
    kernels: tuple[KernelKind, ...] | None
    """The kernels that start with such an op; ``None`` where those of the compiler are not known,
    and it is a kernel by itself."""
    count: int  # type: ignore[assignment]  # Not that of tuples.
    """Number of runs of such ops."""


class TrafficKind(NamedTuple):
    """Collectives that take equally long; see :class:`~shardcore.costs.CollectiveCost`."""

    kind: str
    mesh: Mesh | None
    """``None`` where it is not known."""
    axes: list[AxisRef] | None
    """``None`` where they are not known."""
    devices: int
    """How many devices talk to each other; 1 where that is not known."""
    bytes: int
    count: int  # type: ignore[assignment]  # Not that of tuples.
    """Number of runs of such collectives."""


def work_kinds(figures: Figures) -> list[WorkKind]:
    """Return the ops of ``figures``, those that take equally long as one."""
    found = []
    for *row, kernels, count in figures.work():
        known = None if kernels is None else tuple(map(KernelKind._make, kernels))
        found.append(WorkKind._make((*row, known, count)))
    return found


def traffic_kinds(figures: Figures) -> list[TrafficKind]:
    """Return the collectives of ``figures``, those that take equally long as one."""
    return list(map(TrafficKind._make, figures.traffic()))
