"""Tables of a partitioned program."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, show, table
from shardcore.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardcore.partition import Partitioned, Proof
    from shardcore.report.console import Part


def print_partition(partitioned: Partitioned, proof: Proof | None = None, *, top: int = 10) -> None:
    """Print the report, with ``top`` rows of each ranking."""
    show(partition_parts(partitioned, top=top))
    if proof is not None:
        show([paragraph(f"\n{proof}")])


def partition_parts(partitioned: Partitioned, *, top: int = 10) -> Iterator[Part]:
    """The parts of the report."""
    kinds = partitioned.count_outcomes()
    ops = ", ".join(
        f"{kinds[kind]} {kind}" for kind in ("local", "collective", "gathered") if kind in kinds
    )
    count = plural(len(partitioned.collectives), "collective")
    yield paragraph(
        f"{plural(partitioned.num_devices, 'device')}, policy {partitioned.policy}: a device sends "
        f"{format_bytes(partitioned.sent_bytes)} in {count}\n"
        f"ops: {ops or 'none'}"
    )
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for collective in partitioned.collectives:
        total = sums[collective.kind, ", ".join(collective.axes) or "-"]
        total[0] += collective.count
        total[1] += collective.total_wire_bytes
    if sums:
        yield paragraph("\ncollectives by kind and axis")
        ranked = sorted(sums.items(), key=lambda row: -row[1][1])[:top]
        yield table(
            ("kind", "axis", ">count", ">sent"),
            [(kind, axis, f"{n:,}", format_bytes(sent)) for (kind, axis), (n, sent) in ranked],
        )
    gathered = [outcome for outcome in partitioned.outcomes if outcome.kind == "gathered"]
    if gathered:
        yield paragraph(f"\n{plural(len(gathered), 'op')} whose operands were gathered")
        yield table(
            ("op", "why", "source"),
            [(row.name, row.reason, row.location or "") for row in gathered[:top]],
        )
