"""Checks the types of arguments of which the first use may be far from the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from shardcore.bounded import items

T = TypeVar("T")


def expect(value: object, *kinds: type) -> None:
    """Check that ``value`` is of one of ``kinds``.

    Raises:
        TypeError: it is not; the message names the kinds.
    """
    if not isinstance(value, kinds):
        wanted = " or ".join(map(_with_article, kinds))
        raise TypeError(f"expected {wanted}, not {type(value).__name__}")


def expect_all(values: Iterable[T], kind: type[T], what: str) -> tuple[T, ...]:
    """Return all of ``values``, each of which has to be of ``kind``.

    Raises:
        ProgramTooLargeError: there are too many; the message calls them ``what``.
        TypeError: one is of another type.
    """
    found = items(values, what)
    for value in found:
        expect(value, kind)
    return found


def _with_article(kind: type) -> str:
    name = kind.__name__
    if kind is type(None):
        return "None"
    # An h at the start of a name is the letter's name: an HloSharding.
    return f"an {name}" if name[0] in "AEIOU" or name.startswith("Hlo") else f"a {name}"
