"""Reads sequences that callers give, which may have no end."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from shardcore.errors import Diagnostic, ProgramTooLargeError

T = TypeVar("T")

MOST_ITEMS = 1 << 16
"""More dims, axes or names than that no sharding has."""


def items(values: Iterable[T], what: str, most: int = MOST_ITEMS) -> tuple[T, ...]:
    """Return all of ``values``.

    Raises:
        ProgramTooLargeError: there are more than ``most`` of them; ``what`` they are stands in the
            message.
    """
    found = tuple(islice(values, most + 1))
    if len(found) > most:
        raise ProgramTooLargeError(Diagnostic("program-too-large", f"more than {most} {what}"))
    return found
