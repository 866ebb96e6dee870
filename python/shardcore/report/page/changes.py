"""The differences from another result: changed shardings, and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardcore._core import TensorSharding

if TYPE_CHECKING:
    from shardcore._core import Port, Result
    from shardcore.costs import Cost

MAX_LINES = 300
"""How many source lines are listed at most."""


class Before:
    """The shardings of another result, by names that values have in both results."""

    def __init__(self, result: Result) -> None:
        self._values = {
            (value.function, value.name): (value.op, value.type, value.sharding)
            for value in result.values()
            if value.shape is not None
        }
        self._ports = {
            (is_result, port.label or port.name): (port.type, port.sharding)
            for is_result, some in enumerate((result.arguments(), result.results()))
            for port in some
        }

    def of_value(
        self, key: tuple[str, str], op: str | None, type_text: str
    ) -> tuple[bool, TensorSharding | None]:
        """Return whether the other result has a value of this name, op and type, and its
        sharding."""
        found = self._values.get(key)
        if found is None or found[:2] != (op, type_text):
            return False, None
        return True, found[2]

    def of_port(self, port: Port, *, is_result: bool) -> tuple[bool, TensorSharding | None]:
        """Return whether the other result has a port of this path and type, and its sharding."""
        found = self._ports.get((is_result, port.label or port.name))
        if found is None or found[0] != port.type:
            return False, None
        return True, found[1]


def costs_record(before: Cost, after: Cost) -> dict[str, Any]:
    """Return the differences between two costs as plain data of a page."""
    # Costs are imported here, as the package does not import them.
    from shardcore.costs import compare

    found = compare(before, after)
    return {
        "hardware": [before.hardware.name, after.hardware.name],
        "policies": list(found.policies),
        "totals": [
            *([row.name, row.before, row.after] for row in found.totals),
            ["exposed_seconds", before.exposed_seconds, after.exposed_seconds],
            ["mfu", before.usage.mfu, after.usage.mfu],
        ],
        "lines": [
            [
                row.place,
                row.compute_seconds.before,
                row.compute_seconds.after,
                row.comm_seconds.before,
                row.comm_seconds.after,
                {kind: list(counts) for kind, counts in row.collectives.items()},
            ]
            for row in found.lines[:MAX_LINES]
        ],
        "num_lines": len(found.lines),
    }
