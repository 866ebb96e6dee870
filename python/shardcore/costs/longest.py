"""The longest collectives of a cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.costs.program import Cost
    from shardcore.costs.records import CollectiveCost


def longest_collectives(cost: Cost, most: int) -> list[CollectiveCost]:
    """Return up to ``most`` of the longest collectives, one for each source location."""
    places: dict[tuple[object, ...], CollectiveCost] = {}
    for row in cost.collectives:
        place = (row.kind, row.axes, row.cause, row.cause_location or row.location)
        known = places.setdefault(place, row)
        if row.total_seconds > known.total_seconds:
            places[place] = row
    return sorted(places.values(), key=lambda row: -row.total_seconds)[:most]
