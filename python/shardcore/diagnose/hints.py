"""Hints that recommend an edit; each edit is evaluated first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardcore.diagnose.findings import Finding
from shardcore.errors import Diagnostic
from shardcore.units import format_bytes, format_seconds
from shardcore.why.text import edit_text

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.why.remedy import Remedy
    from shardcore.why.trial import Trial

MOST_OPS_TRIED = 1 << 18
"""How many ops all programs evaluated for the hints of one program may have together."""

MOST_EDITS = 24
"""How many edits are tried for one warning."""

_LEAST_GAIN = 0.01
"""An edit is recommended if it reduces step time times peak memory by at least this share."""

_LEAST_CHANGE = 0.001
"""Smaller relative changes are not mentioned."""


Hinted = tuple[float, Diagnostic]
"""The warning, and the relative step time times peak memory after its edit; 1 without an edit.
"""


def with_hints(found: Sequence[Finding], trial: Trial | None, num_ops: int) -> list[Hinted]:
    """Return the warnings in ``found`` with the edits that help.

    Args:
        found: the findings, the most important first.
        trial: the program as it is; ``None`` if it has no per-device program.
        num_ops: the number of its ops: in larger programs fewer edits are tried.
    """
    searches = sum(each.search is not None for each in found)
    if trial is None or not searches:
        return [(1.0, each.diagnostic) for each in found if not each.needs_edit]
    most = min(MOST_OPS_TRIED // max(num_ops, 1) // searches, MOST_EDITS)
    return [hinted for each in found if (hinted := _with_hint(each, trial, most)) is not None]


def _with_hint(found: Finding, trial: Trial, most: int) -> Hinted | None:
    """The warning of ``found``, with an edit if one helps; ``None`` if it is not to be shown."""
    if found.search is None:
        return 1.0, found.diagnostic
    if found.size > trial.cost.peak_bytes:
        return None
    edit = found.search(trial, most) if most else None
    if edit is not None and edit.product(trial.cost) <= 1 - _LEAST_GAIN:
        hint = f"{edit_text(edit.record())}: {effect(edit, trial.cost)}"
        return edit.product(trial.cost), found.diagnostic._replace(hint=hint, remedy=edit)
    if found.needs_edit:
        return None
    if most and found.unhelped is not None:
        return 1.0, found.diagnostic._replace(hint=found.unhelped)
    return 1.0, found.diagnostic


def effect(edit: Remedy, before: Cost) -> str:
    """Return the effect of ``edit``: ``the step gets 3 ms shorter and the peak 1.0 GiB lower``."""
    sent = sum(row.total_wire_bytes for row in before.collectives)
    step = "the step gets", edit.seconds, before.step_seconds, format_seconds
    peak = "the peak gets", edit.peak_bytes, before.peak_bytes, format_bytes
    wire = "a device sends", edit.wire_bytes, sent, format_bytes
    words = ("longer", "shorter"), ("higher", "lower"), ("more", "less")
    texts = [
        f"{what} {form(abs(change))} {word[change < 0]}"
        for (what, change, whole, form), word in zip((step, peak, wire), words, strict=True)
        if abs(change) > _LEAST_CHANGE * whole
    ]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if texts[1:] else "".join(texts)
