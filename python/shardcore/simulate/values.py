"""Values of all devices at once.

A tensor of shape ``(4, 8)`` on ``n`` devices is one array of shape ``(n, 4, 8)``, or of shape ``(1,
4, 8)`` if it is *uniform*, that is, equal on all devices; then it is computed once, and NumPy
broadcasts it. A token is ``None``, a tuple a Python tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Value", "count", "fitted", "merged", "rows", "spread"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Value: TypeAlias = Any
"""An array, a tuple of values, or ``None`` for a token."""


def count(arrays: Iterable[Array]) -> int:
    """The common number of rows of ``arrays``: 1 if all are uniform."""
    return max((len(array) for array in arrays), default=1)


def spread(array: Array, devices: int) -> Array:
    """``array`` broadcast to a row for each of ``devices``, without copying."""
    if len(array) == devices:
        return array
    return np.broadcast_to(array, (devices, *array.shape[1:]))


def fitted(arrays: Sequence[Array]) -> list[Array]:
    """``arrays`` broadcast to the largest of their numbers of rows."""
    devices = count(arrays)
    return [spread(array, devices) for array in arrays]


def rows(value: Value, index: Array) -> Value:
    """``value`` on the devices ``index``; uniform values are returned unchanged."""
    if isinstance(value, tuple):
        return tuple(rows(part, index) for part in value)
    if value is None or len(value) == 1:
        return value
    return value[index]


def merged(parts: Sequence[tuple[Array, Value]], devices: int) -> Value:
    """The value on ``devices``, merged from parts: each has device indices and their values."""
    first = parts[0][1]
    if len(parts) == 1 or first is None:
        return first
    if isinstance(first, tuple):
        columns = [[(index, value[at]) for index, value in parts] for at in range(len(first))]
        return tuple(merged(column, devices) for column in columns)
    whole = np.empty((devices, *first.shape[1:]), first.dtype)
    for index, value in parts:
        whole[index] = value
    return whole
