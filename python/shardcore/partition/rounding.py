"""How far results may differ by rounding: by as much as other orders of sums change them.

Devices add in another order than the global program. What that does depends on the types on the way
and on what the program does with its sums, so it is measured: the global program runs with the
terms of its sums in some other orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shardcore.simulate.dtypes import are_equal
from shardcore.simulate.order import Order

Array = np.ndarray[Any, np.dtype[Any]]

_MORE = 8
"""Devices may differ by this many times the most that the orders do which were tried."""
_LOOSE = 0.05
"""A bound above this share of a result says too little about it."""


class Size(NamedTuple):
    """How large the elements of an array are."""

    largest: float
    mean: float
    """The root of the mean of their squares."""

    def __mul__(self, factor: object) -> Size:
        if not isinstance(factor, (int, float)):
            return NotImplemented
        return Size(self.largest * factor, self.mean * factor)

    def covers(self, other: Size) -> bool:
        """Whether ``other`` is no larger in either figure."""
        return other.largest <= self.largest and other.mean <= self.mean

    def most(self, other: Size) -> Size:
        """The larger of both figures."""
        return Size(max(self.largest, other.largest), max(self.mean, other.mean))


NOTHING = Size(0.0, 0.0)


def orders(num_devices: int) -> list[Order]:
    """The orders of terms that are tried for a program of so many devices."""
    parts = max(num_devices, 2)
    return [Order(parts), Order(parts, True), Order(2 if parts > 2 else 4), Order(3, True)]


class Bounds:
    """How much other orders of sums change the results of a program.

    Args:
        expected: the results in the order of NumPy.
        run: runs the program in another order.
        tried: the orders.
    """

    def __init__(
        self, expected: Sequence[Array], run: Callable[[Order], Sequence[Array]], tried: list[Order]
    ) -> None:
        self._expected = expected
        self._run = run
        self._tried = tried
        self._changes: list[Size] | None = None

    def change(self, at: int) -> Size:
        """The most that another order changes result ``at``."""
        if self._changes is None:
            changes = [NOTHING] * len(self._expected)
            for order in self._tried:
                found = self._run(order)
                for place, (mine, theirs) in enumerate(zip(found, self._expected, strict=True)):
                    changes[place] = changes[place].most(size(gap(mine, theirs)))
            self._changes = changes
        return self._changes[at]

    def allows(self, at: int, difference: Size) -> bool:
        """Whether other orders of sums may make ``difference`` in result ``at``."""
        return (self.change(at) * _MORE).covers(difference)

    def is_loose(self, at: int) -> bool:
        """Whether other orders change result ``at`` by so much that a mistake may not show."""
        expected = widest(self._expected[at])
        change = self.change(at).mean
        return not change <= _LOOSE * size(_finite(np.abs(expected))).mean


def gap(mine: Array, theirs: Array) -> Array | None:
    """By how much each element differs; ``None`` if none does."""
    if are_equal(mine, theirs):
        return None
    a, b = widest(mine), widest(theirs)
    is_finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore", over="ignore"):
        is_alike = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(is_finite, np.abs(a - b), np.where(is_alike, 0.0, np.inf))


def size(found: Array | None) -> Size:
    """How large the elements of ``found``, a gap, are; those that are no number are left out."""
    if found is None or not found.size:
        return NOTHING
    known = found[~np.isnan(found)]
    largest = float(np.max(known, initial=0.0))
    if largest in (0.0, np.inf):
        return Size(largest, largest)
    # Scaled, since squares may overflow.
    return Size(largest, largest * float(np.sqrt(np.mean((known / largest) ** 2))))


def _finite(array: Array) -> Array:
    return array[np.isfinite(array)]


def widest(array: Array) -> Array:
    """``array`` in the widest type of its kind."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def floor(theirs: Array, tolerance: float) -> float:
    """What elements may differ by, whatever the order of sums makes."""
    scale = float(np.max(_finite(np.abs(widest(theirs))), initial=0.0))
    return (tolerance if theirs.dtype.kind in "fcV" else 0.0) * scale


def is_rounding(difference: Size, theirs: Array, tolerance: float, change: Size) -> bool:
    """Whether rounding may make ``difference`` from ``theirs``, which other orders of sums change
    by up to ``change``."""
    if difference.largest <= floor(theirs, tolerance):
        return True
    return (change * _MORE).covers(difference)
