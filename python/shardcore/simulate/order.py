"""The order of summation: floats that are added in another order are rounded differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shardcore.simulate.dtypes import in_type, is_complex, is_float, wide
from shardcore.simulate.values import Array

__all__ = ["Order", "is_ordered"]


@dataclass(frozen=True)
class Order:
    """An order of summation of floats in a program.

    The terms of a sum are split into parts. The sum of each part is rounded to the sum's type, as
    on devices that hold these parts, and then the partial sums are added.
    """

    parts: int
    """The number of parts."""
    is_strided: bool = False
    """Whether a part takes every n-th term (n parts); otherwise parts are contiguous."""

    @property
    def contiguous(self) -> Order:
        """An order with contiguous parts: this one, or with another part in place of strides."""
        return Order(self.parts + 1) if self.is_strided else self

    def slices(self, length: int) -> list[slice]:
        """The terms of each part, for ``length`` terms."""
        parts = max(min(self.parts, length), 1)
        if self.is_strided:
            return [slice(first, None, parts) for first in range(parts)]
        bounds = [length * part // parts for part in range(parts + 1)]
        return [slice(start, end) for start, end in pairwise(bounds)]

    def total(
        self, length: int, dtype: np.dtype[np.generic], part: Callable[[slice], Array]
    ) -> Array:
        """The sum of what ``part`` returns for the terms of each part. ``dtype`` is the type of the
        sum; the result is in the type in which that is computed."""
        sums = [wide(in_type(part(terms), dtype)) for terms in self.slices(length)]
        return sum(sums[1:], sums[0])


def is_ordered(order: Order | None, dtype: np.dtype[np.generic]) -> bool:
    """Whether the rounding of sums of ``dtype`` depends on ``order``."""
    return order is not None and (is_float(dtype) or is_complex(dtype))
