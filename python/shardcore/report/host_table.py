"""Lines and a table on what the program keeps, copies and computes on the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shardcore.labels import file_line
from shardcore.report.console import table
from shardcore.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from shardcore.costs.host import HostTransfer
    from shardcore.costs.program import Cost
    from shardcore.report.console import Part

_ARROWS = {"to_device": "to device", "to_host": "to host"}


def host_lines(cost: Cost) -> Iterator[str]:
    """The lines about the host; none if the program does not use it."""
    host = cost.host
    if not host:
        return
    donated = f", {format_bytes(host.alias_bytes)} of them donated" if host.alias_bytes else ""
    yield (
        f"  on the host  peak {format_bytes(cost.host_memory_peak_bytes)}, arguments "
        f"{format_bytes(host.argument_bytes)}, outputs {format_bytes(host.output_bytes)}{donated}"
    )
    if host.transfers:
        sizes = ", ".join(
            f"{format_bytes(host.moved(name))} {text}" for name, text in _ARROWS.items()
        )
        yield f"  transfers    {sizes}, {_times(cost)}"
    if host.flops or host.transcendentals:
        count = format_count(host.flops)
        unit = "FLOPs" if " " in count else " FLOPs"
        yield f"  host work    {count}{unit}, whose time is not known"


def _times(cost: Cost) -> str:
    host = cost.host
    if host.has_unknown_times:
        return f"whose time is not known: {cost.hardware.name} has no host_bytes_per_second"
    return (
        f"{format_seconds(host.busy_seconds)} at the peak, "
        f"{format_seconds(host.exposed_seconds)} exposed"
    )


def transfers_part(rows: Iterable[HostTransfer]) -> Part:
    """The table of transfers."""
    cells = (
        (
            row.value,
            _ARROWS[row.direction],
            str(row.count),
            format_bytes(row.total_bytes),
            _seconds(row.total_seconds),
            _seconds(row.exposed_seconds),
            file_line(row.location),
        )
        for row in rows
    )
    columns = ("value", "moved", ">count", ">total bytes", ">time", ">exposed", "source")
    return table(columns, cells)


def largest_transfers(cost: Cost, top: int) -> list[HostTransfer]:
    """The ``top`` transfers with the most bytes."""
    return sorted(cost.host.transfers, key=lambda row: -row.total_bytes)[:top]


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_seconds(seconds)
