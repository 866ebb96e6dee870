"""Counts of a per-device program that do not depend on hardware, and those of its collectives.

``rust/src/cost`` computes them; rows become Python objects when they are first read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shardcore._core import AxisRef, Figures, Mesh


class KernelKind(NamedTuple):
    """Kernels that take equally long. All figures are for one run of one kernel."""

    dtype: str | None
    """The element type of the computation, as MLIR writes it."""
    unit: str
    """The unit that computes them; see :class:`WorkKind`."""
    sizes: tuple[int, int, int, int] | None
    """As :attr:`WorkKind.sizes`."""
    flops: int
    transcendentals: int
    read_bytes: int
    cached_bytes: int
    """How many of the bytes read come from the cache."""
    written_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes


class WorkKind(NamedTuple):
    """Ops that take equally long. All figures are for one run of one op."""

    dtype: str | None
    """The element type of the computation, as MLIR writes it."""
    unit: str
    """What computes them: ``product``, ``convolution``, ``kernel``, ``vector``, ``sort``,
    ``transform``, ``columns`` for factorizations, ``windows`` for reductions of windows, ``rows``
    for kernels that hold rows between a reduction and what reads its result, or ``scattered`` for
    ops that read or write out of order."""
    sizes: tuple[int, int, int, int] | None
    """For a product: batch, rows, columns, and the contracting size. For a sort, a transform
    or columns: the number of lines, their length, the arrays or dims, and 1."""
    flops: int
    transcendentals: int
    host_flops: int
    """FLOPs that XLA's CPU compiler computes in addition."""
    bytes: int
    """Bytes read from and written to memory, after fusion."""
    is_collective: bool
    kernels: tuple[KernelKind, ...] | None
    """The kernels whose root is such an op; ``None`` if the compiler's kernels are unknown and the
    op counts as a kernel of its own."""

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> WorkKind:
        """Return the kind with the fields of ``row``, one of :meth:`Figures.work`."""
        *fields, kernels = row
        known = None if kernels is None else tuple(map(KernelKind._make, kernels))
        return cls._make((*fields, known))


class TrafficKind(NamedTuple):
    """Collectives that take equally long; see :class:`~shardcore.costs.CollectiveCost`."""

    kind: str
    mesh: Mesh | None
    """``None`` if it is unknown."""
    axes: list[AxisRef] | None
    """``None`` if they are unknown."""
    devices: int
    """The size of the groups of devices that communicate; 1 if it is unknown."""
    bytes: int
    count: int  # type: ignore[assignment]  # Not that of tuples.
    """Number of runs of such collectives."""


def traffic_kinds(figures: Figures) -> list[TrafficKind]:
    """Return the collectives of ``figures``, grouped by equal time."""
    return list(map(TrafficKind._make, figures.traffic()))
