"""Sums over the collectives of a program, which may have hundreds of thousands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from shardcore.costs.records import CollectiveCost, Totals

K = TypeVar("K")

_NOTHING = (0, 0, 0, 0.0, 0.0)


class Alike(NamedTuple):
    """The collectives of which a key says the same."""

    first: CollectiveCost
    totals: Totals


def alike(
    collectives: Iterable[CollectiveCost], key: Callable[[CollectiveCost], object]
) -> list[Alike]:
    """Return the sums over collectives by ``key``, in order of first appearance."""
    sums: dict[object, tuple[CollectiveCost, list[Any]]] = {}
    for row in collectives:
        at = key(row)
        known = sums.get(at)
        if known is None:
            known = sums[at] = (row, list(_NOTHING))
        found, count = known[1], row.count
        found[0] += count
        found[1] += row.bytes * count
        found[2] += row.wire_bytes * count
        found[3] += row.seconds * count
        found[4] += row.exposed_seconds
    return [Alike(first, Totals(*found)) for first, found in sums.values()]


def by_axes(row: CollectiveCost) -> object:
    """The key of collectives of one kind along the same axes: those of one kind have one tuple of
    axes, which is slow to hash."""
    return row.kind, id(row.axis_refs)


def by_place(row: CollectiveCost) -> object:
    """The key of those that, besides, one op at one place needs."""
    return row.kind, id(row.axis_refs), row.cause, row.cause_location or row.location


def summed(pairs: Iterable[tuple[K, Totals]]) -> dict[K, Totals]:
    """Return the sums of ``pairs`` by key, in order of first appearance."""
    sums: dict[K, Totals] = {}
    for key, totals in pairs:
        sums[key] = sums[key].plus(totals) if key in sums else totals
    return sums
