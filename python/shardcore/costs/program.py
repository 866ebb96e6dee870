"""The cost of a program, for one device."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from shardcore.bounded import json_text
from shardcore.costs.host import HostCost
from shardcore.costs.memory import HOLES, MemoryTimeline
from shardcore.costs.memory_analysis import MemoryAnalysis, memory_analysis
from shardcore.costs.records import (
    CollectiveCost,
    LiveValue,
    LoopTrips,
    NotInStep,
    OpCost,
    PeakOp,
    Site,
    Totals,
    UncountedOp,
)
from shardcore.costs.scopes import ScopeCost, merged
from shardcore.costs.sums import by_axis, by_site, sums_by
from shardcore.costs.usage import Usage, usage

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.calculus.measured import Confidence
    from shardcore.costs.kernels import AsyncCopies, Kernel
    from shardcore.costs.rows import Rows


@dataclass(frozen=True, repr=False)
class Cost:
    """Time, memory and communication of one device; an op in a loop counts once per trip.

    Figures are in seconds, bytes and floating-point operations. ``str()`` is a report,
    :meth:`to_json` and :meth:`record` are plain data. ``docs/cost_model.md`` defines each figure.
    """

    hardware: Hardware
    """The chip of the times."""
    policy: str
    """The policy that made the per-device program: ``xla``, ``shardy`` or ``least``."""
    compiler: str
    """The compiler whose fusion and memory are modelled: ``compiler`` of :func:`shardcore.cost`."""
    shardy: str
    """The version of Shardy that the program follows, one of ``shardcore.SHARDY_VERSIONS``."""
    flops: int
    """FLOPs as XLA counts them: two for a multiply-add, one per element for an elementwise op."""
    transcendentals: int
    """Exponentials, logarithms, roots and so on, which XLA counts separately from ``flops``."""
    hbm_bytes: int
    """Bytes read from and written to memory, after fusion."""
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    """Bytes of outputs that reuse the memory of donated arguments."""
    compute_seconds: float
    """The sum of the roofline times of all ops, at the chip's peak."""
    comm_seconds: float
    """The sum of the times of all collectives, at the full bandwidth."""
    step_seconds: float
    """Seconds of a step: a schedule of ops and collectives at achieved rates."""
    step_seconds_lower: float
    """A lower bound of the seconds of a step: the chip at its peak, all communication
    overlapped."""
    confidence: Confidence
    """The interval around :attr:`step_seconds` that contains 9 of 10 measured steps, and its
    basis."""
    exposed_seconds: float
    """The part of :attr:`step_seconds` in which the device idles, waiting for a collective."""
    rows: Rows
    """The data for :attr:`collectives`, :attr:`ops`, :attr:`peak_bytes`, :attr:`live_at_peak`,
    :attr:`least_peak_bytes` and :attr:`flops_counting_loops_once`."""
    uncounted: tuple[UncountedOp, ...]
    """Ops with work or communication that is in no figure; :attr:`not_in_step` sums them."""
    loops: tuple[LoopTrips, ...]
    host: HostCost = field(default_factory=HostCost)
    """What the program keeps, copies and computes on the host; not part of the device's figures."""
    notes: tuple[str, ...] = ()
    """Remarks on the mapping of the mesh to the chips, or on the figures."""
    tokens: int | None = None
    """The number of tokens of a step, over all devices, if it was given; :attr:`usage` has what
    arguments tell."""
    is_saturated: bool = False
    """Whether figures are only lower bounds, because a tensor has 2^96 bytes or more, or a count is
    2^128 or more."""

    @property
    def step_seconds_upper(self) -> float:
        """Seconds: the upper end of the interval in :attr:`confidence`."""
        return self.confidence.high

    @property
    def flops_counting_loops_once(self) -> int:
        """FLOPs as XLA's cost analysis counts them on CPUs: each loop body counts once, equal ops
        of a block count once, library calls count nothing, and ops that only the CPU compiler adds
        count. Computed when first read.
        """
        return self.rows.flops_counting_loops_once

    @property
    def peak_bytes(self) -> int:
        """The peak of live bytes, including arguments and :attr:`hole_bytes`, as :attr:`compiler`
        assigns memory. Computed when first read.
        """
        return self.rows.peak_bytes

    @property
    def hole_bytes(self) -> int:
        """Bytes that XLA for GPUs and TPUs allocates between buffers: those of all temporaries are
        in one allocation, in which they do not move. 0 for other compilers.
        """
        return sum(row.bytes for row in self.live_at_peak if row.op == HOLES)

    @property
    def memory(self) -> MemoryAnalysis:
        """Arguments, outputs, temporaries and peak, on the device and on its host."""
        return memory_analysis(self)

    @property
    def peak_op(self) -> PeakOp | None:
        """The op at the peak."""
        return self.rows.peak_op

    @property
    def least_peak_bytes(self) -> int:
        """The peak of live bytes if ops run in an order that saves memory, as compilers for
        accelerators choose: the better of depth-first order and program order.
        """
        return min(self.rows.least_peak_bytes, self.peak_bytes)

    @property
    def xla_cpu_peak_bytes(self) -> int:
        """Bytes of arguments, outputs and temporaries in ``compiled.memory_analysis()`` of XLA on
        CPUs, where bfloat16 is computed in float32 and temporaries share one heap.
        """
        return self.rows.xla_cpu_peak_bytes

    @property
    def host_memory_peak_bytes(self) -> int:
        """The peak of live bytes in host memory, including its arguments: values with a host memory
        kind, or placed there. Other memory figures leave these out, except
        :attr:`xla_cpu_peak_bytes`, for which everything is on the host.
        """
        return self.rows.host_memory_peak_bytes

    @property
    def host_live_at_peak(self) -> tuple[LiveValue, ...]:
        """The values that are live in host memory at its peak."""
        return self.rows.host_live_at_peak

    @property
    def live_at_peak(self) -> tuple[LiveValue, ...]:
        """The values that are live at the peak: arguments, outputs, then others in program order,
        and :attr:`hole_bytes`."""
        return self.rows.live_at_peak

    @property
    def collectives(self) -> tuple[CollectiveCost, ...]:
        """The collectives in program order; callers come before the functions that they call."""
        return self.rows.collectives

    @property
    def ops(self) -> tuple[OpCost, ...]:
        """The ops by name and source line, the longest first."""
        return self.rows.ops

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that :attr:`compiler` makes, block by block: ops, lines, bytes read and
        written, FLOPs, seconds and runs of each. Computed when first read.
        """
        return self.rows.kernels

    @property
    def async_copies(self) -> AsyncCopies:
        """The copies between HBM and vector memory that :attr:`compiler` adds, those in loops once;
        none but on TPUs. Computed when first read.
        """
        return self.rows.async_copies

    @property
    def bytes_accessed(self) -> int:
        """The bytes that ``compiled.cost_analysis()`` of XLA for the chip counts: those of
        :attr:`kernels` and :attr:`async_copies`, in loops once, vector memory included. What the
        step moves to and from HBM is :attr:`hbm_bytes`.
        """
        return sum(row.bytes_accessed for row in self.kernels) + self.async_copies.bytes_accessed

    @property
    def serial_seconds(self) -> float:
        """Seconds of all ops and collectives one after the other, at the chip's peak rates."""
        return self.compute_seconds + self.comm_seconds

    @property
    def usage(self) -> Usage:
        """How well the step uses the chip: MFU, HFU, recomputation, tokens or examples per
        second."""
        peak = self.hardware.flops["bf16"]
        return usage(self.rows.product_flops, self.step_seconds, peak, self.tokens, self.rows.batch)

    @property
    def not_in_step(self) -> NotInStep:
        """Counts of the ops and collectives that the step time does not include."""
        return NotInStep.of(self.uncounted)

    @property
    def fits(self) -> bool:
        """Whether the peak is within the memory of the chip."""
        return self.peak_bytes <= self.hardware.hbm_bytes

    def by_kind(self) -> dict[str, Totals]:
        """Return the sums over collectives by kind, in order of first appearance."""
        return sums_by(self.collectives, lambda row: row.kind)

    def by_axis(self) -> dict[str, Totals]:
        """Return the sums by mesh axis; a collective along several axes counts for each of them.

        A sub-axis ``x:(1)2`` counts for ``x``.
        """
        return by_axis(self.collectives)

    def by_line(self) -> dict[str | None, Totals]:
        """Return the sums by the source line of the op that needs the collective."""
        return sums_by(self.collectives, lambda row: row.cause_location or row.location)

    def by_site(self) -> dict[Site, Totals]:
        """Return the sums over collectives of the same kind, axes, op that needs them, and line,
        the longest first.
        """
        return by_site(self.collectives)

    def by_scope(self, depth: int | None = None, *, merge: bool = True) -> tuple[ScopeCost, ...]:
        """Return the sums by scope (JAX's ``named_scope``) and by pass, the longest first.

        Args:
            depth: how many names of a scope are distinguished; by default all.
            merge: whether to merge scopes that differ only in numbers, such as repeated layers.
        """
        return merged(self.rows.scopes, depth, merge)

    def memory_timeline(self) -> MemoryTimeline:
        """Return the values in memory over time, with their source lines and scopes, for the order
        in which :attr:`compiler` schedules ops. The maximum is :attr:`peak_bytes`.
        """
        chip, at = self.hardware, self.peak_op
        peak = None if at is None else at.value
        return MemoryTimeline(chip.name, chip.hbm_bytes, self.policy, *self.rows.lifetimes, peak)

    def top_collectives(self, n: int = 10) -> tuple[CollectiveCost, ...]:
        """Return the ``n`` collectives with the longest time over all runs, the longest first."""
        return tuple(sorted(self.collectives, key=lambda row: -row.total_seconds)[:n])

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "hardware": self.hardware.name,
            "policy": self.policy,
            "compiler": self.compiler,
            "shardy": self.shardy,
            "flops": self.flops,
            "flops_counting_loops_once": self.flops_counting_loops_once,
            "transcendentals": self.transcendentals,
            "hbm_bytes": self.hbm_bytes,
            "argument_bytes": self.argument_bytes,
            "output_bytes": self.output_bytes,
            "alias_bytes": self.alias_bytes,
            "peak_bytes": self.peak_bytes,
            "least_peak_bytes": self.least_peak_bytes,
            "xla_cpu_peak_bytes": self.xla_cpu_peak_bytes,
            "host_argument_bytes": self.host.argument_bytes,
            "host_output_bytes": self.host.output_bytes,
            "host_alias_bytes": self.host.alias_bytes,
            "host_memory_peak_bytes": self.host_memory_peak_bytes,
            "host_flops": self.host.flops,
            "host_transcendentals": self.host.transcendentals,
            "fits": self.fits,
            "peak_op": None if self.peak_op is None else asdict(self.peak_op),
            "compute_seconds": self.compute_seconds,
            "comm_seconds": self.comm_seconds,
            "exposed_seconds": self.exposed_seconds,
            "serial_seconds": self.serial_seconds,
            "step_seconds": self.step_seconds,
            "step_seconds_lower": self.step_seconds_lower,
            "step_seconds_upper": self.step_seconds_upper,
            "confidence": self.confidence.record(),
            "usage": self.usage.record(),
            "not_in_step": asdict(self.not_in_step),
            "by_kind": {kind: asdict(sums) for kind, sums in self.by_kind().items()},
            "by_axis": {axis: asdict(sums) for axis, sums in self.by_axis().items()},
            "by_line": [
                {"location": place, **asdict(sums)} for place, sums in self.by_line().items()
            ],
            "by_scope": [row.record() for row in self.by_scope()],
            "by_site": [{**asdict(site), **asdict(sums)} for site, sums in self.by_site().items()],
            "collectives": [row.record() for row in self.collectives],
            "ops": [row.record() for row in self.ops],
            "live_at_peak": [row.record() for row in self.live_at_peak],
            "host_transfers": [row.record() for row in self.host.transfers],
            "host_live_at_peak": [row.record() for row in self.host_live_at_peak],
            "loops": [asdict(row) for row in self.loops],
            "uncounted": [asdict(row) for row in self.uncounted],
            "notes": list(self.notes),
            "is_saturated": self.is_saturated,
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Return :meth:`record` as JSON, indented by up to 80 spaces a level.

        Raises:
            ValueError: ``indent`` is not from 0 to 80.
        """
        return json_text(self.record(), indent)

    def __repr__(self) -> str:
        return (
            f"<shardcore.Cost on {self.hardware.name}, policy {self.policy}: "
            f"{self.flops:.4g} flops, "
            f"{self.peak_bytes} bytes at the peak, {self.step_seconds:.4g} s, "
            f"{self.confidence.low:.4g} to {self.confidence.high:.4g}>"
        )

    def _repr_html_(self) -> str:
        from shardcore.report.cost_table import cost_parts
        from shardcore.report.html import parts_html

        return parts_html(cost_parts(self))

    def __str__(self) -> str:
        from shardcore.report.cost_table import cost_text

        return cost_text(self)
