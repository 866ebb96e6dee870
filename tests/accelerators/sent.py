"""Collectives of a cost beside those that XLA's compiler left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import shardcore
from shardcore.xla.comparison import sent_by_kind

from tests.accelerators.measured import Measured

FIGURES = ("bytes", "runs")


def near(cost: shardcore.Cost, measured: Measured) -> dict[str, bool]:
    """Whether the bytes of each kind that sends more than 1 % of all are within a twentieth of
    XLA's, and the numbers of runs within a tenth.
    """
    ours = {kind: (row.runs, row.bytes) for kind, row in sent_by_kind(cost).items()}
    theirs = measured.collectives
    least = 0.01 * sum(sent for _, sent in theirs.values())
    is_near = dict.fromkeys(FIGURES, True)
    for kind in ours.keys() | theirs.keys():
        (runs, sent), (their_runs, their_sent) = ours.get(kind, (0, 0)), theirs.get(kind, (0, 0))
        if max(sent, their_sent) > least:
            is_near["bytes"] &= abs(sent - their_sent) <= 0.05 * their_sent
        is_near["runs"] &= abs(runs - their_runs) <= 0.1 * max(their_runs, 1)
    return is_near


def summary(rows: Iterable[Mapping[str, bool]]) -> str:
    """How many of ``rows`` of :func:`near` are near, as text."""
    found = list(rows)
    shares = (f"{figure} of {sum(row[figure] for row in found)}" for figure in FIGURES)
    return f"collectives, of {len(found)}, by kind: {', '.join(shares)}"
