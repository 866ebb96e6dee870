"""The records of a :class:`~shardcore.costs.Cost`. All figures are those of one device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from shardcore.cached_property import cached_property
from shardcore.expected import expect

if TYPE_CHECKING:
    from shardcore._core import AxisRef
    from shardcore.why.collective import CollectiveWhy
    from shardcore.why.trial import Trial


@dataclass(frozen=True)
class Site:
    """Where collectives of one kind come from."""

    kind: str
    axes: tuple[str, ...]
    """The texts of the axes, ``"x"`` or ``"x:(1)2"``."""
    cause: str | None
    """Name of the op of the source program that required them."""
    location: str | None
    """Source location of that op."""


@dataclass(frozen=True)
class Totals:
    """Sums over some collectives."""

    count: int = 0
    """The sum of their numbers of runs."""
    bytes: int = 0
    """Sum of V, the bytes of the gathered arrays; see :class:`CollectiveCost`."""
    wire_bytes: int = 0
    """Bytes that a device sends."""
    seconds: float = 0.0
    """The sum of their times at the full bandwidth."""
    exposed_seconds: float = 0.0
    """The sum of the times in which the device waits for them and computes nothing."""


@dataclass(frozen=True)
class CollectiveCost:
    """One collective of the program. ``bytes``, ``wire_bytes`` and ``seconds`` are of one run."""

    kind: str
    """``all_gather``, ``reduce_scatter``, ``all_reduce``, ``all_to_all``, ``collective_permute`` or
    ``other``."""
    axis_refs: tuple[AxisRef, ...]
    """Mesh axes along which devices communicate; empty if they are not known."""
    count: int
    """Number of its runs in one run of the program."""
    bytes: int
    """V: the bytes of the array on a device once it is gathered along the axes."""
    wire_bytes: int
    """Bytes that a device sends, including blocks that it forwards in a gather."""
    seconds: float
    """Seconds of one run; 0 where that is not known, which ``Cost.uncounted`` lists."""
    exposed_seconds: float
    """Seconds of all runs in which the device waits for it and computes nothing, in the schedule
    of ``Cost.step_seconds``."""
    op: str | None
    """Name of its result, in the per-device program if the source program does not have it."""
    location: str | None
    """Source location of the op that it was made for."""
    cause: str | None
    """Name of the op of the source program that required it: whose partial sums are reduced, or
    whose operand or result is resharded."""
    cause_location: str | None
    """Source location of that op."""
    operand_sharding: str | None
    """Sharding of its operand, as ``sdy`` text; of a collective that no reshard made, such as one
    that exchanges halos, that of the first operand of :attr:`cause`."""
    result_sharding: str | None
    """Sharding of its result, as ``sdy`` text; else that of the first result of :attr:`cause`."""
    combined: int = 1
    """How many collectives run as one with it, itself included; its times are its share."""
    rematerializes: bool = False
    """Whether every device gathers the whole tensor, to cut it then, since XLA's partitioner knows
    no better way between the two shardings: *involuntary full rematerialization*, of which it
    warns. Only under policy ``xla``."""
    cause_op: int | None = field(default=None, repr=False, compare=False)
    """The number of the op in the program that was partitioned."""
    moved: int | None = field(default=None, repr=False, compare=False)
    """The number of the value of that program that it sends; ``None`` if it sends another one."""
    trial: Trial | None = field(default=None, repr=False, compare=False)
    """What :attr:`why` asks; ``None`` in a copy that was pickled."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> CollectiveCost:
        """Make one of all its fields by name, which are its own from then on. A program may have
        many; calling the class sets field after field, which takes several times as long.
        """
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made

    @cached_property
    def why(self) -> CollectiveWhy:
        """The annotations that disagree, and the cheapest edit that removes it.

        Raises:
            LocationError: it is a copy that was pickled (``unknown-location``).
            BusyError: a rule asks the result that it is called to compute.
        """
        from shardcore.why.collective import collective_why

        return collective_why(self)

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "trial": None}
        state.pop("why", None)
        return state

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
        for name in ("axis_refs", "cause_op", "moved", "trial"):
            del figures[name]
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
    """Exponentials, logarithms, roots, ... which XLA counts separately from ``flops``."""
    bytes: int
    """Bytes read from and written to memory, with ops fused."""
    seconds: float
    """Sum of the roofline times of the ops; 0 for collectives."""
    compute_seconds: float
    memory_seconds: float
    count: int
    """Number of runs of such ops."""
    step_seconds: float = 0.0
    """The part of ``Cost.step_seconds`` that they take, at the rates that programs achieve."""

    @property
    def bound(self) -> str:
        """``"compute"`` or ``"memory"``."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**vars(self), "bound": self.bound}


@dataclass(frozen=True)
class TimedStep:
    """A part of a step, at its place in the order in which ops run: an op that takes time or sends
    data, what it takes to start, or the copies of a value to or from the host.
    """

    name: str
    """The name of the op, ``stablehlo.add``."""
    value: str | None
    """Name of its first result, in the per-device program if the source program lacks it."""
    location: str | None
    collective: int | None
    """The place in ``Cost.collectives``; ``None`` if it is no collective."""
    count: int
    """Number of its runs."""
    seconds: float
    """Seconds of all runs that are a part of ``Cost.step_seconds``: of a collective those in which
    the device waits for it and computes nothing."""
    live_bytes: int
    """The most bytes that are live, besides the arguments, since the step before."""
    link: str | None
    """The mesh axes along which a collective communicates, if they are known."""


@dataclass(frozen=True)
class LiveValue:
    """A value that is in memory at the peak."""

    name: str
    op: str | None
    """The op that defines it; ``None`` for an argument."""
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
    """The op at which most bytes are live."""

    name: str
    """Its full name, ``stablehlo.dot_general``."""
    value: str | None
    """Name of its first result."""
    location: str | None


@dataclass(frozen=True)
class LoopTrips:
    """A loop and its number of trips."""

    op: str | None
    """Name of its first result."""
    trips: int | None
    """Number of iterations each time; ``None`` if it is not known, and counted as one."""
    entered: int
    """How many times the loop op itself runs."""
    location: str | None


@dataclass(frozen=True)
class UncountedOp:
    """Ops whose work or communication is in no figure, with the reason."""

    name: str
    """Their name, with the target for custom calls."""
    reason: str
    """What is missing, and why."""
    missing: str
    """``"compute"`` or ``"communication"``."""
    count: int
    """Number of runs of such ops."""
    bytes: int
    """Bytes of their operands and results on one device, over all runs."""
    location: str | None
    """Source location of the first of them."""


@dataclass(frozen=True)
class NotInStep:
    """Counts of ops and collectives that the time of a step does not include."""

    compute_ops: int = 0
    """Number of runs of ops whose work is not known."""
    compute_bytes: int = 0
    """Bytes of their operands and results on one device, over all runs."""
    communication_ops: int = 0
    """Number of runs of ops whose communication is not timed."""
    communication_bytes: int = 0
    """Bytes of their operands and results on one device, over all runs; at most these are sent."""

    @staticmethod
    def of(rows: Iterable[UncountedOp]) -> NotInStep:
        """Return the sums over ``rows``."""
        sums = {"compute": [0, 0], "communication": [0, 0]}
        for row in rows:
            expect(row, UncountedOp)
            sums[row.missing][0] += row.count
            sums[row.missing][1] += row.bytes
        return NotInStep(*sums["compute"], *sums["communication"])
