"""What layers should keep, as text: the choice, what to write, and what it was chosen from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, plain_text, table
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.remat.answer import Remat, Trial
    from shardcore.report.console import Part

_COLUMNS = ("kept", ">step", ">peak", ">host", "fits")
_MOST = 12
"""The most choices that are shown."""
_ENDS = {"done": "nothing better was found nearby", "seconds": "the time was up"}


def remat_parts(found: Remat) -> list[Part]:
    """The parts of the report."""
    best, whole, built_in = found.best, found.whole, found.best_built_in
    lines = [
        f"{best.label}, on {found.hardware.name}",
        f"  step         {format_seconds(best.step_seconds)}; without recomputation "
        f"{format_seconds(whole.step_seconds)}",
        f"  peak memory  {format_bytes(best.peak_bytes)} of {format_bytes(found.limit)}; without "
        f"recomputation {format_bytes(whole.peak_bytes)}",
    ]
    if best.host_bytes:
        room = "" if math.isinf(found.host_limit) else f" of {format_bytes(found.host_limit)}"
        lines.append(f"  on the host  {format_bytes(best.host_bytes)}{room}")
    if built_in is None:
        lines.append("  of JAX       no policy fits")
    else:
        share = best.step_seconds / built_in.step_seconds
        lines.append(
            f"  of JAX       {share:.3f} times the step of the best that fits, {built_in.label}"
        )
    lines.append(f"  tried        {len(found.trials)}; {_ENDS[found.stopped]}")
    parts: list[Part] = [paragraph("\n".join(lines))]
    parts.append(paragraph("\nwhat to write", is_title=True))
    parts.append(paragraph(found.to_python().rstrip()))
    parts.append(paragraph("\nwhat it was chosen from", is_title=True))
    shown = _shown(found)
    parts.append(table(_COLUMNS, [_row(found, trial) for trial in shown]))
    more = len(found.trials) - len(shown)
    if more:
        parts.append(paragraph(f"and {plural(more, 'other')}"))
    return parts


def remat_text(found: Remat) -> str:
    """The whole report without colours."""
    return plain_text(remat_parts(found))


def _shown(found: Remat) -> list[Trial]:
    """Those that fit first, the fastest first; no recomputation is among them."""
    rows = sorted(
        found.trials,
        key=lambda trial: (not trial.fits(found.limit, found.host_limit), trial.step_seconds),
    )
    return [row for at, row in enumerate(rows) if at < _MOST or row is found.whole]


def _row(found: Remat, trial: Trial) -> tuple[str, ...]:
    return (
        trial.label,
        format_seconds(trial.step_seconds),
        format_bytes(trial.peak_bytes),
        format_bytes(trial.host_bytes) if trial.host_bytes else "",
        "yes" if trial.fits(found.limit, found.host_limit) else "no",
    )
