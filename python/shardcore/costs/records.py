"""What a :class:`~shardcore.costs.Cost` is made of. Bytes, seconds and counts are of one device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardcore._core import AxisRef
    from shardcore.costs.figures import CollectiveFigures


@dataclass(frozen=True)
class Totals:
    """Sums over some collectives."""

    count: int = 0
    """How often they run, in all."""
    bytes: int = 0
    """V, of the arrays after gathering, in one group of devices; see :class:`CollectiveCost`."""
    wire_bytes: int = 0
    """What a device sends."""
    seconds: float = 0.0
    """How long they take one after the other."""

    def plus(self, collective: CollectiveCost) -> Totals:
        """Return the sums with ``collective`` added."""
        return Totals(
            self.count + collective.count,
            self.bytes + collective.total_bytes,
            self.wire_bytes + collective.total_wire_bytes,
            self.seconds + collective.total_seconds,
        )


@dataclass(frozen=True)
class CollectiveCost:
    """One collective of the program. ``bytes``, ``wire_bytes`` and ``seconds`` are of one run."""

    kind: str
    """``all_gather``, ``reduce_scatter``, ``all_reduce``, ``all_to_all``, ``collective_permute``,
    ``all_slice`` (which is free), ``reshard`` (a move from one mesh to another, timed as a permute
    along all axes of the mesh that it goes to) or ``other``."""
    axis_refs: tuple[AxisRef, ...]
    """Mesh axes along which devices communicate; empty if they are not known."""
    count: int
    """How often it runs in one run of the program."""
    bytes: int
    """V: of the array that a device has once it is gathered along the axes."""
    wire_bytes: int
    """What a device sends of its own, or passes on in a gather."""
    seconds: float
    """How long one run takes; 0 where that is not known, which ``Cost.uncounted`` lists."""
    op: str | None
    """Name of the value that it makes."""
    location: str | None
    """Where the value that is moved comes from in the source."""
    cause: str | None
    """Name of the op that required it: whose terms are summed, or that uses the result."""
    cause_location: str | None
    """Where that op comes from in the source."""
    operand_sharding: str | None
    """Sharding of what goes in, as ``sdy`` text."""
    result_sharding: str | None
    """Sharding of what comes out."""

    @staticmethod
    def of(figures: CollectiveFigures, wire_bytes: int, seconds: float) -> CollectiveCost:
        """Return ``figures`` with what a device sends in one run and how long that takes."""
        return CollectiveCost(
            kind=figures.kind,
            axis_refs=tuple(figures.axes or ()),
            count=figures.count,
            bytes=figures.bytes,
            wire_bytes=wire_bytes,
            seconds=seconds,
            op=figures.value,
            location=figures.location,
            cause=figures.cause,
            cause_location=figures.cause_location,
            operand_sharding=figures.operand_sharding,
            result_sharding=figures.result_sharding,
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The texts of the axes, ``"x"`` or ``"x:(1)2"``."""
        # The calculus is not imported with the package.
        from shardcore.calculus.axes import axis_text

        return tuple(map(axis_text, self.axis_refs))

    @property
    def total_bytes(self) -> int:
        """``bytes`` of all runs."""
        return self.bytes * self.count

    @property
    def total_wire_bytes(self) -> int:
        """``wire_bytes`` of all runs."""
        return self.wire_bytes * self.count

    @property
    def total_seconds(self) -> float:
        """``seconds`` of all runs."""
        return self.seconds * self.count

    def record(self) -> dict[str, Any]:
        """Return it as plain data: ``bytes``, ``wire_bytes`` and ``seconds`` of one run, and of all
        runs as ``total_bytes``, ``total_wire_bytes`` and ``total_seconds``.
        """
        figures = {row.name: getattr(self, row.name) for row in fields(self)}
        del figures["axis_refs"]
        return {
            "kind": self.kind,
            "axes": list(self.axes),
            **figures,
            "total_bytes": self.total_bytes,
            "total_wire_bytes": self.total_wire_bytes,
            "total_seconds": self.total_seconds,
        }


@dataclass(frozen=True)
class OpCost:
    """Ops of one name at one place of the source; all figures are of all their runs."""

    name: str
    location: str | None
    flops: int
    """As XLA counts them: a multiply-add is two, an elementwise op one an element."""
    transcendentals: int
    """Exponentials, logarithms, roots, ... which XLA counts apart."""
    bytes: int
    """Read from and written to memory, fused with the ops around it."""
    seconds: float
    """The longer of computing and moving, added up over the ops; 0 for collectives."""
    compute_seconds: float
    memory_seconds: float
    count: int
    """How often such ops run."""

    @property
    def bound(self) -> str:
        """``"compute"`` or ``"memory"``."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**vars(self), "bound": self.bound}


@dataclass(frozen=True)
class LiveValue:
    """A value that is in memory at the peak."""

    name: str
    op: str | None
    """The op that makes it; ``None`` for an argument."""
    bytes: int
    shape: tuple[int | None, ...]
    """The global shape."""
    local_shape: tuple[int, ...] | None
    dtype: str | None
    sharding: str | None
    location: str | None

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class PeakOp:
    """The op at which most memory is in use."""

    name: str
    """Its full name, ``stablehlo.dot_general``."""
    value: str | None
    """Name of its first result."""
    location: str | None


@dataclass(frozen=True)
class LoopTrips:
    """A loop."""

    op: str | None
    """Name of its first result."""
    trips: int | None
    """How often it runs its body; ``None`` where the program does not say: counted as one."""
    entered: int
    """How often the program gets to it."""
    location: str | None


@dataclass(frozen=True)
class UncountedOp:
    """Ops with work or communication that is in no figure."""

    name: str
    """Their name, with the target for custom calls."""
    reason: str
    """What is missing, and why."""
    missing: str
    """``"compute"`` or ``"communication"``."""
    count: int
    """How often such ops run."""
    bytes: int
    """What one device holds of their operands and results, over all runs."""
    location: str | None
    """Where the first one comes from."""


@dataclass(frozen=True)
class NotInStep:
    """How much of a program the time of its step does not include."""

    compute_ops: int = 0
    """How often ops run whose work is not known."""
    compute_bytes: int = 0
    """What one device holds of their operands and results, over all runs."""
    communication_ops: int = 0
    """How often ops run that exchange data in a way that is not timed."""
    communication_bytes: int = 0
    """What one device holds of their operands and results, over all runs; it sends a part of it."""

    @staticmethod
    def of(rows: Iterable[UncountedOp]) -> NotInStep:
        """Return the sums over ``rows``."""
        sums = {"compute": [0, 0], "communication": [0, 0]}
        for row in rows:
            sums[row.missing][0] += row.count
            sums[row.missing][1] += row.bytes
        return NotInStep(*sums["compute"], *sums["communication"])
