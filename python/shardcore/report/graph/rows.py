"""Horizontal positions in a layered drawing: compact, with edges as straight as possible.

Each item of a row is moved towards the mean of its neighbours in the adjacent row, as far as the
items beside it leave room, row by row, downwards and upwards in turn. For one row this is a least
squares problem with ordering constraints, which the pool-adjacent-violators algorithm solves in
linear time.

Source: Gansner, Koutsofios, North and Vo, "A technique for drawing directed graphs", section 4;
pool-adjacent-violators for one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

_SWEEPS: Final = 8
"""How many sweeps over all rows are made, downwards and upwards in turn."""


def places(
    rows: Sequence[Sequence[int]],
    widths: Mapping[int, float],
    edges: Sequence[tuple[int, int]],
) -> dict[int, float]:
    """Return the centre of each item.

    Args:
        rows: the items of each row, in order.
        widths: the width of each item, including the gap beside it.
        edges: pairs of items in adjacent rows.
    """
    row_of = {item: at for at, row in enumerate(rows) for item in row}
    above: dict[int, list[int]] = {item: [] for item in row_of}
    below: dict[int, list[int]] = {item: [] for item in row_of}
    for one, other in edges:
        up, down = sorted((one, other), key=row_of.__getitem__)
        above[down].append(up)
        below[up].append(down)
    found: dict[int, float] = {}
    for row in rows:
        found.update(
            zip(row, _apart([0.0] * len(row), [widths[item] for item in row]), strict=True)
        )
    for sweep in range(_SWEEPS):
        beside = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            wished = [_mean([found[other] for other in beside[item]], found[item]) for item in row]
            middles = _apart(wished, [widths[item] for item in row])
            found.update(zip(row, middles, strict=True))
    return found


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _apart(wished: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return places close to ``wished`` at which items of these widths do not overlap."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2)
    # Blocks of adjacent items without gaps: the sum of their wished starts, and their number.
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wished, offsets, strict=False):
        total, count = place - offset, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    starts = [total / count for total, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]
