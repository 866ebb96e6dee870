"""The cost of a program, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shardcore.labels import LOCAL, REPLICATED, file_line, is_inserted, sharding_text
from shardcore.report.console import paragraph, plain_text, table
from shardcore.report.fits import fit_text
from shardcore.report.host_table import host_lines, largest_transfers, transfers_part
from shardcore.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.costs.program import Cost
    from shardcore.costs.records import (
        CollectiveCost,
        LiveValue,
        NotInStep,
        OpCost,
        Site,
        Totals,
    )
    from shardcore.costs.usage import Usage
    from shardcore.report.console import Part


def cost_parts(cost: Cost, *, top: int = 10) -> list[Part]:
    """The parts of the report, with ``top`` rows of each ranking."""
    parts: list[Part] = [paragraph(_overview(cost))]
    timed = [row for row in cost.ops[:top] if row.seconds > 0]
    on_host = cost.host_live_at_peak if cost.host else ()
    sites = [(site, sums) for site, sums in cost.by_site().items() if sums.seconds > 0]
    pieces: list[tuple[str, Sequence[object], Callable[[], Part]]] = [
        ("collectives by kind", cost.collectives, lambda: _sums("kind", cost.by_kind())),
        ("collectives by mesh axis", sites, lambda: _sums("axis", cost.by_axis())),
        (
            "most expensive collectives",
            sites,
            lambda: _sites(sites[:top]),
        ),
        ("most expensive ops", timed, lambda: _ops(timed)),
        (
            "transfers to and from the host",
            cost.host.transfers,
            lambda: transfers_part(largest_transfers(cost, top)),
        ),
        (
            _largest(len(cost.live_at_peak)),
            cost.live_at_peak,
            lambda: _live(sorted(cost.live_at_peak, key=lambda row: -row.bytes)[:top]),
        ),
        (
            _largest(len(on_host), " in the memory of the host"),
            on_host,
            lambda: _live(sorted(on_host, key=lambda row: -row.bytes)[:top]),
        ),
    ]
    for title, rows, draw in pieces:
        if rows and top:
            parts += [paragraph(f"\n{title}", is_title=True), draw()]
    remarks = _remarks(cost)
    return [*parts, paragraph("\n" + "\n".join(remarks))] if remarks else parts


def scope_parts(cost: Cost, *, depth: int | None, merge: bool, top: int) -> list[Part]:
    """The parts of the report by scope, with ``top`` rows."""
    rows = cost.by_scope(depth, merge=merge)
    total = sum(row.step_seconds for row in rows)
    cells = (
        (
            (row.scope or "(no scope)") + (f" x{row.layers}" if row.layers > 1 else ""),
            row.direction,
            format_seconds(row.compute_seconds),
            format_seconds(row.comm_seconds),
            format_seconds(row.step_seconds),
            f"{row.step_seconds / total:.1%}" if total else "",
            format_count(row.flops),
            format_bytes(row.wire_bytes),
        )
        for row in rows[:top]
    )
    columns = ("scope", "pass", ">compute", ">comm", ">step", ">share", ">FLOPs", ">sent")
    parts: list[Part] = [paragraph(_overview(cost)), paragraph("\nby scope", is_title=True)]
    parts.append(table(columns, cells))
    left = len(rows) - top
    return [*parts, paragraph(f"... {left} scopes more")] if left > 0 else parts


def _overview(cost: Cost) -> str:
    peak = cost.peak_op
    where = "" if peak is None else f" at {peak.value or peak.name} ({peak.name})"
    source = f", {file_line(peak.location)}" if peak is not None and peak.location else ""
    order = ""
    if cost.least_peak_bytes < SAVES * cost.peak_bytes:
        least = format_bytes(cost.least_peak_bytes)
        order = f"\n               {least} in an order that saves memory"
    aliased = f", {format_bytes(cost.alias_bytes)} of them donated" if cost.alias_bytes else ""
    return "\n".join(
        [
            fit_text(cost.peak_bytes, cost.hardware.name, cost.hardware.hbm_bytes),
            f"per device, on {cost.hardware.name}, policy {cost.policy}",
            f"  step         {format_seconds(cost.step_seconds)}, at least "
            f"{format_seconds(cost.step_seconds_lower)}",
            f"  90% of steps {format_seconds(cost.confidence.low)} to "
            f"{format_seconds(cost.confidence.high)} ({cost.confidence})",
            *_usage(cost.usage),
            f"  compute      {format_seconds(cost.compute_seconds)} at the peak, for "
            f"{_flops(cost.flops)} and {format_bytes(cost.hbm_bytes)} moved",
            f"  collectives  {format_seconds(cost.comm_seconds)} at the peak, "
            f"{format_seconds(cost.exposed_seconds)} exposed",
            f"  arguments    {format_bytes(cost.argument_bytes)}",
            f"  outputs      {format_bytes(cost.output_bytes)}{aliased}",
            f"  peak memory  {format_bytes(cost.peak_bytes)}{where}{source}{order}",
            *host_lines(cost),
            *_not_in_step(cost.not_in_step),
        ]
    )


def _usage(found: Usage) -> list[str]:
    """The line on MFU and so on; empty if the step has neither products nor known tokens."""
    parts = [f"MFU {found.mfu:.1%}", f"HFU {found.hfu:.1%}"] if found.hfu else []
    if found.recomputed_flops:
        parts.append(f"{found.recomputed_share:.1%} recomputed")
    if found.replicated_share > _SHOWN_SHARE:
        parts.append(f"{found.replicated_share:.1%} computed on several devices alike")
    parts += _rate(found)
    if found.hfu and found.other_share > _SHOWN_OTHER:
        parts.append(f"without {_flops(found.other_flops)} of other ops")
    return [f"  use          {', '.join(parts)}"] if parts else []


def _rate(found: Usage) -> list[str]:
    """The tokens or examples per second, or how to have them; empty without products."""
    source = "" if found.counted_in is None else f" (counted in {found.counted_in})"
    if found.tokens_per_second is not None:
        return [f"{found.tokens_per_second:.4g} tokens/s{source}"]
    if found.examples_per_second is not None:
        return [f"{found.examples_per_second:.4g} examples/s{source}"]
    return ["tokens/s unknown without --tokens"] if found.hfu else []


def _not_in_step(missing: NotInStep) -> list[str]:
    """The line on ops that the step time does not include; empty if it includes all."""
    parts = []
    if missing.communication_ops:
        parts.append(
            f"{plural(missing.communication_ops, 'exchange')} of data, up to "
            f"{format_bytes(missing.communication_bytes)}"
        )
    if missing.compute_ops:
        parts.append(
            f"the work of {plural(missing.compute_ops, 'op')} on "
            f"{format_bytes(missing.compute_bytes)}"
        )
    return [f"  not in step  {'; '.join(parts)}"] if parts else []


def _sums(name: str, sums: Mapping[str, Totals]) -> Part:
    rows = (
        (
            key,
            str(row.count),
            format_bytes(row.bytes),
            format_bytes(row.wire_bytes),
            format_seconds(row.seconds),
        )
        for key, row in sums.items()
    )
    return table((name, ">count", ">total bytes", ">total sent", ">time at peak"), rows)


# If another order saves less of the peak than this, no line says so.
SAVES = 0.95

_SHOWN_SHARE = 0.005
_SHOWN_OTHER = 0.01
"""The share of other FLOPs from which on it is shown."""

COLLECTIVE_COLUMNS = (
    "value",
    "kind",
    "axes",
    ">count",
    ">total bytes",
    ">time at peak",
    "shardings",
    "because of",
    "source",
)


def collective_cells(row: CollectiveCost) -> tuple[str, ...]:
    """The cells of a row of the table of collectives."""
    return (
        row.op or "",
        row.kind,
        ",".join(row.axes),
        str(row.count),
        format_bytes(row.total_bytes),
        format_seconds(row.total_seconds),
        " -> ".join(row.sides),
        row.cause or "",
        row.cause_location or row.location or "",
    )


def _largest(count: int, where: str = "") -> str:
    """The title of a table of the largest of ``count`` values."""
    if count == 1:
        return f"the value that is live at the peak{where}"
    return f"largest of the {count} values that are live at the peak{where}"


def _sites(sites: Iterable[tuple[Site, Totals]]) -> Part:
    rows = (
        (
            site.kind,
            ",".join(site.axes),
            str(sums.count),
            format_bytes(sums.wire_bytes),
            format_seconds(sums.seconds),
            format_seconds(sums.exposed_seconds),
            (site.cause or "").removeprefix("stablehlo."),
            file_line(site.location),
        )
        for site, sums in sites
    )
    columns = ("kind", "axes", ">count", ">sent", ">at peak", ">exposed", "because of", "source")
    return table(columns, rows)


def _ops(ops: Iterable[OpCost]) -> Part:
    rows = (
        (
            row.name,
            format_count(row.count),
            format_count(row.flops),
            format_bytes(row.bytes),
            format_seconds(row.seconds),
            row.bound,
            row.location or "",
        )
        for row in ops
    )
    return table(
        ("op", ">runs", ">total flops", ">total moved", ">time at peak", "bound", "source"), rows
    )


def _flops(count: float) -> str:
    """``1.35 GFLOPs``, ``256 FLOPs``."""
    text = format_count(count)
    return f"{text}FLOPs" if " " in text else f"{text} FLOPs"


def _live(values: Iterable[LiveValue]) -> Part:
    rows = (
        (
            row.name,
            "argument" if row.op is None else row.op,
            "x".join(
                [*("?" if size is None else str(size) for size in row.shape), row.dtype or ""]
            ),
            sharding_text(row.sharding) or (LOCAL if is_inserted(row.name) else REPLICATED),
            format_bytes(row.bytes),
            row.location or "",
        )
        for row in sorted(values, key=lambda row: is_inserted(row.name))
    )
    columns = ("value", "made by", "shape", "sharding", ">per device", "source")
    return table(columns, rows, wrapped=("sharding",))


def _remarks(cost: Cost) -> list[str]:
    lines = [
        f"counted as one trip: loop {loop.op or ''}, which does not say how many it makes"
        f"{_at(loop.location)}"
        for loop in cost.loops
        if loop.trips is None
    ]
    for row in cost.uncounted:
        lines.append(
            f"not counted: {row.count} x {row.name}, {row.reason}, {format_bytes(row.bytes)}"
            f"{_at(row.location)}"
        )
    return lines + [f"note: {note}" for note in cost.notes]


def _at(location: str | None) -> str:
    return f" ({location})" if location else ""


def cost_text(cost: Cost, *, top: int = 10) -> str:
    """The whole report without colours."""
    return plain_text(cost_parts(cost, top=top))
