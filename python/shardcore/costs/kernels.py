"""The kernels of a step: groups of ops that run in one launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shardcore.costs.figures import KernelKind

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.costs.rates import Rates


@dataclass(frozen=True)
class AsyncCopies:
    """Copies between HBM and the vector memory of a TPU's core, beside kernels; each once."""

    count: int
    bytes: int
    """The bytes of what they copy."""

    bytes_accessed: int
    """What XLA's ``cost_analysis()`` counts: four times what is copied, three times if that is in
    slices."""


@dataclass(frozen=True)
class Kernel:
    """Ops that a compiler fuses into one kernel. All figures are for one run."""

    name: str
    """The op whose result it writes, ``stablehlo.add``; for a copy, the op that needs the copy."""
    value: str | None
    """The name of that result."""
    location: str | None
    ops: tuple[tuple[str, str | None], ...]
    """All its ops with their source lines: the op above first, then the fused ones."""
    flops: int
    """FLOPs as XLA counts them; ops duplicated into several kernels count in each."""
    transcendentals: int
    read_bytes: int
    written_bytes: int
    bytes_accessed: int
    """What XLA's ``cost_analysis()`` counts, which is not what it moves: a call of a library is
    nothing, and an asynchronous collective is counted when it starts and when it is done; on TPUs
    arrays are whole tiles."""
    seconds: float
    """Seconds at achieved rates; for a collective, at the full bandwidth of its links."""
    count: int
    """The number of runs; 0 in the condition of a loop on a GPU whose trips the host counts."""
    is_copy: bool
    """Whether it only copies or rearranges an operand of the op."""
    is_collective: bool
    work: KernelKind = field(repr=False)
    """What its time is computed from."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def lines(self) -> tuple[str, ...]:
        """The distinct source lines of its ops, that of the op above first."""
        return tuple(dict.fromkeys(place for _, place in self.ops if place is not None))

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        ops = [{"name": name, "location": place} for name, place in self.ops]
        found = {**vars(self), "ops": ops, "bytes": self.bytes}
        del found["work"]
        return found


def kernels_of(
    figures: Figures, compiler: str, rates: Rates, collectives: Mapping[str | None, float]
) -> tuple[Kernel, ...]:
    """Return the kernels that ``compiler`` makes of a program, block by block; ``collectives`` has
    the seconds of collectives by the names of their results.
    """
    found = []
    for row in figures.kernels(compiler):
        work, values = KernelKind._make(row.pop("work")), row.pop("values")
        if row["is_collective"]:
            seconds = max((collectives.get(value, 0.0) for value in values), default=0.0)
        else:
            seconds = rates.kernel(work).achieved
        ops = tuple(row.pop("ops"))
        name, location = ops[0]
        value = values[0] if values else None
        fields = {"name": name, "location": location, "value": value, "ops": ops}
        found.append(
            Kernel(
                flops=work.flops,
                transcendentals=work.transcendentals,
                read_bytes=work.read_bytes,
                written_bytes=work.written_bytes,
                seconds=seconds,
                work=work,
                **fields,
                **row,
            )
        )
    return tuple(found)
