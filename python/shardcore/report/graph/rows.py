"""Places along the rows of a layered drawing: close together, and edges as straight as that allows.

Each item of a row is moved to the mean of its neighbours in the row before, as far as the items
beside it leave room, row by row downwards and upwards in turn. In one row that is the least sum of
squares under an order, which merging neighbours that are in each other's way finds in linear time.

Source: Gansner, Koutsofios, North and Vo, "A technique for drawing directed graphs", section 4;
pool-adjacent-violators for one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

_SWEEPS: Final = 8
"""How often rows are gone through, downwards and upwards in turn."""


def places(
    rows: Sequence[Sequence[int]],
    widths: Mapping[int, float],
    edges: Sequence[tuple[int, int]],
) -> dict[int, float]:
    """Return the middle of each item.

    Args:
        rows: the items of each row, in their order.
        widths: how wide each is, with the gap beside it.
        edges: pairs of items, of one row and the next.
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
    """Return places close to those ``wished`` where items of these widths do not overlap."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2)
    # Blocks of items without room between them: the sum of where they start, and their number.
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wished, offsets, strict=False):
        total, count = place - offset, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    starts = [total / count for total, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]
