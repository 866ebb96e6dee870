"""The order of the terms of sums: floats that are added in another order are rounded otherwise."""

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
    """An order of the terms of the sums of floats in a program.

    Sums are made of some parts of their terms, each of which is rounded to the type of the sum, as
    devices do that hold these parts, and then of the sums of the parts.
    """

    parts: int
    """The number of parts."""
    is_strided: bool = False
    """Whether each part has every so many-th term; otherwise terms that follow each other."""

    def slices(self, length: int) -> list[slice]:
        """The terms of each part, of ``length`` terms."""
        parts = max(min(self.parts, length), 1)
        if self.is_strided:
            return [slice(first, None, parts) for first in range(parts)]
        bounds = [length * part // parts for part in range(parts + 1)]
        return [slice(start, end) for start, end in pairwise(bounds)]

    def total(
        self, length: int, dtype: np.dtype[np.generic], part: Callable[[slice], Array]
    ) -> Array:
        """The sum, in the type in which ``dtype`` is computed, of what ``part`` returns for the
        terms of each part; ``dtype`` is the type of the sum."""
        sums = [wide(in_type(part(terms), dtype)) for terms in self.slices(length)]
        return sum(sums[1:], sums[0])


def is_ordered(order: Order | None, dtype: np.dtype[np.generic]) -> bool:
    """Whether the rounding of sums of ``dtype`` depends on ``order``."""
    return order is not None and (is_float(dtype) or is_complex(dtype))
