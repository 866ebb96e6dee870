"""The kernels of a step: ops that are started as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.costs.figures import KernelKind

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.costs.rates import Rates


@dataclass(frozen=True)
class Kernel:
    """Ops that a compiler starts as one. All figures are of one run."""

    name: str
    """The op whose result it writes, ``stablehlo.add``; of a copy the op that it is made for."""
    value: str | None
    """The name of that result."""
    location: str | None
    ops: tuple[tuple[str, str | None], ...]
    """All ops that it computes, with their source lines: that op first, then what is fused."""
    flops: int
    """As XLA counts them, of what is computed again in several kernels in each of them."""
    transcendentals: int
    read_bytes: int
    written_bytes: int
    seconds: float
    """At the rates that programs achieve; of a collective at the full bandwidth of its links."""
    count: int
    """Number of its runs."""
    is_copy: bool
    """Whether it only copies or rearranges an operand of its op."""
    is_collective: bool

    @property
    def bytes(self) -> int:
        """Bytes that it reads and writes."""
        return self.read_bytes + self.written_bytes

    @property
    def lines(self) -> tuple[str, ...]:
        """The source lines of its ops, each once, its own first."""
        return tuple(dict.fromkeys(place for _, place in self.ops if place is not None))

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        ops = [{"name": name, "location": place} for name, place in self.ops]
        return {**vars(self), "ops": ops, "bytes": self.bytes}


def kernels_of(
    figures: Figures, compiler: str, rates: Rates, collectives: Mapping[str | None, float]
) -> tuple[Kernel, ...]:
    """Return the kernels of a program as ``compiler`` has them, block by block; ``collectives`` has
    the seconds of each by the name of its result.
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
                **fields,
                **row,
            )
        )
    return tuple(found)
