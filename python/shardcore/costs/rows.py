"""The rows of a cost: ops, collectives and live values, made when they are first read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.cached_property import cached_property
from shardcore.costs.batch import Batch, batch_of
from shardcore.costs.host import DIRECTIONS
from shardcore.costs.kernels import AsyncCopies, Kernel, kernels_of
from shardcore.costs.memory import HOLES, Lifetime, LiveRanges, MemoryPoint, timeline_of
from shardcore.costs.rates import MATRIX_UNITS
from shardcore.costs.records import CollectiveCost, LiveValue, OpCost, PeakOp, TimedStep
from shardcore.costs.scopes import ScopeCost, scope_of
from shardcore.costs.usage import ProductFlops

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.costs.combine import Runs
    from shardcore.costs.figures import TrafficKind, WorkKind
    from shardcore.costs.rates import Rates, Times
    from shardcore.costs.schedule import Schedule
    from shardcore.why.trial import Trial


class Rows:
    """The rows of a cost; equal if all rows are equal.

    ``work`` has the times of one run of each kind of op, ``traffic`` the bytes that a device sends
    in one run of each kind of collective. ``trial`` is what collectives ask why they are there;
    ``schedule`` has their exposed seconds, ``runs`` the time of one run, row by row.
    ``compiler`` is the one whose kernels are in memory.
    """

    def __init__(
        self,
        figures: Figures,
        work: Sequence[tuple[WorkKind, Times]],
        traffic: Sequence[tuple[TrafficKind, int]],
        trial: Trial | None = None,
        schedule: Schedule | None = None,
        runs: Runs | None = None,
        slowest_link_bytes: int = 0,
        compiler: str = "none",
        rates: Rates | None = None,
    ) -> None:
        self._figures = figures
        self._compiler = compiler
        self._rates = rates
        self._work = work
        self._traffic = traffic
        self._runs = runs
        self._trial = trial
        self._schedule = schedule
        self.slowest_link_bytes = slowest_link_bytes
        """The bytes that a device sends over the slowest kind of link of the mesh: the network, if
        the mesh spans several slices or nodes."""

    @property
    def trial(self) -> Trial | None:
        """What its collectives ask why they are there; ``None`` of a copy that was pickled."""
        found: Trial | None = vars(self).get("_trial")
        return found

    @cached_property
    def batch(self) -> Batch | None:
        """What the arguments of the program of all devices tell of its tokens or examples."""
        return None if self._trial is None else batch_of(self._trial.local.result.arguments())

    @property
    def sent_bytes(self) -> int:
        """The bytes that a device sends, over all runs of all collectives."""
        return sum(kind.count * sent for kind, sent in self._traffic)

    @property
    def num_collectives(self) -> int:
        """How many collectives a step executes."""
        return sum(kind.count for kind, _ in self._traffic)

    @cached_property
    def collectives(self) -> tuple[CollectiveCost, ...]:
        """The collectives, in program order."""
        known, schedule = self._runs, self._schedule
        axes = [tuple(kind.axes or ()) for kind, _ in self._traffic]
        found = []
        for place, fields in enumerate(self._figures.collectives()):
            number = fields.pop("kind")
            kind, sent = self._traffic[number]
            fields["kind"] = kind.kind
            fields["axis_refs"] = axes[number]
            fields["bytes"] = kind.bytes
            fields["wire_bytes"] = sent
            at = 0 if known is None else known.of_rows[place]
            fields["seconds"] = 0.0 if known is None else known.runs[at].seconds
            fields["combined"] = 1 if known is None else known.sizes[at]
            fields["exposed_seconds"] = 0.0 if schedule is None else schedule.exposed[place]
            fields["trial"] = self._trial
            found.append(CollectiveCost.of(fields))
        return tuple(found)

    @property
    def required_stacks(self) -> list[str]:
        """For each collective, the name stack of the op that needs it."""
        return self._figures.name_stacks()[1]

    @cached_property
    def ops(self) -> tuple[OpCost, ...]:
        """The ops by name and location, the longest first."""
        sums: dict[tuple[str, str | None], _OpSums] = defaultdict(_OpSums)
        slowdown = self._slowdown
        for row in self._figures.ops():
            kind, times = self._work[row["kind"]]
            sums[row["name"], row["location"]].add(kind, row["count"], times, slowdown)
        found = [OpCost(name, place, **vars(total)) for (name, place), total in sums.items()]
        return tuple(sorted(found, key=lambda row: -row.seconds))

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, block by block."""
        if self._rates is None:
            return ()
        seconds = {row.op: row.seconds for row in self.collectives}
        return kernels_of(self._figures, self._compiler, self._rates, seconds)

    @cached_property
    def async_copies(self) -> AsyncCopies:
        """The copies between the memories of the chip."""
        return AsyncCopies(*self._figures.async_copies(self._compiler))

    @cached_property
    def peak_bytes(self) -> int:
        """The peak of live bytes, including arguments and holes between buffers."""
        return self._figures.peak_bytes(self._compiler, False)

    @cached_property
    def host_memory_peak_bytes(self) -> int:
        """The peak of live bytes in host memory."""
        return self._figures.peak_bytes(self._compiler, True)

    @cached_property
    def host_live_at_peak(self) -> tuple[LiveValue, ...]:
        """The values that are live at that peak."""
        live = self._figures.live_at_peak(self._compiler, True)
        return tuple(LiveValue(**row) for row in live)

    @cached_property
    def peak_op(self) -> PeakOp | None:
        """The op at the peak of device memory."""
        at = self._figures.peak_op(self._compiler)
        return None if at is None else PeakOp(**at)

    @cached_property
    def live_at_peak(self) -> tuple[LiveValue, ...]:
        """The values that are live at the peak: arguments first, then others in program order."""
        live = self._figures.live_at_peak(self._compiler, False)
        return (*(LiveValue(**row) for row in live), *self._holes)

    @cached_property
    def _holes(self) -> tuple[LiveValue, ...]:
        """What is allocated between buffers, which do not move."""
        size = self._figures.hole_bytes(self._compiler)
        return (LiveValue(HOLES, HOLES, size, (), (), None, None, None),) if size else ()

    @cached_property
    def lifetimes(self) -> tuple[tuple[MemoryPoint, ...], tuple[Lifetime, ...]]:
        """The ops in scheduled order, and the lifetimes of the values."""
        return timeline_of(*self._figures.lifetimes(self._compiler), self._holes)

    @property
    def live_ranges(self) -> LiveRanges:
        """The ops in scheduled order and the lifetimes of the values, by names alone; not of a copy
        that was pickled."""
        ops, values = self._figures.live_ranges(self._compiler)
        return LiveRanges(tuple(ops), tuple(values))

    @cached_property
    def xla_cpu_peak_bytes(self) -> int:
        """The bytes that XLA allocates if the program runs on CPUs."""
        return self._figures.host_bytes()

    @cached_property
    def least_peak_bytes(self) -> int:
        """The peak of live bytes in the order of ops that needs least."""
        return self._figures.least_peak(self._compiler)

    @cached_property
    def flops_counting_loops_once(self) -> int:
        """The FLOPs that XLA's cost analysis counts on CPUs."""
        runs, conversions = self._figures.once()
        kinds = (kind for kind, _ in self._work)
        each = (
            (kind.flops + kind.host_flops) * count for kind, count in zip(kinds, runs, strict=True)
        )
        return conversions + sum(each)

    @cached_property
    def steps(self) -> tuple[TimedStep, ...]:
        """The parts of a step: what it takes to start; the ops that take time or send data, in the
        order in which they run; and copies to and from the host. Their seconds add up to the step.
        """
        found, schedule = [], self._schedule
        for row in self._figures.steps(self._compiler):
            work, traffic = row.pop("work"), row.pop("traffic")
            seconds, link = 0.0, None
            if work is not None:
                seconds = self._work[work][1].achieved * row["count"] * self._slowdown
            if traffic is not None:
                kind, _ = self._traffic[traffic]
                seconds += 0.0 if schedule is None else schedule.exposed[row["collective"]]
                link = ", ".join(dict.fromkeys(axis.name for axis in kind.axes or ())) or None
            found.append(TimedStep(seconds=seconds, link=link, **row))
        if schedule is None:
            return tuple(found)
        copies = zip(self._figures.host_copies(), schedule.host_exposed, strict=True)
        for row, seconds in copies:
            name = DIRECTIONS[row["to_host"]]
            found.append(_outside(name, row["value"], row["location"], row["count"], seconds))
        start = [_outside("start", None, None, 1, schedule.start)] if schedule.start else []
        return (*start, *found)

    @property
    def _slowdown(self) -> float:
        """How many times as long ops take as at the rates that programs achieve."""
        return 1.0 if self._schedule is None else self._schedule.slowdown

    @cached_property
    def scopes(self) -> tuple[ScopeCost, ...]:
        """The costs by scope and direction, without merging scopes."""
        sums: dict[str, _ScopeSums] = defaultdict(_ScopeSums)
        slowdown = self._slowdown
        stacks, required = self._figures.name_stacks()
        for stack, row in zip(stacks, self._figures.ops(), strict=True):
            kind, times = self._work[row["kind"]]
            count, found = row["count"], sums[stack]
            found.flops += kind.flops * count
            found.bytes += kind.bytes * count
            found.compute_seconds += times.peak * count
            found.step_seconds += times.achieved * count * slowdown
        for stack, collective in zip(required, self.collectives, strict=True):
            found = sums[stack]
            found.collectives += collective.count
            found.wire_bytes += collective.total_wire_bytes
            found.comm_seconds += collective.total_seconds
            found.step_seconds += collective.exposed_seconds
        by_scope: dict[tuple[str, str], ScopeCost] = {}
        for stack, found in sums.items():
            key = scope_of(stack)
            total = ScopeCost(*key, 1, **vars(found))
            by_scope[key] = by_scope[key].plus(total) if key in by_scope else total
        return tuple(by_scope.values())

    @cached_property
    def product_flops(self) -> ProductFlops:
        """FLOPs of products and kernels, and of other ops."""
        first = again = shared = other = 0
        stacks, _ = self._figures.name_stacks()
        # Where nothing is sharded, all devices of the mesh run what one would.
        meshes = self._trial.local.result.module.meshes.values() if self._trial else ()
        wholes = self._figures.whole_ops(max([mesh.num_devices for mesh in meshes], default=1))
        for stack, row, whole in zip(stacks, self._figures.ops(), wholes, strict=True):
            kind, _ = self._work[row["kind"]]
            flops, count = kind.flops * row["count"], row["count"]
            if kind.unit not in (*MATRIX_UNITS, "kernel"):
                other += flops
                continue
            if scope_of(stack)[1] == "recomputed":
                again += flops
                continue
            needed = flops if whole is None else min(flops, whole[0] * count // whole[1])
            first += needed
            shared += flops - needed
        return ProductFlops(first, again, shared, other)

    def _key(self) -> tuple[Any, ...]:
        peak = self.peak_bytes, self.peak_op, self.live_at_peak, self.least_peak_bytes
        return self.collectives, self.ops, *peak

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and (self is other or self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self.steps, self.scopes, self.product_flops
        hosts = self.xla_cpu_peak_bytes, self.flops_counting_loops_once
        on_host = self.host_memory_peak_bytes, self.host_live_at_peak
        rest = self.kernels, self.async_copies, self.batch
        return _rows, (*self._key(), *kept, self.lifetimes, *hosts, *on_host, *rest)


def _outside(
    name: str, value: str | None, location: str | None, count: int, seconds: float
) -> TimedStep:
    """A part of a step that is no op."""
    return TimedStep(name, value, location, None, count, seconds, 0, None)


def _rows(
    collectives: tuple[CollectiveCost, ...],
    ops: tuple[OpCost, ...],
    peak_bytes: int,
    peak_op: PeakOp | None,
    live_at_peak: tuple[LiveValue, ...],
    least_peak_bytes: int,
    steps: tuple[TimedStep, ...],
    scopes: tuple[ScopeCost, ...],
    product_flops: ProductFlops,
    lifetimes: tuple[tuple[MemoryPoint, ...], tuple[Lifetime, ...]],
    xla_cpu_peak_bytes: int,
    flops_counting_loops_once: int,
    host_memory_peak_bytes: int,
    host_live_at_peak: tuple[LiveValue, ...],
    kernels: tuple[Kernel, ...],
    async_copies: AsyncCopies,
    batch: Batch | None,
) -> Rows:
    """Rows made from the given data."""
    rows = Rows.__new__(Rows)
    vars(rows).update(collectives=collectives, ops=ops, live_at_peak=live_at_peak)
    vars(rows).update(peak_bytes=peak_bytes, peak_op=peak_op)
    vars(rows).update(steps=steps, scopes=scopes, product_flops=product_flops)
    vars(rows).update(lifetimes=lifetimes, least_peak_bytes=least_peak_bytes)
    vars(rows).update(xla_cpu_peak_bytes=xla_cpu_peak_bytes)
    vars(rows).update(flops_counting_loops_once=flops_counting_loops_once)
    vars(rows).update(host_memory_peak_bytes=host_memory_peak_bytes)
    vars(rows).update(host_live_at_peak=host_live_at_peak, kernels=kernels)
    vars(rows).update(async_copies=async_copies, batch=batch)
    return rows


@dataclass
class _OpSums:
    """Sums over all runs of the ops with one name and location."""

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    count: int = 0
    seconds: float = 0.0
    compute_seconds: float = 0.0
    memory_seconds: float = 0.0

    step_seconds: float = 0.0

    def add(self, kind: WorkKind, count: int, times: Times, slowdown: float) -> None:
        """Add ``count`` runs of ops of ``kind``, one of which takes these times, in a step
        ``slowdown`` times as long as at the rates that programs achieve.
        """
        self.flops += kind.flops * count
        self.transcendentals += kind.transcendentals * count
        self.bytes += kind.bytes * count
        self.count += count
        self.seconds += times.peak * count
        self.compute_seconds += times.compute * count
        self.memory_seconds += times.memory * count
        self.step_seconds += times.achieved * count * slowdown


@dataclass
class _ScopeSums:
    """Sums over the ops and collectives with one name stack; see :class:`ScopeCost`."""

    flops: int = 0
    bytes: int = 0
    compute_seconds: float = 0.0
    collectives: int = 0
    wire_bytes: int = 0
    comm_seconds: float = 0.0
    step_seconds: float = 0.0
