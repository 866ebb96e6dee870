"""Reads users' iterables, which may be infinite; shows values, which may be large; writes JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from operator import index
from typing import TypeVar

from shardcore.errors import Diagnostic, ProgramTooLargeError

T = TypeVar("T")

MOST_ITEMS = 1 << 16
"""A limit above the number of dims, axes or names of any sharding."""


def items(values: Iterable[T], what: str, most: int = MOST_ITEMS) -> tuple[T, ...]:
    """Return all of ``values`` as a tuple.

    Raises:
        ProgramTooLargeError: there are more than ``most``; ``what`` names them in the message.
    """
    found = tuple(islice(values, most + 1))
    if len(found) > most:
        raise ProgramTooLargeError(Diagnostic("program-too-large", f"more than {most} {what}"))
    return found


def shown(value: object, limit: int = 60) -> str:
    """Return the first ``limit`` characters of the text of ``value``, for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # The text may fail: a number of thousands of digits, or deeply nested arrays.
        return "what it is"
    return text if len(text) <= limit else f"{text[:limit]}..."


def json_text(record: object, indent: int | None) -> str:
    """Return ``record`` as JSON.

    Raises:
        ValueError: ``indent`` is not from 0 to 80.
    """
    if indent is not None and not 0 <= index(indent) <= 80:
        raise ValueError(f"indent is a number from 0 to 80, not {shown(indent)}")
    return json.dumps(record, indent=indent, ensure_ascii=False)
