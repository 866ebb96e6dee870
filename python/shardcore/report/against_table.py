"""A cost beside what XLA says of the same program, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_bytes, format_count, plural

if TYPE_CHECKING:
    from shardcore.report.console import Part
    from shardcore.xla.comparison import Against, SideBySide

NAMES = {
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "alias_bytes": "donated",
    "temp_bytes": "temporary",
    "peak_bytes": "peak",
    "reserved_bytes": "peak, as reserved",
    "host_bytes": "on the host",
    "flops": "FLOPs",
    "bytes_accessed": "bytes accessed",
    "kernels": "kernels",
}


def against_parts(found: Against) -> list[Part]:
    """The parts of the report."""
    cost, compiled = found.cost, found.compiled
    target = compiled.target
    devices = f"{plural(target.num_devices, 'device')} of {target.chip}"
    place = ", ".join(filter(None, (devices, target.topology)))
    lines = [
        f"shardcore on {cost.hardware.name}, policy {cost.policy}, compiler {cost.compiler}",
        f"{target.compiler} for {place} ({compiled.version})",
    ]
    names = (">shardcore", f">{target.compiler}", ">ratio")
    rows = ((NAMES[row.name], *_cells(row)) for row in found.figures)
    parts: list[Part] = [paragraph("\n".join(lines)), table(("per device", *names), rows)]
    if not found.runs:
        return [*parts, paragraph("\nno collectives")]
    pairs = zip(found.runs, found.sent, strict=True)
    kinds = ((runs.name, *_cells(runs, "runs"), *_cells(sent, "bytes")) for runs, sent in pairs)
    columns = ("collectives", ">runs", names[1], names[2], ">bytes", names[1], names[2])
    return [*parts, paragraph(""), table(columns, kinds)]


def _cells(row: SideBySide, figure: str | None = None) -> tuple[str, str, str]:
    """Both figures, formatted as one of that name, and their ratio."""
    figure = figure or row.name
    if figure.endswith("bytes") or figure == "bytes_accessed":
        texts = format_bytes(row.ours), format_bytes(row.theirs)
    elif figure == "flops":
        texts = format_count(row.ours), format_count(row.theirs)
    else:
        texts = f"{row.ours:,.10g}", f"{row.theirs:,.10g}"
    return (*texts, "" if row.ratio is None else f"{row.ratio:.3f}")
