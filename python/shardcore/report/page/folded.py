"""Values, arguments and results, merged into one row if they differ only in their names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardcore.costs.kinds import argument_kinds
from shardcore.labels import folded
from shardcore.report.page.string_tables import ABSENT, Tables
from shardcore.report.page.whys import Whys
from shardcore.report.table import format_local_shape, format_shape

if TYPE_CHECKING:
    from shardcore._core import Port, Result, TensorSharding, Value
    from shardcore.report.page.changes import Before

SAME = -2
"""The number for a sharding that equals the one in the other result, or has no counterpart."""

MAX_FRAMES = 100
"""How many frames of a call stack are kept, innermost first: if stacks are as deep as the program
is long, the page would grow quadratically."""

MAX_PORTS = 2000
"""How many of the arguments or results that are alike are named."""

_Key = tuple[Any, ...]


class Values:
    """The values of a result without its arguments, merged into rows, and the row of each name."""

    def __init__(
        self,
        result: Result,
        tables: Tables,
        whys: Whys,
        before: Before | None = None,
        most: int | None = None,
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.row_of: dict[tuple[str, str], int] = {}
        """The row of each value, by function and name."""
        self.entry = result.module.entry
        known: dict[_Key, int] = {}
        firsts: list[Value] = []
        arguments = {port.name for port in result.arguments()}
        values = result.values()
        self.left_out = 0 if most is None else max(0, len(values) - most)
        """How many of the last values are left out."""
        for value in islice(values, most):
            # Arguments have their own rows.
            is_argument = value.op is None and value.name in arguments
            if value.shape is None or (is_argument and value.function == self.entry):
                continue
            number = tables.sharding(value.sharding)
            function = value.function
            was = SAME
            if before is not None:
                is_there, other = before.of_value((function, value.name), value.op, value.type)
                was = _was(is_there, other, number, tables)
            stack = value.traceback[:MAX_FRAMES] or _lone(value.location)
            place = tables.stacks.number(stack or None)
            key = (function, value.op, value.type, number, place, was)
            row = known.setdefault(key, len(firsts))
            if row == len(firsts):
                firsts.append(value)
                self.rows.append({**self._row(value, number, place, tables), "was": was})
            self.rows[row]["names"].append(value.name)
            self.row_of[function, value.name] = row
        for found, value in zip(self.rows, firsts, strict=True):
            found["names"] = " ".join(found["names"])
            found["why"] = whys.of_value(value)

    def of_entry(self) -> dict[str, int]:
        """Return the row of each value of the entry function, by name."""
        return {
            name: row for (function, name), row in self.row_of.items() if function == self.entry
        }

    def _row(self, value: Value, sharding: int, place: int, tables: Tables) -> dict[str, Any]:
        function = None if value.function == self.entry else value.function
        return {
            "names": [],
            "function": tables.text(function),
            "op": tables.text(value.op),
            "type": tables.text(format_shape(value)),
            "shape": value.shape,
            "sharding": sharding,
            "local": tables.text(format_local_shape(value)),
            "bytes": value.bytes_per_device,
            "place": place,
        }


def _was(is_there: bool, other: TensorSharding | None, now: int, tables: Tables) -> int:
    """The number of the sharding in the other result; :data:`SAME` if it is equal."""
    number = tables.sharding(other)
    return number if is_there and number != now else SAME


def _lone(location: str | None) -> tuple[str, ...]:
    return () if location is None else (location,)


def ports(
    completed: Iterable[Port],
    annotated: Iterable[Port],
    tables: Tables,
    whys: Whys,
    before: Before | None,
    *,
    are_results: bool,
) -> list[dict[str, Any]]:
    """Return rows of arguments or results, with their ``completed`` and ``annotated`` shardings."""
    found, completed = [], list(completed)
    kinds = {} if are_results else argument_kinds(completed)
    for port, written in zip(completed, annotated, strict=True):
        given, number = tables.sharding(written.sharding), tables.sharding(port.sharding)
        was = SAME
        if before is not None:
            was = _was(*before.of_port(port, is_result=are_results), number, tables)
        key = (port.type, given, number, was)
        found.append((port.label or port.name, key, (port, key)))
    return [
        {
            "label": label,
            "labels": [port.label or port.name for port, _ in joined[:MAX_PORTS]],
            "names": [port.name for port, _ in joined[:MAX_PORTS]],
            "count": len(joined),
            "kind": kinds.get(joined[0][0].name, ""),
            "type": tables.text(format_shape(joined[0][0])),
            "shape": joined[0][0].shape,
            "given": joined[0][1][1],
            "sharding": joined[0][1][2],
            "local": tables.text(format_local_shape(joined[0][0])),
            "bytes": joined[0][0].bytes_per_device,
            "place": ABSENT,
            "was": joined[0][1][3],
            "why": whys.of_port(joined[0][0], is_result=are_results),
        }
        for label, joined in folded(found)
    ]
