"""Tables of a chip's measurements, and of how well the fitted figures reproduce them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.fit import Fit
    from shardcore.jax.measure import Measurements
    from shardcore.report.console import Part


def measured_parts(found: Measurements, output: str | None, *, with_ops: bool) -> list[Part]:
    """The parts of the report; ``output`` is the name of the written file."""
    chip, fit = found.chip, found.fit
    rates = [
        f"{format_count(chip.flops_per_second(dtype) * chip.achieved.products_of(dtype))}FLOP/s "
        f"in products of {dtype}"
        for dtype in sorted(chip.flops)
    ]
    moved = chip.hbm_bytes_per_second * chip.achieved.memory
    answer = f"{chip.name}: {', '.join(rates)}, {format_bytes(moved)}/s from memory"
    lines = [
        answer,
        f"{plural(len(fit.rows), 'op')} in {found.seconds:.0f} s on "
        f"{plural(found.num_devices, 'device')}; the figures are off by {fit.error():.0%} in the "
        "median",
    ]
    if output is not None:
        lines.append(f"use it: shardcore cost FILE --hardware {chip.name} --hardware-file {output}")
    parts: list[Part] = [paragraph("\n".join(lines))]
    rows = (
        (
            group,
            str(sum(row.group == group for row, _ in fit.rows)),
            f"{fit.error(group):.0%}",
            _figures(chip, group),
        )
        for group in fit.groups
    )
    parts.append(table(("ops", ">number", ">median error", "figures"), rows, ("figures",)))
    if with_ops:
        parts.append(_ops(fit))
    if found.refused:
        refused = [(name, reason) for name, reason in found.refused]
        parts.append(table(("not run", "reason"), refused, ("reason",)))
    return parts


def _ops(fit: Fit) -> Part:
    """A row for each op."""
    rows = (
        (
            row.group,
            row.name,
            format_seconds(row.step_seconds),
            format_seconds(seconds),
            f"{seconds / row.step_seconds:.2f}",
        )
        for row, seconds in fit.rows
    )
    return table(("ops", "op", ">measured", ">by figures", ">ratio"), rows)


def _figures(chip: Hardware, group: str) -> str:
    """The figures that ``group`` determines."""
    from shardcore.costs.fit import figures_of

    return ", ".join(f"{name} {_shown(name, value)}" for name, value in figures_of(chip, group))


def _shown(name: str, value: float) -> str:
    """The figure ``name`` with its unit."""
    if name.endswith("bytes_per_second"):
        return f"{format_bytes(value)}/s"
    if name.endswith("bytes"):
        return format_bytes(value)
    if name.endswith("op_seconds") or name.endswith("step_seconds"):
        return format_seconds(value)
    return f"{value:.3g}"
