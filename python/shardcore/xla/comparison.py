"""The cost of a program beside what one of XLA's compilers says of the same program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.costs.program import Cost
from shardcore.errors import Diagnostic, LocationError
from shardcore.expected import expect
from shardcore.xla.compile import SECONDS, CompiledProgram, compile_for
from shardcore.xla.hlo_figures import Sent
from shardcore.xla.targets import target_of

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned

__all__ = ["Against", "SideBySide", "against", "sent_by_kind"]


@dataclass(frozen=True)
class SideBySide:
    """One figure of a cost, and XLA's."""

    name: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float | None:
        """``ours / theirs``, 1 if both are 0, ``None`` if only XLA's is 0."""
        if self.theirs:
            return self.ours / self.theirs
        return None if self.ours else 1.0

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"ours": self.ours, "theirs": self.theirs, "ratio": self.ratio}


@dataclass(frozen=True)
class Against:
    """A cost beside what XLA says of the program that it compiled."""

    cost: Cost
    compiled: CompiledProgram

    @property
    def figures(self) -> tuple[SideBySide, ...]:
        """Figures of one device: memory in bytes, FLOPs, the bytes that kernels access and the
        number of kernels. Loops count once in the last three, as in XLA's cost analysis. On TPUs
        ``reserved_bytes`` is the peak again, beside what buffer assignment reserves; see
        :attr:`CompiledProgram.reserved_bytes`.
        """
        return tuple(self._figures())

    @property
    def runs(self) -> tuple[SideBySide, ...]:
        """How often collectives of each kind run; those that are combined run as one."""
        return self._by_kind("runs")

    @property
    def sent(self) -> tuple[SideBySide, ...]:
        """The bytes of the gathered arrays of the collectives of each kind, over all runs."""
        return self._by_kind("bytes")

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        target = self.compiled.target
        return {
            "hardware": self.cost.hardware.name,
            "policy": self.cost.policy,
            "compiler": self.cost.compiler,
            "against": {
                "compiler": target.compiler,
                "chip": target.chip,
                "topology": target.topology,
                "num_devices": target.num_devices,
                "versions": dict(self.compiled.versions),
            },
            "figures": {row.name: row.record() for row in self.figures},
            "collectives": {
                runs.name: {"runs": runs.record(), "bytes": sent.record()}
                for runs, sent in zip(self.runs, self.sent, strict=True)
            },
        }

    def _figures(self) -> Iterator[SideBySide]:
        ours, theirs = self.cost, self.compiled
        yield SideBySide("argument_bytes", ours.argument_bytes, theirs.argument_bytes)
        yield SideBySide("output_bytes", ours.output_bytes, theirs.output_bytes)
        yield SideBySide("alias_bytes", ours.alias_bytes, theirs.alias_bytes)
        yield SideBySide("temp_bytes", ours.memory.temp_size_in_bytes, theirs.temp_bytes)
        yield SideBySide("peak_bytes", ours.peak_bytes, theirs.peak_bytes)
        if theirs.reserved_bytes is not None:
            yield SideBySide("reserved_bytes", ours.peak_bytes, theirs.reserved_bytes)
        if ours.host or theirs.host_bytes:
            yield SideBySide("host_bytes", ours.host_memory_peak_bytes, theirs.host_bytes)
        kernels = ours.kernels
        yield SideBySide("flops", sum(row.flops for row in kernels), theirs.flops)
        yield SideBySide("bytes_accessed", ours.bytes_accessed, theirs.bytes_accessed)
        yield SideBySide("kernels", len(kernels), theirs.num_kernels)

    def _by_kind(self, figure: str) -> tuple[SideBySide, ...]:
        ours, theirs = sent_by_kind(self.cost), self.compiled.collectives
        return tuple(
            SideBySide(kind, *(getattr(rows.get(kind, Sent()), figure) for rows in (ours, theirs)))
            for kind in sorted(ours.keys() | theirs.keys())
        )

    def _repr_html_(self) -> str:
        from shardcore.report.against_table import against_parts
        from shardcore.report.html import parts_html

        return parts_html(against_parts(self))

    def __str__(self) -> str:
        from shardcore.report.against_table import against_parts
        from shardcore.report.console import plain_text

        return plain_text(against_parts(self))


def against(
    cost: Cost,
    compiler: str | None = None,
    *,
    topology: str | Sequence[int] | None = None,
    seconds: float = SECONDS,
) -> Against:
    """Compile the program that ``cost`` is of by XLA, and return both side by side.

    XLA gets the program as it was given, with its annotations, and partitions it.

    Args:
        cost: the cost.
        compiler: ``"xla-tpu"``, ``"xla-gpu"`` or ``"xla-cpu"``, which compiles for hosts; by
            default the compiler that ``cost`` models.
        topology: of TPUs the slice, ``"4x4"``; see :func:`target_of`.
        seconds: how long the compiler may take.

    Raises:
        CompilerError: the compiler is not installed (``compiler-missing``), does not compile for
            the chip (``no-compiler``), or fails (``not-compiled``).
        CalculusError: the chip has no such slice (``invalid-topology``).
        LocationError: ``cost`` is a pickled copy, which has no program (``unknown-location``).
    """
    expect(cost, Cost)
    local = _local(cost)
    target = target_of(compiler or cost.compiler, cost.hardware, local.num_devices, topology)
    compiled = compile_for(target, str(local.result._given()), seconds=seconds)
    return Against(cost, compiled)


def sent_by_kind(cost: Cost) -> dict[str, Sent]:
    """Return what the collectives of ``cost`` send, by kind; those that are combined run as one."""
    # By how many are combined, as thirds of a run may not add up to a whole one.
    counts: dict[tuple[str, int], Sent] = {}
    for row in cost.collectives:
        key = (row.kind, row.combined)
        counts[key] = counts.get(key, Sent()).plus(Sent(row.count, row.total_bytes))
    found: dict[str, Sent] = {}
    for (kind, combined), sent in counts.items():
        found[kind] = found.get(kind, Sent()).plus(Sent(sent.runs / combined, sent.bytes))
    return found


def _local(cost: Cost) -> Partitioned:
    """The per-device program of ``cost``."""
    trial = cost.rows.trial
    if trial is None:
        message = "a pickled cost has no program, and XLA compiles programs"
        hint = "compute the cost again, from the program"
        raise LocationError(Diagnostic("unknown-location", message, hint))
    return trial.local
