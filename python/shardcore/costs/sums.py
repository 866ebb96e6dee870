"""Sums over the collectives of a program, which may have hundreds of thousands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from shardcore.costs.records import CollectiveCost, Site, Totals

K = TypeVar("K")


def sums_by(
    collectives: Iterable[CollectiveCost], key: Callable[[CollectiveCost], K]
) -> dict[K, Totals]:
    """Return the sums over ``collectives`` by ``key``, in order of first appearance."""
    sums: dict[K, list[Any]] = {}
    for row in collectives:
        at = key(row)
        found = sums.get(at)
        if found is None:
            found = sums[at] = [0, 0, 0, 0.0, 0.0]
        count = row.count
        found[0] += count
        found[1] += row.bytes * count
        found[2] += row.wire_bytes * count
        found[3] += row.seconds * count
        found[4] += row.exposed_seconds
    return {at: Totals(*found) for at, found in sums.items()}


def by_axis(collectives: Sequence[CollectiveCost]) -> dict[str, Totals]:
    """Return the sums by axis; a collective along several axes counts for each of them."""
    axes, sums = {id(row.axis_refs): row.axis_refs for row in collectives}, dict[str, Totals]()
    for number, totals in sums_by(collectives, lambda row: id(row.axis_refs)).items():
        for name in dict.fromkeys(axis.name for axis in axes[number]):
            sums[name] = sums[name].plus(totals) if name in sums else totals
    return sums


def by_site(collectives: Sequence[CollectiveCost]) -> dict[Site, Totals]:
    """Return the sums by kind, axes, op that needs them, and line, the longest first."""
    texts = axes_texts(collectives)

    def site(row: CollectiveCost) -> tuple[str, tuple[str, ...], str | None, str | None]:
        place = row.cause_location or row.location
        return row.kind, texts[id(row.axis_refs)], row.cause, place

    longest = sorted(sums_by(collectives, site).items(), key=lambda item: -item[1].seconds)
    return {Site(*key): totals for key, totals in longest}


def axes_texts(collectives: Iterable[CollectiveCost]) -> dict[int, tuple[str, ...]]:
    """Return the axes of collectives as text, by the identity of their tuple of axes, which those
    of one kind share: its hash and its text take longer."""
    rows = {id(row.axis_refs): row for row in collectives}
    return {number: row.axes for number, row in rows.items()}
