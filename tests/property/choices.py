"""Random choices out of a string of bytes, which hypothesis draws in one go.

Drawing every choice of a program by itself takes hypothesis far longer than it takes to propagate
through the program. Bytes are drawn at once, and shrink well: zeros, and the end of the bytes,
mean the simplest choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


class Choices:
    """Makes one choice after another."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.used = 0

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Leave out the end, which says nothing, where hypothesis reports a failure."""
        printer.text(f"Choices({self.source.rstrip(bytes(1))!r})")

    def integer(self, low: int, high: int) -> int:
        """Choose from `low` to `high`, both included; the simplest is `low`."""
        size = high - low + 1
        assert 1 <= size <= 256, "a choice takes one byte"
        byte = self.source[self.used] if self.used < len(self.source) else 0
        self.used += 1
        return low + byte % size

    def one_in(self, n: int) -> bool:
        """Say yes once in `n` times; the simplest is no."""
        return self.integer(0, n - 1) == n - 1

    def of(self, items: Sequence[T]) -> T:
        """Choose one of `items`; the simplest is the first."""
        return items[self.integer(0, len(items) - 1)]

    def permutation(self, items: Sequence[T]) -> list[T]:
        """Choose an order; the simplest is that of `items`."""
        left, order = list(items), []
        while left:
            order.append(left.pop(self.integer(0, min(len(left), 256) - 1)))
        return order


def chosen(make: Callable[[Choices], T], num_bytes: int = 500) -> SearchStrategy[T]:
    """Return the hypothesis strategy of everything `make` can make of `num_bytes` choices."""
    source = st.binary(min_size=num_bytes, max_size=num_bytes)
    return source.map(lambda drawn: make(Choices(drawn)))
