"""The values that a line of the user's program computes, the most interesting ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.labels import is_inserted, without_column

if TYPE_CHECKING:
    from shardcore._core import Result, Value

_INTEGERS = ("i", "ui", "si")
"""With what the element types of integers and booleans begin."""


def line_values(result: Result, place: str) -> list[Value]:
    """Return the values of ``result.at(place)``: first results of the user's ops, then integers
    and booleans beside numbers with fractions, such as the indices of a gather and the masks of a
    select, then scalars, then values inside functions that the line calls, such as those of JAX,
    and last the values that passes inserted.

    Raises:
        LocationError: no value comes from there (``unknown-location``).
    """
    values = result.at(place)
    lines = {without_column(value.location or "") for value in values}
    called = {
        str(op.attributes["callee"]).strip("@")
        for op in result.module.ops()
        if op.name == "func.call" and without_column(op.location or "") in lines
    }

    def rank(value: Value) -> tuple[bool, ...]:
        return (
            is_inserted(value.qualified_name),
            value.function in called,
            not value.shape,
            (value.dtype or "").startswith(_INTEGERS),
        )

    return sorted(values, key=rank)
