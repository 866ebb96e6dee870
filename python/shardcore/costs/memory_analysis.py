"""Memory of one device under the names of ``compiled.memory_analysis()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.costs.program import Cost


@dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes on one device and on its host, named as in JAX's ``compiled.memory_analysis()``.

    Generated code is not counted.
    """

    argument_size_in_bytes: int
    """Arguments; they are live throughout."""
    output_size_in_bytes: int
    """Results, and the table of pointers to them if there are several."""
    alias_size_in_bytes: int
    """The part of the results that reuses the memory of donated arguments."""
    temp_size_in_bytes: int
    """Memory that is allocated beside arguments and results."""
    peak_memory_in_bytes: int
    """The most of all of these that is live at once: :attr:`shardcore.Cost.peak_bytes` without
    :attr:`shardcore.Cost.hole_bytes`, which are part of the temporary bytes."""
    host_argument_size_in_bytes: int
    """Arguments in host memory."""
    host_output_size_in_bytes: int
    """Results in host memory."""
    host_alias_size_in_bytes: int
    """The part of these results that reuses the memory of donated arguments."""
    host_temp_size_in_bytes: int
    """Other bytes in host memory at its peak."""


def memory_analysis(cost: Cost) -> MemoryAnalysis:
    """Return the memory of ``cost``."""
    ports = cost.argument_bytes + cost.output_bytes - cost.alias_bytes
    host = cost.host
    host_ports = host.argument_bytes + host.output_bytes - host.alias_bytes
    return MemoryAnalysis(
        cost.argument_bytes,
        cost.output_bytes,
        cost.alias_bytes,
        max(cost.peak_bytes - ports, 0),
        cost.peak_bytes - cost.hole_bytes,
        host.argument_bytes,
        host.output_bytes,
        host.alias_bytes,
        max(cost.host_memory_peak_bytes - host_ports, 0),
    )
