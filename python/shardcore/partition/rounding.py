"""How far results may differ by rounding, measured by running other orders of summation.

Devices add in another order than the global program. The effect depends on the types involved and
on what the program does with its sums, so it is measured: the global program runs again with the
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
"""Devices may differ by this multiple of the largest change that the tried orders caused."""
_LOOSE = 0.05
"""If the bound exceeds this share of a result, the comparison says too little."""


class Size(NamedTuple):
    """The size of the elements of an array: their root mean square and their maximum."""

    largest: float
    mean: float
    """The root of the mean square of the elements."""

    def __mul__(self, factor: object) -> Size:
        if not isinstance(factor, (int, float)):
            return NotImplemented
        return Size(self.largest * factor, self.mean * factor)

    def covers(self, other: Size) -> bool:
        """Whether ``other`` is no larger in both figures."""
        return other.largest <= self.largest and other.mean <= self.mean

    def most(self, other: Size) -> Size:
        """The larger of both figures."""
        return Size(max(self.largest, other.largest), max(self.mean, other.mean))


NOTHING = Size(0.0, 0.0)


def orders(num_devices: int) -> list[Order]:
    """The orders of summation that are tried for a program of ``num_devices`` devices."""
    parts = max(num_devices, 2)
    return [Order(parts), Order(parts, True), Order(2 if parts > 2 else 4), Order(3, True)]


class Bounds:
    """How much other orders of summation change the results of a program.

    Args:
        expected: the results in NumPy's order.
        run: a function that runs the program in a given order.
        tried: the orders to try.
    """

    def __init__(
        self, expected: Sequence[Array], run: Callable[[Order], Sequence[Array]], tried: list[Order]
    ) -> None:
        self._expected = expected
        self._run = run
        self._tried = tried
        self._changes: list[Size] | None = None

    def change(self, at: int) -> Size:
        """The largest change of result ``at`` under the tried orders."""
        if self._changes is None:
            changes = [NOTHING] * len(self._expected)
            for order in self._tried:
                found = self._run(order)
                for place, (mine, theirs) in enumerate(zip(found, self._expected, strict=True)):
                    changes[place] = changes[place].most(size(gap(mine, theirs)))
            self._changes = changes
        return self._changes[at]

    def allows(self, at: int, difference: Size) -> bool:
        """Whether another order of summation may cause ``difference`` in result ``at``."""
        return (self.change(at) * _MORE).covers(difference)

    def is_loose(self, at: int) -> bool:
        """Whether other orders change result ``at`` so much that a mistake could hide in it."""
        expected = widest(self._expected[at])
        change = self.change(at).mean
        return not change <= _LOOSE * size(_finite(np.abs(expected))).mean


def gap(mine: Array | None, theirs: Array | None) -> Array | None:
    """The difference of each element; ``None`` if the arrays are equal, or are tokens."""
    if mine is None or theirs is None or are_equal(mine, theirs):
        return None
    a, b = widest(mine), widest(theirs)
    is_finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore", over="ignore"):
        is_alike = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(is_finite, np.abs(a - b), np.where(is_alike, 0.0, np.inf))


def size(found: Array | None) -> Size:
    """The size of the differences ``found``; elements that are NaN are left out."""
    if found is None or not found.size:
        return NOTHING
    known = found[~np.isnan(found)]
    largest = float(np.max(known, initial=0.0))
    if largest in (0.0, np.inf):
        return Size(largest, largest)
    # Scaled first, because squares may overflow.
    return Size(largest, largest * float(np.sqrt(np.mean((known / largest) ** 2))))


def _finite(array: Array) -> Array:
    return array[np.isfinite(array)]


def widest(array: Array) -> Array:
    """``array`` in the widest type of its kind."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def floor(theirs: Array, tolerance: float) -> float:
    """The difference that is always allowed, whatever the order of summation."""
    scale = float(np.max(_finite(np.abs(widest(theirs))), initial=0.0))
    return (tolerance if theirs.dtype.kind in "fcV" else 0.0) * scale


def is_rounding(difference: Size, theirs: Array, tolerance: float, change: Size) -> bool:
    """Whether rounding may explain ``difference`` from ``theirs``, a result that other orders of
    summation change by up to ``change``."""
    if difference.largest <= floor(theirs, tolerance):
        return True
    return (change * _MORE).covers(difference)
