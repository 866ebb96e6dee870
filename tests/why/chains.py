"""What holds for the explanation of any value."""

from __future__ import annotations

from collections.abc import Iterator

import shardcore
from shardcore import Result, Value


def values(result: Result) -> Iterator[Value]:
    """The values that have an axis."""
    for value in result.values():
        if value.sharding is not None and any(dim.axes for dim in value.sharding.dims):
            yield value


def check(value: Value, why: shardcore.Why) -> int:
    """Check the explanation of ``value``; return the number of axes that it leaves out."""
    assert value.sharding is not None
    axes = [
        (str(axis), place) for place, dim in enumerate(value.sharding.dims) for axis in dim.axes
    ]
    explained = [(str(each.axis), each.dim) for each in why.axes]
    assert set(explained) <= set(axes)
    for each in why.axes:
        at = each.source.name
        for step in each.chain:
            assert step.from_value == at, why
            at = step.value
        assert each.source.kind in ("argument", "result", "constraint", "group", "op", "manual")
    return len(axes) - len(explained)
