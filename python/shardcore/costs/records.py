"""The records of a :class:`~shardcore.costs.Cost`. All figures are for one device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, fields
from operator import add
from typing import TYPE_CHECKING, Any

from shardcore.cached_property import cached_property
from shardcore.expected import expect
from shardcore.labels import REPLICATED, sharding_text

if TYPE_CHECKING:
    from shardcore._core import AxisRef
    from shardcore.why.collective import CollectiveWhy
    from shardcore.why.trial import Trial


@dataclass(frozen=True)
class Site:
    """The origin of collectives of one kind."""

    kind: str
    axes: tuple[str, ...]
    """The axes as text, ``"x"`` or ``"x:(1)2"``."""
    cause: str | None
    """The name of the op of the global program that needs them."""
    location: str | None
    """The source location of that op."""


@dataclass(frozen=True)
class Totals:
    """Sums over collectives."""

    count: int = 0
    """Number of runs."""
    bytes: int = 0
    """Sum of V, the bytes of the gathered arrays; see :class:`CollectiveCost`."""
    wire_bytes: int = 0
    """Bytes that a device sends."""
    seconds: float = 0.0
    """Seconds at the full bandwidth."""
    exposed_seconds: float = 0.0
    """Seconds in which the device idles, waiting for them."""

    def plus(self, other: Totals) -> Totals:
        """Return the sums of both."""
        return Totals(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class CollectiveCost:
    """One collective of the program. ``bytes``, ``wire_bytes`` and ``seconds`` are for one run."""

    kind: str
    """``all_gather``, ``reduce_scatter``, ``all_reduce``, ``all_to_all``, ``collective_permute`` or
    ``other``."""
    axis_refs: tuple[AxisRef, ...]
    """The mesh axes along which devices communicate; empty if they are unknown."""
    count: int
    """The number of runs in a step."""
    bytes: int
    """V: the bytes of the array on a device when it is gathered along the axes."""
    wire_bytes: int
    """Bytes that a device sends, including blocks that it forwards in a ring."""
    seconds: float
    """Seconds of one run; 0 if unknown, in which case ``Cost.uncounted`` lists it."""
    exposed_seconds: float
    """Seconds, over all runs, in which the device idles waiting for it, in the schedule of
    ``Cost.step_seconds``."""
    op: str | None
    """The name of its result; that in the per-device program if the global program has none."""
    location: str | None
    """The source location of the op that it was inserted for."""
    cause: str | None
    """The name of the op of the global program that needs it: the op whose partial sums it reduces,
    or whose operand or result it reshards."""
    cause_location: str | None
    """Source location of that op."""
    operand_sharding: str | None
    """The sharding of its operand, as ``sdy`` text; for a collective that is no reshard, such as a
    halo exchange, that of the first operand of :attr:`cause`."""
    result_sharding: str | None
    """The sharding of its result, as ``sdy`` text; else that of the first result of
    :attr:`cause`."""
    combined: int = 1
    """How many collectives are combined with it, itself included; its times are its share."""
    rematerializes: bool = False
    """Whether every device gathers the whole tensor and then slices it, because XLA's partitioner
    has no better way between the two shardings: XLA warns of this *involuntary full
    rematerialization*. Only under policy ``xla``."""
    cause_op: int | None = field(default=None, repr=False, compare=False)
    """The number of the causing op in the global program."""
    moved: int | None = field(default=None, repr=False, compare=False)
    """The number of the global value that it sends; ``None`` if it sends another value."""
    trial: Trial | None = field(default=None, repr=False, compare=False)
    """Data for :attr:`why`; ``None`` in a pickled copy."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> CollectiveCost:
        """Make a collective from all its fields by name; the dict becomes its own. A program may
        have many, and the dataclass constructor, which sets field after field, is several times
        slower.
        """
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made

    @cached_property
    def why(self) -> CollectiveWhy:
        """The annotations that conflict, and the cheapest edit that removes the collective.

        Raises:
            LocationError: it is a pickled copy (``unknown-location``).
            BusyError: a rule reads the result that is being computed.
        """
        from shardcore.why.collective import collective_why

        return collective_why(self)

    @property
    def sides(self) -> tuple[str, str]:
        """The shardings of operand and result as tables show them, without meshes; empty if there
        is no cause that tells them."""
        whole = "" if self.cause is None else REPLICATED
        operand, result = self.operand_sharding, self.result_sharding
        return sharding_text(operand) or whole, sharding_text(result) or whole

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "trial": None}
        state.pop("why", None)
        return state

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes as text, ``"x"`` or ``"x:(1)2"``."""
        # The calculus is imported here, as the package does not import it.
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
        """Return it as plain data: ``bytes``, ``wire_bytes`` and ``seconds`` are for one run,
        ``total_bytes``, ``total_wire_bytes`` and ``total_seconds`` for all.
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
    """Ops of one name at one source location; all figures are over all their runs."""

    name: str
    location: str | None
    flops: int
    """FLOPs as XLA counts them: two for a multiply-add, one per element for an elementwise op."""
    transcendentals: int
    """Exponentials, logarithms, roots and so on, which XLA counts separately from ``flops``."""
    bytes: int
    """Bytes read from and written to memory, after fusion."""
    seconds: float
    """The sum of the ops' roofline times; 0 for collectives."""
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
    """The name of its first result; that in the per-device program if the global program has
    none."""
    location: str | None
    collective: int | None
    """Its index in ``Cost.collectives``; ``None`` if it is no collective."""
    count: int
    """The number of runs."""
    seconds: float
    """Seconds of all runs that are a part of ``Cost.step_seconds``: of a collective those in which
    the device waits for it and computes nothing."""
    live_bytes: int
    """The most live bytes, without arguments, since the previous step."""
    link: str | None
    """The mesh axes along which a collective communicates, if known."""


@dataclass(frozen=True)
class LiveValue:
    """A value that is live at the peak."""

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
    """The op at the peak."""

    name: str
    """The op's full name, such as ``stablehlo.dot_general``."""
    value: str | None
    """The name of its first result."""
    location: str | None


@dataclass(frozen=True)
class LoopTrips:
    """A loop and its trip count."""

    op: str | None
    """The name of its first result."""
    trips: int | None
    """Iterations per execution; ``None`` if unknown, in which case one is counted."""
    entered: int
    """How many times the loop op is executed."""
    location: str | None


@dataclass(frozen=True)
class UncountedOp:
    """Ops whose work or communication is in no figure, and the reason."""

    name: str
    """Their name; for custom calls with the target."""
    reason: str
    """What is missing, and why."""
    missing: str
    """``"compute"`` or ``"communication"``."""
    count: int
    """The number of runs."""
    bytes: int
    """Bytes of their operands and results on one device, over all runs."""
    location: str | None
    """The source location of the first of them."""


@dataclass(frozen=True)
class NotInStep:
    """Counts of the ops and collectives that the step time does not include."""

    compute_ops: int = 0
    """Number of runs of ops whose work is unknown."""
    compute_bytes: int = 0
    """Bytes of their operands and results on one device, over all runs."""
    communication_ops: int = 0
    """Number of runs of ops whose communication time is unknown."""
    communication_bytes: int = 0
    """Bytes of their operands and results on one device, over all runs; an upper bound of what is
    sent."""

    @staticmethod
    def of(rows: Iterable[UncountedOp]) -> NotInStep:
        """Return the sums over ``rows``."""
        sums = {"compute": [0, 0], "communication": [0, 0]}
        for row in rows:
            expect(row, UncountedOp)
            sums[row.missing][0] += row.count
            sums[row.missing][1] += row.bytes
        return NotInStep(*sums["compute"], *sums["communication"])
