"""The origins of values' axes: chains of propagation steps with shared beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shardcore.report.page.string_tables import ABSENT, Tables
from shardcore.why.text import edit_text

if TYPE_CHECKING:
    from shardcore._core import Port, Result, Value
    from shardcore.costs import CollectiveCost
    from shardcore.why.collective import Side
    from shardcore.why.remedy import Remedy

MAX_STEPS = 100_000
"""How many steps all chains may have together; this takes half a second."""

MAX_LINKS = 20_000
"""How many distinct steps are kept: a megabyte of the page."""


class Whys:
    """The chains of a result. A link is a source, or a step that follows another link."""

    def __init__(self, result: Result, tables: Tables) -> None:
        self._result = result
        self._tables = tables
        self._left = MAX_STEPS
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.is_complete = True
        """Whether all requested values have their chains."""

    def forget(self) -> None:
        """Free the memory that explanations of values take, a quarter of that of a cost."""
        self._result._forget_explainer()

    def of_value(self, value: Value) -> list[tuple[str, int, int]] | None:
        """Return axis, dim and link for each axis of ``value``; ``None`` if the limits are
        reached."""
        if value.sharding is None or self._is_full():
            return None
        number = self._result._explainer.number(value)
        return None if number is None else self._links(self._result._explainer.of_value(number))

    def of_port(self, port: Port, *, is_result: bool) -> list[tuple[str, int, int]] | None:
        """Return axis, dim and link for each axis of an argument or a result."""
        if port.sharding is None or self._is_full():
            return None
        if is_result:
            return self._links(self._result._explainer.of_result(port.index))
        number = self._result._explainer.find(port.name)
        return None if number is None else self._links(self._result._explainer.of_value(number))

    def of_collective(self, row: CollectiveCost, edit: Remedy | None) -> dict[str, Any] | None:
        """Return the conflicting tensors, each with the link that decided its sharding, and
        ``edit``, which removes the collective ``row``.
        """
        if row.trial is None or self._is_full():
            return None
        found = row.why
        if sum(len(side.origin.chain) for side in found.sides if side.origin) > MAX_LINKS:
            self.is_complete = False
            return None
        return {
            "sides": [self._side(side) for side in found.sides],
            "edit": None if edit is None else _edit(edit),
        }

    def _side(self, side: Side) -> list[Any]:
        """Name, sharding, axis, dim and link; without axis if an annotation keeps axes away."""
        if side.origin is None:
            link = self._link({"source": vars(side.source), "chain": []})
            return [side.value, side.sharding, None, None, link]
        row = side.origin.record()
        return [side.value, side.sharding, row["axis"], row["dim"], self._link(row)]

    def record(self) -> list[tuple[Any, ...]]:
        """Return the links; the last number of each is that of the previous link."""
        return list(self._numbers)

    def _is_full(self) -> bool:
        is_full = self._left <= 0 or len(self._numbers) >= MAX_LINKS
        self.is_complete &= not is_full
        return is_full

    def _links(self, rows: Sequence[dict[str, Any]]) -> list[tuple[str, int, int]] | None:
        if sum(len(row["chain"]) for row in rows) > MAX_LINKS - len(self._numbers):
            self.is_complete = False
            return None
        return [(row["axis"], row["dim"], self._link(row)) for row in rows]

    def _link(self, row: dict[str, Any]) -> int:
        """The last link of the chain of ``row``."""
        text, numbers = self._tables.text, self._numbers
        source = row["source"]
        written = source["label"] or source["name"]
        start = (written, source["kind"], text(source["location"]), source["sharding"], ABSENT)
        link = numbers.setdefault(start, len(numbers))
        for step in row["chain"]:
            key = (
                step["value"],
                text(step["op"]),
                text(step["line"]),
                step["factor"],
                step["direction"],
                step["priority"],
                step["step"],
                link,
            )
            link = numbers.setdefault(key, len(numbers))
        self._left -= len(row["chain"])
        return link


def _edit(edit: Remedy) -> dict[str, Any]:
    """The edit, with the action that a person takes to make it."""
    record = edit.record()
    return {**record, "text": edit_text(record)}
